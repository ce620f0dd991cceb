// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// Claim decides which of several processes with the identity of this cluster continues (spec K2). A process that becomes leader replaces
// the Heartbeat of its predecessor, with the next term. The predecessor has ended if both run in one cluster. If it renews the Heartbeat
// afterwards, the newer process runs in a copy of the cluster, and yields. So the process with the lowest term that renews continues, and
// a hand-over between replicas is no copy. An older agent sends a Heartbeat without a nonce, which proves nothing.
type Claim struct {
	clusterUID, nonce string
	// term is the term of this process; 0 before it has written a Heartbeat.
	term int64
	// seen is the last Heartbeat of the hub, and written the last one of this process; zero if there is none. A Heartbeat that is older
	// than seen, or another object, is that of a restored or rebuilt hub: then written is zero, and nothing has been renewed since.
	seen, written version
	// rival is the nonce of the process to which this one yields; empty if it does not.
	rival string
	// contested is set while a process with a higher term owns the Heartbeat.
	contested bool
	// confirmed is when this process may write records. It is the zero time if no process with its identity can run.
	confirmed time.Time
}

// version identifies a write of the Heartbeat.
type version struct {
	uid             types.UID
	resourceVersion string
}

// confirmation is the time after which a process that has replaced the Heartbeat of another one writes records. A process that runs
// renews its Heartbeat in a fraction of it.
const confirmation = 2 * time.Second

// NewClaim returns the Claim of a process, by the UID of its cluster and its nonce.
func NewClaim(clusterUID, nonce string) *Claim { return &Claim{clusterUID: clusterUID, nonce: nonce} }

// observe updates the Claim by the Heartbeat of the hub; nil if the hub has none.
func (c *Claim) observe(heartbeat *hubv1alpha1.Heartbeat) {
	c.contested = false
	if heartbeat == nil && c.seen == (version{}) { // it is not read yet
		return
	}
	if heartbeat == nil {
		c.seen, c.written = version{}, version{}
		return
	}
	current := versionOf(heartbeat)
	if c.seen != (version{}) && (current.uid != c.seen.uid || c.seen.isLater(current)) {
		c.written = version{}
	}
	c.seen = current
	if heartbeat.Spec.Nonce == c.nonce && c.rival == "" { // also if the answer to the write was lost
		c.written, c.term = current, heartbeat.Spec.Term
	}
	switch {
	case !c.isForeign(heartbeat):
	case c.rival != "":
		c.rival = heartbeat.Spec.Nonce
	case c.written == version{} || !current.isLater(c.written): // it is replaced next
	case c.isSenior(heartbeat):
		c.rival = heartbeat.Spec.Nonce
	default:
		c.contested = true
	}
}

// isForeign reports whether a Heartbeat is known to be that of another process with the identity of this cluster.
func (c *Claim) isForeign(heartbeat *hubv1alpha1.Heartbeat) bool {
	return heartbeat != nil && heartbeat.Spec.ClusterUID == c.clusterUID && heartbeat.Spec.Nonce != "" && heartbeat.Spec.Nonce != c.nonce
}

// isSenior reports whether another process takes precedence over this one. Terms can be equal after a restore of the hub.
func (c *Claim) isSenior(heartbeat *hubv1alpha1.Heartbeat) bool {
	if heartbeat.Spec.Term != c.term {
		return heartbeat.Spec.Term < c.term
	}
	return heartbeat.Spec.Nonce < c.nonce
}

// next returns the term of the Heartbeat with which this process renews or replaces an existing one; nil if there is none.
func (c *Claim) next(existing *hubv1alpha1.Heartbeat) int64 {
	if c.contested || c.written != (version{}) && !c.isForeign(existing) {
		return c.term
	}
	if existing == nil || existing.Spec.Nonce == c.nonce {
		return max(c.term, 1)
	}
	return max(c.term, min(existing.Spec.Term, math.MaxInt64-1)+1)
}

// replace prepares to renew or replace an existing Heartbeat at a time. hasEnded reports whether the process with a nonce is known to have
// ended.
func (c *Claim) replace(existing *hubv1alpha1.Heartbeat, now time.Time, hasEnded func(nonce string) bool) {
	isNew := c.next(existing) > c.term || c.rival != "" // otherwise it continues
	if isNew && c.isForeign(existing) && !hasEnded(existing.Spec.Nonce) {
		c.confirmed = now.Add(confirmation)
	}
}

// wrote updates the Claim after this process has written a Heartbeat.
func (c *Claim) wrote(heartbeat *hubv1alpha1.Heartbeat, term int64) {
	c.term, c.rival, c.contested, c.written = term, "", false, versionOf(heartbeat)
}

// mayWrite reports whether this process may write records at a time, while the hub has this Heartbeat.
func (c *Claim) mayWrite(heartbeat *hubv1alpha1.Heartbeat, now time.Time) bool {
	return c.rival == "" && c.written != (version{}) && heartbeat != nil && !c.isForeign(heartbeat) && !now.Before(c.confirmed)
}

func versionOf(heartbeat *hubv1alpha1.Heartbeat) version {
	return version{heartbeat.UID, heartbeat.ResourceVersion}
}

// isLater reports whether v is a later version of the same object. Versions that cannot be compared are not from a Kubernetes API server.
func (v version) isLater(than version) bool {
	if v.uid != than.uid {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(v.resourceVersion, than.resourceVersion)
	return err == nil && order > 0
}
