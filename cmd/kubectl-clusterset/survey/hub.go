// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/phrase"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// findHub reads the hub. If it cannot be read, the result has the reason; the error is that nothing says which API server it is.
func (o FindOptions) findHub(ctx context.Context, found []*Member, unreached []Unreached) (*Hub, error) {
	at, err := o.selectHub(found)
	switch {
	case errors.Is(err, ErrNoHub) && len(unreached) > 0: // one of these may be the hub
		return UnreadHub(KubeContext{}, err), nil
	case err != nil:
		return nil, err
	}
	for _, u := range unreached {
		if u.Context == at.Name {
			return UnreadHub(*at, u.Err), nil
		}
	}
	return o.readHub(ctx, *at), nil
}

// readHub reads the hub, or returns why it cannot be read.
func (o FindOptions) readHub(ctx context.Context, at KubeContext) *Hub {
	ctx, cancel := context.WithTimeout(ctx, ReadTimeout)
	defer cancel()
	if err := o.ping(ctx, at); err != nil {
		return UnreadHub(at, err)
	}
	h, err := ReadHub(ctx, at)
	if err != nil {
		return UnreadHub(at, err)
	}
	return h
}

// ping returns an error if the API server of a context does not answer in time.
func (o FindOptions) ping(ctx context.Context, at KubeContext) error {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	c, err := hub.Client(apiserver.Config(at.Config))
	if err != nil {
		return err
	}
	err = c.List(ctx, &hubv1alpha1.MemberList{}, client.Limit(1))
	switch {
	case apiserver.IsNotFound(err):
		return ErrNotHub
	case ctx.Err() != nil:
		return apiserver.NoAnswerError{Limit: o.Timeout}
	}
	return err
}

// unreachedHub returns the hub that the agents of the found clusters use, if the hub of a clusterset that has none of them as a member was
// read instead, because theirs does not answer. Otherwise it returns nil.
func (o FindOptions) unreachedHub(c *Clusterset, found []*Member) *Hub {
	if o.Hub != nil || !c.Hub.IsRead() || len(c.Members) > 0 {
		return nil
	}
	at, err := o.hubOfAgents(found)
	if err != nil {
		return nil
	}
	for _, u := range c.Unreached {
		if u.Context == at.Name {
			return UnreadHub(*at, u.Err)
		}
	}
	return nil
}

// unread returns what should have been read and was not. Of all contexts of a kubeconfig, those that do not answer count only if members are
// missing: they may be other clusters.
func (o FindOptions) unread(c *Clusterset) []Unread {
	var result []Unread
	if !c.Hub.IsRead() {
		result = append(result, Unread{c.Hub.KubeContext.Name, true, c.Hub.Failure()})
	}
	if o.Selection == All && c.Hub.IsRead() && len(c.NotRead()) == 0 {
		return result
	}
	for _, u := range c.Unreached {
		if u.Context != c.Hub.KubeContext.Name && !errors.Is(u.Err, ErrNotMember) {
			result = append(result, Unread{u.Context, false, apiserver.FailureOf(u.Err, u.Context)})
		}
	}
	return result
}

// ReadHub reads a hub.
func ReadHub(ctx context.Context, kubeContext KubeContext) (*Hub, error) {
	var clock apiserver.Clock
	config := apiserver.Config(kubeContext.Config)
	config.Wrap(clock.Wrap)
	c, err := hub.Client(config)
	if err != nil {
		return nil, fmt.Errorf("the hub: %w", err)
	}
	snapshot, err := hub.Read(ctx, c)
	if err != nil {
		return nil, err
	}
	result := NewHub(kubeContext, snapshot, clock.Now())
	if result.Version, err = hub.Version(ctx, c); err != nil {
		result.Version = "" // an older hub does not have it, and not every client may read it
	}
	return result, nil
}

// IsRead reports whether the hub could be read.
func (h *Hub) IsRead() bool { return h.Err == nil }

// Failure explains why the hub could not be read.
func (h *Hub) Failure() apiserver.Failure {
	result := apiserver.FailureOf(h.Err, h.KubeContext.Name)
	if apiserver.IsNotServed(h.Err) {
		result.Next = "install the kinds of the hub: kubectl clusterset init-hub" + phrase.ContextFlag(h.KubeContext.Name)
	}
	return result
}

// UnreadHub returns a hub without content, and with the reason.
func UnreadHub(kubeContext KubeContext, err error) *Hub {
	if kubeContext.Config == nil {
		kubeContext.Config = &rest.Config{}
	}
	return &Hub{
		KubeContext: kubeContext, Err: err, Snapshot: &hub.Snapshot{}, Now: time.Now(), Renewed: map[clusterset.ClusterID]time.Time{},
		Records: hub.NewStore("", clusterset.AddressRanges{}),
	}
}

// NewHub returns a hub with the content of a snapshot, which was read at a time by the clock of the hub.
func NewHub(kubeContext KubeContext, snapshot *hub.Snapshot, now time.Time) *Hub {
	return &Hub{
		KubeContext: kubeContext, Snapshot: snapshot, Now: now, Renewed: snapshot.Renewed(),
		Records: snapshot.Store("", clusterset.AddressRanges{}),
	}
}

// Silence returns the age of the member's last heartbeat, and false if the hub has never received one.
func (h *Hub) Silence(id clusterset.ClusterID) (time.Duration, bool) {
	at, ok := h.Renewed[id]
	if !ok || at.IsZero() {
		return 0, false
	}
	return max(0, h.Now.Sub(at)), true
}

// checkMembership returns nil if a cluster is the member whose ID it has.
func (h *Hub) checkMembership(m *Member) error {
	if !h.IsRead() {
		return nil
	}
	if h.Records.Member(m.ID) == nil {
		return fmt.Errorf("%w: it calls itself %s, and the hub has no such member: another clusterset's, or one that has not joined", ErrNotMember, m.ID)
	}
	if beat := h.Records.Heartbeat(m.ID); beat != nil && beat.Spec.ClusterUID != "" && beat.Spec.ClusterUID != m.UID {
		return fmt.Errorf("%w: it calls itself %s, but on the hub that is another cluster (its kube-system has the UID %s)", ErrNotMember, m.ID, beat.Spec.ClusterUID)
	}
	return nil
}

// checkCopy returns an error if a cluster is a copy of the member whose ID it has: another process sends the heartbeats.
func (h *Hub) checkCopy(m *Member) error {
	beat := h.Records.Heartbeat(m.ID)
	if beat == nil || beat.Spec.ClusterUID != m.UID || !m.lease.isOfCopy(beat, h.LastHeartbeat(m.ID)) {
		return nil
	}
	return fmt.Errorf("it has the identity of %s (kube-system UID %s), and the agent of another cluster sends the heartbeats of %s: one of the two clusters is a copy "+
		"of the other, and this one publishes nothing. Run \"kubectl clusterset leave --from member\" in the copy", m.ID, m.UID, m.ID)
}

// Publication returns the publication state of a member's heartbeat; Partial if there is no heartbeat.
func (h *Hub) Publication(id clusterset.ClusterID) hubv1alpha1.Publication {
	if beat := h.Records.Heartbeat(id); beat != nil {
		return beat.Spec.Publication
	}
	return hubv1alpha1.PublicationPartial
}
