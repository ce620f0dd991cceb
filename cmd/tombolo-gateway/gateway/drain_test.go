// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// objects are those of a gateway that has no certificate, and that a slice lists.
type objects struct {
	client.Reader
	remotes  []gatewayv1alpha1.RemoteGateway
	policies []policyv1alpha1.ClusterServiceAccessPolicy
}

func (o *objects) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if export, ok := object.(*mcsv1beta1.ServiceExport); ok {
		export.Status.Conditions = exportedConditions()
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "secrets"}, key.Name)
}

func (o *objects) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *gatewayv1alpha1.RemoteGatewayList:
		l.Items = o.remotes
	case *policyv1alpha1.ClusterServiceAccessPolicyList:
		l.Items = o.policies
	case *corev1.NamespaceList:
		l.Items = []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}
	case *discoveryv1.EndpointSliceList:
		l.Items = []discoveryv1.EndpointSlice{{Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.1.9.1"}}}}}
	}
	return nil
}

// While a gateway drains, the rules and the members that it trusts can change: as long as slices list it, and then until its last stream
// has ended.
//
// spec: A4, G5, G8
func TestChangesWhileDraining(t *testing.T) {
	t.Parallel()
	authority, err := identity.NewAuthority("west", start)
	check.Must(t, err)
	synctest.Test(t, func(t *testing.T) {
		cluster := &objects{}
		options := Options{Listen: "127.0.0.1:0", PodIPs: []string{"10.1.9.1"}, DrainTimeout: time.Minute, Log: logr.Discard()}
		g := newGateway(t.Context(), options, cluster, events.NewFakeRecorder(100))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- g.run(ctx) }()
		synctest.Wait()
		change := func(when string) {
			t.Helper()
			for _, allowed := range []bool{false, true} {
				cluster.policies, cluster.remotes = nil, nil
				if allowed {
					cluster.remotes = []gatewayv1alpha1.RemoteGateway{bundleOf(t, authority)}
				} else {
					cluster.policies = []policyv1alpha1.ClusterServiceAccessPolicy{{Spec: policyv1alpha1.ClusterServiceAccessPolicySpec{
						Tier: policyv1alpha1.TierAdmin, Direction: policyv1alpha1.DirectionExport, Action: policyv1alpha1.ActionDeny,
					}}}
				}
				g.rules.notify()
				g.notify()
				synctest.Wait()
				if refusal := g.rules.exporting.Denied("west", wire.Open{Namespace: "shop", Service: "web"}); (refusal == nil) != allowed {
					t.Errorf("%s: %+v, want allowed: %v", when, refusal, allowed)
				}
				_, trusted := (*g.remotes.Load())["west"]
				check.Equal(t, when+": trusted", allowed, trusted)
			}
		}
		streamEnds := make(chan struct{})
		g.clients.running.Go(func() { <-streamEnds })
		stop()
		synctest.Wait()
		change("while a slice lists the gateway")
		time.Sleep(options.DrainTimeout/2 + time.Second) //nolint:forbidigo // the clock of a synctest bubble
		change("while streams end")
		close(streamEnds)
		check.Must(t, <-ended)
	})
}
