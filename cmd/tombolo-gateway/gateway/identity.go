// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const (
	// podTimeout is how long a client waits whose address is that of no pod: a pod may connect before the API shows its address.
	podTimeout = 2 * time.Second
	// unknownTime is how long the next clients with such an address do not wait, unless a pod has it meanwhile. maxUnknown is the
	// number of such addresses, and maxWaiting that of clients that wait.
	unknownTime, maxUnknown, maxWaiting = 10 * time.Minute, 1000, 1000
)

// identities finds out who clients are, by the addresses of their pods (A3).
type identities struct {
	cache client.Reader
	clock clock.Clock

	unknown *lru.Cache // when a client with an address has waited for a pod
	waiting atomic.Int32
	mu      sync.Mutex
	changed chan struct{} // closed when a pod is added or has changed
}

func newIdentities(cache client.Reader, c clock.Clock) *identities {
	return &identities{cache: cache, clock: c, unknown: lru.New(maxUnknown), changed: make(chan struct{})}
}

// of returns the namespace and the service account of the pod with an address; nothing if the address is that of a node, of several
// pods, or of none. Some networks send what nodes send from addresses that the API does not know.
func (i *identities) of(ctx context.Context, address netip.Addr) (namespace, account string) {
	timer := i.clock.NewTimer(podTimeout)
	defer timer.Stop()
	defer i.waiting.Add(-1)
	tooMany := i.waiting.Add(1) > maxWaiting
	for {
		changed := i.nextChange()
		pods, err := i.pods(ctx, address)
		switch {
		case err != nil || len(pods) > 1 || len(pods) == 1 && pods[0].Spec.HostNetwork:
			return "", ""
		case len(pods) == 1:
			i.unknown.Remove(address)
			return pods[0].Namespace, pods[0].Spec.ServiceAccountName
		case tooMany || i.isUnknown(address):
			return "", ""
		}
		select {
		case <-ctx.Done():
			return "", ""
		case <-timer.C():
			i.unknown.Add(address, i.clock.Now())
		case <-changed:
		}
	}
}

// now returns who a client is without waiting, and false if no pod has its address yet and no client with this address has waited for one.
func (i *identities) now(ctx context.Context, address netip.Addr) (namespace, account string, known bool) {
	pods, err := i.pods(ctx, address)
	switch {
	case err == nil && len(pods) == 0:
		return "", "", i.isUnknown(address)
	case err != nil || len(pods) > 1 || pods[0].Spec.HostNetwork:
		return "", "", true
	}
	return pods[0].Namespace, pods[0].Spec.ServiceAccountName, true
}

// identify writes who a client is into its request. It waits for its pod only if a rule of this cluster depends on that (A3): if one of the
// other cluster does, its gateway says so.
func (g *gateway) identify(ctx context.Context, to clusterset.ClusterID, request *wire.Open) {
	namespace, account, known := g.pods.now(ctx, request.Client)
	if !known && g.rules.importNeedsClient(to, *request) {
		namespace, account = g.pods.of(ctx, request.Client)
		known = true
	}
	request.ClientNamespace, request.ServiceAccount, request.Unidentified = namespace, account, !known
}

func (i *identities) pods(ctx context.Context, address netip.Addr) ([]corev1.Pod, error) {
	return caches.PodsAt(ctx, i.cache, address)
}

func (i *identities) isUnknown(address netip.Addr) bool {
	since, ok := i.unknown.Get(address)
	return ok && i.clock.Since(since.(time.Time)) < unknownTime
}

func (i *identities) nextChange() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.changed
}

// notify says that a pod was added or has changed.
func (i *identities) notify() {
	i.mu.Lock()
	defer i.mu.Unlock()
	close(i.changed)
	i.changed = make(chan struct{})
}

// compactPod is the transform of the cache of pods: it keeps what identities and the backend rules need.
func compactPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	compacted, err := caches.CompactHostPod(pod)
	result := compacted.(*corev1.Pod)
	result.Spec.ServiceAccountName = pod.Spec.ServiceAccountName
	if name := pod.Labels[labelName]; name == clusterset.GatewayService {
		result.Labels = map[string]string{labelName: name}
	}
	if !pod.Spec.HostNetwork {
		result.Spec.Containers = nil
	}
	return result, err
}

// compactNamespace is the transform of the cache of namespaces: it keeps their labels, and whether they are being deleted.
func compactNamespace(object any) (any, error) {
	namespace, ok := object.(*corev1.Namespace)
	if !ok {
		return object, nil
	}
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace.Name, UID: namespace.UID, ResourceVersion: namespace.ResourceVersion, Labels: namespace.Labels,
		DeletionTimestamp: namespace.DeletionTimestamp,
	}}, nil
}
