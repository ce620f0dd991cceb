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

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
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
	// Unread are the API servers that should be read and could not be: first the hub, then the contexts of Unreached that the user has
	// named, or that may lead to members.
	Unread []Unread
}

// Unread is an API server that could not be read. If several contexts lead to it, Context is one of them.
type Unread struct {
	Context string
	IsHub   bool
	apiserver.Failure
}

// String names the API server and the reason.
func (u Unread) String() string {
	switch {
	case u.IsHub && u.Context == "":
		return "the hub could not be read: " + u.Message
	case u.IsHub:
		return fmt.Sprintf("the hub (context %s) could not be read: %s", u.Context, u.Message)
	}
	return fmt.Sprintf("context %s could not be read: %s", u.Context, u.Message)
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
	// KubeContext has no name and no URL if it is not known which API server is the hub.
	KubeContext KubeContext
	// Err is why the hub could not be read; nil if it was. Then the hub has no records: missing data never counts as deletion.
	Err      error
	Snapshot *hub.Snapshot
	// Version is the version of the hub; empty if it is not known.
	Version string
	// Records is the snapshot as a store without a local cluster.
	Records *hub.Store
	// Now is the time of the snapshot, and Renewed the times at which the hub received the last heartbeats. Both are by the hub's
	// clock, so that they can be compared.
	Now     time.Time
	Renewed map[clusterset.ClusterID]time.Time
}

// Errors of Find.
var (
	ErrNoHub     error = apiserver.CompleteError("none of the contexts that were read leads to a hub: pass --hub-context, --hub-kubeconfig, or both")
	ErrNotHub    error = apiserver.CompleteError("it is no hub, as it has no kind Member: pass the context of the hub in --hub-context, or make this one a hub with \"kubectl clusterset init-hub\"")
	ErrNotMember error = apiserver.CompleteError("it is no member of this clusterset")
	ErrTwoHubs         = errors.New("more than one of the contexts that were read leads to a hub: say which with --hub-context")
)

// FindOptions say where a clusterset is.
type FindOptions struct {
	// Contexts are read.
	Contexts []KubeContext
	// Selection says whether the user has named the contexts.
	Selection Selection
	// Hub is the context of the hub. If it is nil, the hub is one of Contexts, or that of Known whose URL the agent of a member uses.
	Hub   *KubeContext
	Known []KubeContext
	// Timeout is the time after which a context that does not answer is reported in Unreached.
	Timeout time.Duration
}

// Selection says how contexts were selected.
type Selection string

// Values of Selection.
const (
	// Named: the user has named each context, or it is the current one.
	Named Selection = "Named"
	// All: they are all contexts of the kubeconfig, and some of them may have nothing to do with the clusterset.
	All Selection = "All"
)

// Find identifies the contexts in parallel, and reads the hub. What cannot be read is in Unread. It returns an error if nothing shows which
// API server is the hub.
func Find(ctx context.Context, o FindOptions) (*Clusterset, error) {
	var h *Hub
	var reading sync.WaitGroup
	if o.Hub != nil {
		reading.Go(func() { h = o.readHub(ctx, *o.Hub) })
	}
	found, unreached := identifyAll(ctx, o.Contexts, o.Timeout)
	reading.Wait()
	if h == nil {
		var err error
		if h, err = o.findHub(ctx, found, unreached); err != nil {
			return nil, err
		}
	}
	result := newClusterset(h, found, unreached)
	if other := o.unreachedHub(result, found); other != nil {
		result = newClusterset(other, found, unreached)
	}
	result.Unread = o.unread(result)
	return result, ctx.Err()
}

// newClusterset returns the clusters of the found ones that are members on a hub. If the hub was not read, all clusters with a cluster ID
// count as members.
func newClusterset(h *Hub, found []*Member, unreached []Unreached) *Clusterset {
	result := &Clusterset{Hub: h, Unreached: slices.Clone(unreached)}
	seen := map[string]bool{}
	var rejected []nonMember
	for _, m := range found {
		if m.ID == "" {
			continue // not a member
		}
		if err := h.checkCopy(m); err != nil { // it has the UID of the member
			rejected = append(rejected, nonMember{m, err})
			continue
		}
		if seen[m.UID] {
			continue // a second context for the same cluster
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
	return result
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
			if errs[i] != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
				errs[i] = apiserver.NoAnswerError{Limit: timeout}
			}
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
