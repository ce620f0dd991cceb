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

// Place is an API server that may belong to the clusterset, and what people call it: a context of a kubeconfig.
type Place struct {
	Name   string
	Config *rest.Config
}

// Clusterset is what can be seen of a clusterset.
type Clusterset struct {
	Hub *Hub
	// Members are those that can be reached, by ID.
	Members []*Member
	// Unreached are the places that do not answer, and those that claim to be a member and are none, with the reason.
	Unreached []Unreached
}

// Unreached is a place of which nothing is known, and why.
type Unreached struct {
	Place string
	// Cluster is what it calls itself where it says that it belongs to the same clusterset; else empty.
	Cluster clusterset.ClusterID
	Err     error
}

// Member returns a member that can be reached; nil where there is none of that ID.
func (c *Clusterset) Member(id clusterset.ClusterID) *Member {
	for _, m := range c.Members {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// Hub is what the hub of a clusterset holds.
type Hub struct {
	Place    Place
	Snapshot *hub.Snapshot
	// Records is the snapshot as nobody in particular sees it.
	Records *hub.Store
	// Now is the time of the snapshot, and Renewed when the hub received the members' last heartbeats: both by its clock,
	// so that the difference means something.
	Now     time.Time
	Renewed map[clusterset.ClusterID]time.Time
}

// Errors of Find.
var (
	ErrNoHub   = errors.New("none of the contexts leads to a hub: pass --hub-context, --hub-kubeconfig, or both")
	ErrNotHub  = errors.New("it is no hub, as it has no kind Member: pass the context of the hub in --hub-context, or make this one a hub with \"kubectl clusterset init-hub\"")
	ErrTwoHubs = errors.New("more than one context leads to a hub: say which with --hub-context")
)

// Find asks all places at once who they are, and reads the hub. hubPlace is where the hub is; nil to look for it among
// the places. A place that does not answer in patience is reported, and does not keep others waiting.
func Find(ctx context.Context, places []Place, hubPlace *Place, patience time.Duration) (*Clusterset, error) {
	found, unreached := ask(ctx, places, patience)
	at, err := hubAmong(found, hubPlace)
	if err != nil {
		return nil, explained(err, unreached)
	}
	h, err := ReadHub(ctx, *at)
	if err != nil {
		return nil, err
	}
	result := &Clusterset{Hub: h, Unreached: unreached}
	seen := map[string]bool{}
	var strangers []stranger
	for _, m := range found {
		if m.ID == "" || seen[m.UID] {
			continue // no member of anything, or a second context for the same cluster
		}
		seen[m.UID] = true
		if err := h.admits(m); err != nil {
			strangers = append(strangers, stranger{m, err})
			continue
		}
		result.Members = append(result.Members, m)
	}
	for _, s := range strangers {
		result.Unreached = append(result.Unreached, s.unreached(result.Members))
	}
	slices.SortFunc(result.Members, func(a, b *Member) int { return cmp.Compare(a.ID, b.ID) })
	return result, nil
}

// stranger is a cluster that calls itself a member, and why it is none.
type stranger struct {
	*Member
	why error
}

// unreached names the stranger's ID only where it says that it is of the members' clusterset: a kubeconfig may well lead
// to the clusters of several.
func (s stranger) unreached(members []*Member) Unreached {
	result := Unreached{Place: s.Place.Name, Err: s.why}
	if len(members) == 0 || slices.ContainsFunc(members, func(m *Member) bool { return m.Clusterset == s.Clusterset }) {
		result.Cluster = s.ID
	}
	return result
}

// ask returns the places that answer, in their order.
func ask(ctx context.Context, places []Place, patience time.Duration) ([]*Member, []Unreached) {
	members, errs := make([]*Member, len(places)), make([]error, len(places))
	var group sync.WaitGroup
	for i, place := range places {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, patience)
			defer cancel()
			members[i], errs[i] = identify(ctx, place)
		})
	}
	group.Wait()
	var found []*Member
	var unreached []Unreached
	for i := range places {
		if errs[i] != nil {
			unreached = append(unreached, Unreached{places[i].Name, "", errs[i]})
			continue
		}
		found = append(found, members[i])
	}
	return found, unreached
}

// hubAmong returns where the hub is.
func hubAmong(found []*Member, given *Place) (*Place, error) {
	if given != nil {
		return given, nil
	}
	var hubs []*Member
	for _, m := range found {
		if m.hasMembers && !slices.ContainsFunc(hubs, func(h *Member) bool { return h.UID == m.UID }) {
			hubs = append(hubs, m)
		}
	}
	switch len(hubs) {
	case 0:
		return nil, ErrNoHub
	case 1:
		return &hubs[0].Place, nil
	}
	var names []string
	for _, h := range hubs {
		names = append(names, h.Place.Name)
	}
	return nil, fmt.Errorf("%w (%s)", ErrTwoHubs, strings.Join(names, ", "))
}

// explained adds why places did not answer, of which one may have been the hub.
func explained(err error, unreached []Unreached) error {
	for _, u := range unreached {
		err = fmt.Errorf("%w\n  %s: %w", err, u.Place, u.Err)
	}
	return err
}

// ReadHub returns what a hub holds.
func ReadHub(ctx context.Context, place Place) (*Hub, error) {
	var told serverTime
	config := rest.CopyConfig(place.Config)
	config.Wrap(told.watch)
	c, err := hub.Client(config)
	if err != nil {
		return nil, fmt.Errorf("the hub: %w", err)
	}
	snapshot, err := hub.Read(ctx, c)
	if absent(err) {
		return nil, fmt.Errorf("%s at %s: %w", place.Name, place.Config.Host, ErrNotHub)
	}
	if err != nil {
		return nil, fmt.Errorf("read the hub at %s: %w", place.Config.Host, err)
	}
	return &Hub{
		Place: place, Snapshot: snapshot, Now: told.now(), Renewed: snapshot.Renewed(),
		Records: snapshot.Store("", clusterset.AddressRanges{}),
	}, nil
}

// Silence returns how long the hub has not heard from a member, and false where it never has.
func (h *Hub) Silence(id clusterset.ClusterID) (time.Duration, bool) {
	at, ok := h.Renewed[id]
	if !ok || at.IsZero() {
		return 0, false
	}
	return max(0, h.Now.Sub(at)), true
}

// admits returns nil where a cluster is the member whose ID it bears.
func (h *Hub) admits(m *Member) error {
	if h.Records.Member(m.ID) == nil {
		return fmt.Errorf("it calls itself %s, and the hub has no such member: another clusterset's, or one that has not joined", m.ID)
	}
	if beat := h.Records.Heartbeat(m.ID); beat != nil && beat.Spec.ClusterUID != "" && beat.Spec.ClusterUID != m.UID {
		return fmt.Errorf("it calls itself %s, but on the hub that is another cluster (its kube-system has the UID %s)", m.ID, beat.Spec.ClusterUID)
	}
	return nil
}

// Publication returns how far a member says that its publication has come; Partial if it says nothing.
func (h *Hub) Publication(id clusterset.ClusterID) hubv1alpha1.Publication {
	if beat := h.Records.Heartbeat(id); beat != nil {
		return beat.Spec.Publication
	}
	return hubv1alpha1.PublicationPartial
}
