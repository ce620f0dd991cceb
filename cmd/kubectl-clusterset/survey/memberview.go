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

// readTimeout limits the time to list the objects of a member.
const readTimeout = time.Minute

// MemberView is a member as its agent sees it: the member through a cache, and a snapshot of the hub.
type MemberView struct {
	Member *Member
	hub    *Hub
	store  *hub.Store
	reader sources.Reader
	// memberClient and hubClient write with the rights of the agent, if the user may impersonate it.
	memberClient, hubClient client.Client
	namespaces              imports.NamespacePolicy
	gateways                gateways
}

// namespaces returns the policy for the namespaces into which the member imports.
func (m *Member) namespaces() imports.NamespacePolicy {
	return imports.NamespacePolicy{Allowed: m.Settings.AllowedNamespaces, Denied: m.Settings.DenyNamespaces}
}

// Read reads one namespace of a member, or all namespaces if namespace is empty. The cache watches the member until ctx ends.
func (m *Member) Read(ctx context.Context, h *Hub, namespace string) (*MemberView, error) {
	kinds, err := scheme()
	if err != nil {
		return nil, err
	}
	l := &MemberView{Member: m, namespaces: m.namespaces()}
	l.reader = sources.Reader{Cluster: m.ID, Grants: m.Client, Selector: m.Settings.Selector}
	if l.gateways, err = m.readGateways(ctx); err != nil {
		return nil, err
	}
	options := cache.Options{Scheme: kinds, DefaultTransform: caches.StripManagedFields}
	if namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{namespace: {}}
	}
	if l.gateways.exist { // the agent reads their Service
		l.reader.AgentNamespace = manifests.AgentNamespace
		if namespace != "" {
			options.DefaultNamespaces[manifests.AgentNamespace] = cache.Config{}
		}
	}
	memberCache, err := cache.New(m.KubeContext.Config, options)
	if err != nil {
		return nil, fmt.Errorf("read cluster %s: %w", m.ID, err)
	}
	if err := caches.AddIndexes(ctx, memberCache); err != nil {
		return nil, fmt.Errorf("read cluster %s: %w", m.ID, err)
	}
	go func() { _ = memberCache.Start(ctx) }() // it stops with ctx, and fails only if it is started twice
	syncCtx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	for _, object := range []client.Object{&corev1.Service{}, &mcsv1beta1.ServiceExport{}} {
		if _, err := memberCache.GetInformer(syncCtx, object, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("read cluster %s: %w", m.ID, err)
		}
	}
	if !memberCache.WaitForCacheSync(syncCtx) {
		return nil, fmt.Errorf("read cluster %s: it has not answered within %s", m.ID, readTimeout)
	}
	l.reader.Member = memberCache
	l.setHub(h)
	if l.memberClient, err = impersonate(ctx, m.KubeContext.Config, kinds, manifests.AgentNamespace, manifests.AgentServiceAccount); err != nil {
		return nil, err
	}
	if l.hubClient, err = impersonate(ctx, h.KubeContext.Config, kinds, m.ID.HubNamespace(), manifests.MemberServiceAccount); err != nil {
		return nil, err
	}
	return l, nil
}

// setHub replaces the snapshot of the hub.
func (l *MemberView) setHub(h *Hub) {
	l.hub = h
	l.store = h.Snapshot.Store(l.Member.ID, clusterset.AddressRanges{Denied: l.Member.Settings.ServiceCIDRs})
	l.reader.Hub = l.store
}

// Refresh reads the gateways again, and replaces the snapshot of the hub.
func (l *MemberView) Refresh(ctx context.Context, h *Hub) (err error) {
	l.setHub(h)
	l.gateways, err = l.Member.readGateways(ctx)
	return err
}

// Reader returns the reader of the member's cache.
func (l *MemberView) Reader() client.Reader { return l.reader.Member }

// Keys returns the services that this member exports or imports, or that the hub has records of, sorted.
func (l *MemberView) Keys(ctx context.Context) ([]clusterset.ServiceKey, error) {
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

// livenessOf returns Live for a member that is not silent, otherwise Unknown: then its mirrored slices stay as they are.
func (l *MemberView) livenessOf(id clusterset.ClusterID) liveness.State {
	if id == l.Member.ID {
		return liveness.Live
	}
	if l.hub.lastHeartbeat(id).state() == StateConnected {
		return liveness.Live
	}
	return liveness.Unknown
}
