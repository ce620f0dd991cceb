// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
)

// KubeContext is a context of a kubeconfig: its name, and how to reach its API server.
type KubeContext struct {
	Name   string
	Config *rest.Config
}

// Clusterset is the reachable part of a clusterset.
type Clusterset struct {
	Hub *Hub
	// Members are the reachable members, sorted by ID.
	Members []*Member
	// Unreached are the contexts whose API server does not answer, and the clusters that are not members of this clusterset
	// although they have a cluster ID.
	Unreached []Unreached
}

// Unreached is a context that is left out, with the reason.
type Unreached struct {
	Context string
	// Cluster is its cluster ID if its ClusterProperty names the same clusterset, otherwise empty.
	Cluster clusterset.ClusterID
	Err     error
}

// Member returns the reachable member with an ID, nil if there is none.
func (c *Clusterset) Member(id clusterset.ClusterID) *Member {
	for _, m := range c.Members {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// Hub is the content of a hub.
type Hub struct {
	KubeContext KubeContext
	Snapshot    *hub.Snapshot
	// Records is the snapshot as a store without a local cluster.
	Records *hub.Store
	// Now is the time of the snapshot, and Renewed the times at which the hub received the last heartbeats. Both are by the hub's
	// clock, so that they can be compared.
	Now     time.Time
	Renewed map[clusterset.ClusterID]time.Time
}

// Errors of Find.
var (
	ErrNoHub   = errors.New("none of the contexts that were read leads to a hub: pass --hub-context, --hub-kubeconfig, or both")
	ErrNotHub  = errors.New("it is no hub, as it has no kind Member: pass the context of the hub in --hub-context, or make this one a hub with \"kubectl clusterset init-hub\"")
	ErrTwoHubs = errors.New("more than one of the contexts that were read leads to a hub: say which with --hub-context")
)

// FindOptions say where a clusterset is.
type FindOptions struct {
	// Contexts are read.
	Contexts []KubeContext
	// Hub is the context of the hub. If it is nil, the hub is one of Contexts, or that of Known whose URL the agent of a member uses.
	Hub   *KubeContext
	Known []KubeContext
	// Timeout is the time after which a context that does not answer is reported in Unreached.
	Timeout time.Duration
}

// Find identifies the contexts in parallel, and reads the hub.
func Find(ctx context.Context, o FindOptions) (*Clusterset, error) {
	found, unreached := identifyAll(ctx, o.Contexts, o.Timeout)
	at, err := o.selectHub(found)
	if err != nil {
		return nil, withUnreached(err, unreached)
	}
	h, err := ReadHub(ctx, *at)
	if err != nil {
		return nil, err
	}
	result := &Clusterset{Hub: h, Unreached: unreached}
	seen := map[string]bool{}
	var rejected []nonMember
	for _, m := range found {
		if m.ID == "" || seen[m.UID] {
			continue // not a member, or a second context for the same cluster
		}
		seen[m.UID] = true
		if err := h.checkMembership(m); err != nil {
			rejected = append(rejected, nonMember{m, err})
			continue
		}
		result.Members = append(result.Members, m)
	}
	for _, s := range rejected {
		result.Unreached = append(result.Unreached, s.unreached(result.Members))
	}
	slices.SortFunc(result.Members, func(a, b *Member) int { return cmp.Compare(a.ID, b.ID) })
	return result, nil
}

// nonMember is a cluster that has a cluster ID but is not a member, with the reason.
type nonMember struct {
	*Member
	err error
}

// unreached sets the cluster ID only if the cluster names the clusterset of the members: a kubeconfig may have contexts of
// several clustersets.
func (s nonMember) unreached(members []*Member) Unreached {
	result := Unreached{Context: s.KubeContext.Name, Err: s.err}
	if len(members) == 0 || slices.ContainsFunc(members, func(m *Member) bool { return m.Clusterset == s.Clusterset }) {
		result.Cluster = s.ID
	}
	return result
}

// identifyAll returns the clusters that answer, in their order, and the contexts that do not.
func identifyAll(ctx context.Context, contexts []KubeContext, timeout time.Duration) ([]*Member, []Unreached) {
	members, errs := make([]*Member, len(contexts)), make([]error, len(contexts))
	var group sync.WaitGroup
	for i, kubeContext := range contexts {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			members[i], errs[i] = identify(ctx, kubeContext)
		})
	}
	group.Wait()
	var found []*Member
	var unreached []Unreached
	for i := range contexts {
		if errs[i] != nil {
			unreached = append(unreached, Unreached{contexts[i].Name, "", errs[i]})
			continue
		}
		found = append(found, members[i])
	}
	return found, unreached
}

// selectHub returns the given context, that of the only hub among the clusters, or that whose URL an agent of them uses.
func (o FindOptions) selectHub(found []*Member) (*KubeContext, error) {
	if o.Hub != nil {
		return o.Hub, nil
	}
	var hubs []*Member
	for _, m := range found {
		if m.hasMembers && !slices.ContainsFunc(hubs, func(h *Member) bool { return h.UID == m.UID }) {
			hubs = append(hubs, m)
		}
	}
	switch len(hubs) {
	case 0:
		return o.hubOfAgents(found)
	case 1:
		return &hubs[0].KubeContext, nil
	}
	var names []string
	for _, h := range hubs {
		names = append(names, h.KubeContext.Name)
	}
	return nil, fmt.Errorf("%w (%s)", ErrTwoHubs, strings.Join(names, ", "))
}

// hubOfAgents returns the known context whose URL the agents of the clusters use.
func (o FindOptions) hubOfAgents(found []*Member) (*KubeContext, error) {
	err := ErrNoHub
	for _, m := range found {
		if m.Agent == nil || m.Agent.Spec.Template.Annotations[AnnotationHub] == "" {
			continue
		}
		url := m.Agent.Spec.Template.Annotations[AnnotationHub]
		for i := range o.Known {
			if strings.TrimRight(o.Known[i].Config.Host, "/") == strings.TrimRight(url, "/") {
				return &o.Known[i], nil
			}
		}
		err = fmt.Errorf("%w; the agent of %s uses the hub at %s, which is the server of no context of the kubeconfig", err, m.ID, url)
	}
	return nil, err
}

// NotRead returns the members on the hub of which no context was read, sorted.
func (c *Clusterset) NotRead() []clusterset.ClusterID {
	ids := slices.DeleteFunc(c.Hub.Records.Members(), func(id clusterset.ClusterID) bool {
		return c.Member(id) != nil || slices.ContainsFunc(c.Unreached, func(u Unreached) bool { return u.Cluster == id })
	})
	slices.Sort(ids)
	return ids
}

// withUnreached adds the contexts that did not answer, because one of them may be the hub.
func withUnreached(err error, unreached []Unreached) error {
	for _, u := range unreached {
		err = fmt.Errorf("%w\n  %s: %w", err, u.Context, u.Err)
	}
	return err
}

// ReadHub reads a hub.
func ReadHub(ctx context.Context, kubeContext KubeContext) (*Hub, error) {
	var clock serverTime
	config := rest.CopyConfig(kubeContext.Config)
	config.Wrap(clock.wrap)
	c, err := hub.Client(config)
	if err != nil {
		return nil, fmt.Errorf("the hub: %w", err)
	}
	snapshot, err := hub.Read(ctx, c)
	if isNotFound(err) {
		return nil, fmt.Errorf("%s at %s: %w", kubeContext.Name, kubeContext.Config.Host, ErrNotHub)
	}
	if err != nil {
		return nil, fmt.Errorf("read the hub at %s: %w", kubeContext.Config.Host, err)
	}
	return newHub(kubeContext, snapshot, clock.now()), nil
}

func newHub(kubeContext KubeContext, snapshot *hub.Snapshot, now time.Time) *Hub {
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
	if h.Records.Member(m.ID) == nil {
		return fmt.Errorf("it calls itself %s, and the hub has no such member: another clusterset's, or one that has not joined", m.ID)
	}
	if beat := h.Records.Heartbeat(m.ID); beat != nil && beat.Spec.ClusterUID != "" && beat.Spec.ClusterUID != m.UID {
		return fmt.Errorf("it calls itself %s, but on the hub that is another cluster (its kube-system has the UID %s)", m.ID, beat.Spec.ClusterUID)
	}
	return nil
}

// Publication returns the publication state of a member's heartbeat; Partial if there is no heartbeat.
func (h *Hub) Publication(id clusterset.ClusterID) hubv1alpha1.Publication {
	if beat := h.Records.Heartbeat(id); beat != nil {
		return beat.Spec.Publication
	}
	return hubv1alpha1.PublicationPartial
}
