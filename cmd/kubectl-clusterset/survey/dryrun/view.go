// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dryrun runs the controllers of an agent from outside of its cluster: with its settings, its rights and its view of the hub, and with
// dry-run requests only.
package dryrun

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/gather"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// View is a member as its agent sees it: the member through a cache, and a snapshot of the hub.
type View struct {
	Member *survey.Member
	Hub    *survey.Hub
	// Store has the records of the hub as the agent checks them.
	Store *hub.Store
	// Gateways are those of the member.
	Gateways survey.Gateways

	reader gather.Reader
	// memberClient and hubClient write with the rights of the agent, if the user may impersonate it.
	memberClient, hubClient client.Client
}

// Read reads one namespace of a member, or all namespaces if namespace is empty. The cache watches the member until ctx ends.
func Read(ctx context.Context, m *survey.Member, h *survey.Hub, namespace string) (*View, error) {
	kinds, err := survey.Scheme()
	if err != nil {
		return nil, err
	}
	if err := checkReadable(ctx, m, namespace); err != nil {
		return nil, err
	}
	l := &View{Member: m}
	l.reader = gather.Reader{Cluster: m.ID, Grants: m.Client, Unrestricted: m.Client, Selector: m.Settings.Selector}
	if l.Gateways, err = m.ReadGateways(ctx); err != nil {
		return nil, err
	}
	options := cache.Options{Scheme: kinds, DefaultTransform: caches.StripManagedFields}
	if namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{namespace: {}, metav1.NamespaceDefault: {}} // the agent reads the API server's addresses there
	}
	if l.Gateways.Exist { // the agent reads their Service
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
	syncCtx, cancel := context.WithTimeout(ctx, survey.ReadTimeout)
	defer cancel()
	for _, object := range []client.Object{&corev1.Service{}, &mcsv1beta1.ServiceExport{}} {
		if _, err := memberCache.GetInformer(syncCtx, object, cache.BlockUntilSynced(false)); err != nil {
			return nil, fmt.Errorf("read cluster %s: %w", m.ID, err)
		}
	}
	if !memberCache.WaitForCacheSync(syncCtx) {
		return nil, fmt.Errorf("read cluster %s: it has not answered within %s", m.ID, survey.ReadTimeout)
	}
	l.reader.Member = memberCache
	l.setHub(h)
	if l.memberClient, err = impersonate(ctx, m.KubeContext.Config, kinds, manifests.AgentNamespace, manifests.AgentServiceAccount); err != nil {
		return nil, err
	}
	if !h.IsRead() {
		return l, nil // nothing is written to it
	}
	if l.hubClient, err = impersonate(ctx, h.KubeContext.Config, kinds, m.ID.HubNamespace(), manifests.MemberServiceAccount); err != nil {
		return nil, err
	}
	return l, nil
}

// checkReadable returns an error if the settings of the agent or one of the kinds that the cache watches cannot be read. A cache would wait
// for the rights or for the kind.
func checkReadable(ctx context.Context, m *survey.Member, namespace string) error {
	if m.SettingsErr != nil {
		return m.SettingsErr
	}
	for _, list := range []client.ObjectList{
		&corev1.ServiceList{}, &mcsv1beta1.ServiceExportList{}, &mcsv1beta1.ServiceImportList{}, &discoveryv1.EndpointSliceList{},
	} {
		if err := m.Client.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return fmt.Errorf("list %s: %w", clusterset.KindOf(list), err)
		}
	}
	return nil
}

// HasExport reports whether the member exports a service.
func (l *View) HasExport(ctx context.Context, key clusterset.ServiceKey) (bool, error) {
	return l.reader.HasExport(ctx, key)
}

// setHub replaces the snapshot of the hub. A hub that could not be read counts as not listed.
func (l *View) setHub(h *survey.Hub) {
	l.Hub = h
	l.Store = hub.NewStore(l.Member.ID, clusterset.AddressRanges{Denied: l.Member.Settings.ServiceCIDRs})
	if h.IsRead() {
		h.Snapshot.Fill(l.Store)
	}
	l.reader.Hub = l.Store
	l.reader.HostPods = hostPods(l.Member.Client)
}

// hostPods returns a function that finds the pods in the host network by their addresses. It lists them once, when it is first called.
func hostPods(from client.Reader) func(context.Context, netip.Addr) ([]corev1.Pod, error) {
	var mu sync.Mutex
	var found map[string][]corev1.Pod
	return func(ctx context.Context, address netip.Addr) ([]corev1.Pod, error) {
		mu.Lock()
		defer mu.Unlock()
		if found == nil {
			var list corev1.PodList
			if err := from.List(ctx, &list, client.MatchingFields{"spec.hostNetwork": "true"}); err != nil {
				return nil, err
			}
			found = map[string][]corev1.Pod{}
			for i := range list.Items {
				for _, ip := range caches.PodAddresses(&list.Items[i]) {
					found[ip] = append(found[ip], list.Items[i])
				}
			}
		}
		return found[address.String()], nil
	}
}

// Refresh reads the gateways again, and replaces the snapshot of the hub. If the gateways cannot be read, what was read before remains.
func (l *View) Refresh(ctx context.Context, h *survey.Hub) {
	l.setHub(h)
	if g, err := l.Member.ReadGateways(ctx); err == nil {
		l.Gateways = g
	}
}

// Reader returns the reader of the member's cache.
func (l *View) Reader() client.Reader { return l.reader.Member }

// Keys returns the services that this member exports or imports, or that the hub has records of, sorted.
func (l *View) Keys(ctx context.Context) ([]clusterset.ServiceKey, error) {
	exports, err := l.reader.ExportKeys(ctx)
	if err != nil {
		return nil, err
	}
	imported, err := l.reader.ImportKeys(ctx)
	if err != nil {
		return nil, err
	}
	keys := slices.Concat(l.Store.Keys(), exports, imported)
	slices.SortFunc(keys, func(a, b clusterset.ServiceKey) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(keys), nil
}

// livenessOf returns Live for a member that is not silent, otherwise Unknown: then its mirrored slices stay as they are.
func (l *View) livenessOf(id clusterset.ClusterID) liveness.State {
	if id == l.Member.ID {
		return liveness.Live
	}
	if l.Hub.LastHeartbeat(id).State() == survey.StateConnected {
		return liveness.Live
	}
	return liveness.Unknown
}
