// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/imports"
	"github.com/tombolo-mcs/tombolo/controllers/sources"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
)

// readingTime is how long it may take to list what a member holds.
const readingTime = time.Minute

// Look is a member as its agent sees it: the member through a cache, and the hub as of its snapshot.
type Look struct {
	Member *Member
	hub    *Hub
	store  *hub.Store
	reader sources.Reader
	// member and published write to the member and the hub with the agent's rights, where the administrator may borrow them.
	member, published client.Client
	namespaces        imports.NamespacePolicy
}

// namespaces returns those into which the member imports.
func (m *Member) namespaces() imports.NamespacePolicy {
	return imports.NamespacePolicy{Allowed: m.Settings.AllowedNamespaces, Denied: m.Settings.DenyNamespaces}
}

// Look reads a member, one namespace of it or, where that is empty, all of it. The cache follows the member until ctx ends.
func (m *Member) Look(ctx context.Context, h *Hub, namespace string) (*Look, error) {
	kinds, err := scheme()
	if err != nil {
		return nil, err
	}
	options := cache.Options{Scheme: kinds, DefaultTransform: caches.StripManagedFields}
	if namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	through, err := cache.New(m.Place.Config, options)
	if err != nil {
		return nil, fmt.Errorf("read cluster %s: %w", m.ID, err)
	}
	if err := caches.AddIndexes(ctx, through); err != nil {
		return nil, fmt.Errorf("read cluster %s: %w", m.ID, err)
	}
	go func() { _ = through.Start(ctx) }() // it ends with ctx, and fails only where it is started twice
	waiting, cancel := context.WithTimeout(ctx, readingTime)
	defer cancel()
	for _, object := range []client.Object{&corev1.Service{}, &mcsv1beta1.ServiceExport{}} {
		if _, err := through.GetInformer(waiting, object, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("read cluster %s: %w", m.ID, err)
		}
	}
	if !through.WaitForCacheSync(waiting) {
		return nil, fmt.Errorf("read cluster %s: it has not answered within %s", m.ID, readingTime)
	}
	l := &Look{Member: m, namespaces: m.namespaces()}
	l.reader = sources.Reader{Cluster: m.ID, Member: through, Selector: m.Settings.Selector}
	l.Against(h)
	if l.member, err = borrowed(ctx, m.Place.Config, kinds, manifests.AgentNamespace, manifests.AgentServiceAccount); err != nil {
		return nil, err
	}
	if l.published, err = borrowed(ctx, h.Place.Config, kinds, m.ID.HubNamespace(), manifests.MemberServiceAccount); err != nil {
		return nil, err
	}
	return l, nil
}

// Against has the look use a newer snapshot of the hub.
func (l *Look) Against(h *Hub) {
	l.hub = h
	l.store = h.Snapshot.Store(l.Member.ID, clusterset.AddressRanges{Denied: l.Member.Settings.ServiceCIDRs})
	l.reader.Hub = l.store
}

// Reader returns what reads the member.
func (l *Look) Reader() client.Reader { return l.reader.Member }

// Keys returns the services that are exported or imported here, or on the hub, sorted.
func (l *Look) Keys(ctx context.Context) ([]clusterset.ServiceKey, error) {
	exports, err := l.reader.ExportKeys(ctx)
	if err != nil {
		return nil, err
	}
	imported, err := l.reader.ImportKeys(ctx)
	if err != nil {
		return nil, err
	}
	keys := slices.Concat(l.store.Keys(), exports, imported)
	slices.SortFunc(keys, func(a, b clusterset.ServiceKey) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(keys), nil
}

// state returns what can be known of a member's life at one look. One that is silent is Unknown: what there is of it may
// stay or go.
func (l *Look) state(id clusterset.ClusterID) liveness.State {
	if id == l.Member.ID {
		return liveness.Live
	}
	if l.hub.lifeOf(id).state() == StateConnected {
		return liveness.Live
	}
	return liveness.Unknown
}
