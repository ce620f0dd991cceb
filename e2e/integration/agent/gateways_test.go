// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// inAgentNamespace sets the namespace of an agent, which is also that of the gateways.
func inAgentNamespace(o *agent.Options) { o.Namespace = manifests.AgentNamespace }

// gatewayKey is the key of the Service of a member's gateways.
var gatewayKey = key{Namespace: manifests.AgentNamespace, Name: clusterset.GatewayService}

// installGateway installs a member's gateways: their manifests, the address of their load balancer, which the Member allows, and the
// EndpointSlice of their pods.
func (e *env) installGateway(t *testing.T, id string, addresses ...string) *discoveryv1.EndpointSlice {
	t.Helper()
	m := e.members[id]
	e.ChangeMember(t, id, func(s *hubv1alpha1.MemberSpec) { s.GatewayCIDRs = []hubv1alpha1.CIDR{"198.51.100.0/24"} })
	lab.Must(t, membership.InstallGateway(t.Context(), m.Cluster))
	slice := world.Slice(m.balance(t, "198.51.100.1"), "v4", addresses...)
	slice.Labels[discoveryv1.LabelManagedBy] = "test" // a controller of TestRights deletes its own slices, because there are no pods
	slice.Ports[0].Port = new(int32(8443))
	lab.Must(t, m.Create(t.Context(), slice))
	return slice
}

// balance sets the address of the load balancer of a member's gateways, and returns their Service.
func (m *member) balance(t *testing.T, ip string) *corev1.Service {
	t.Helper()
	service := &corev1.Service{}
	lab.Must(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := m.Get(t.Context(), gatewayKey, service); err != nil {
			return err
		}
		service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ip}}
		return m.Status().Update(t.Context(), service)
	}))
	return service
}

// listens waits until an import has a slice of gateways for a source, with these gateways, and returns its listening port for port 80.
func (m *member) listens(t *testing.T, k key, source string, addresses ...string) int32 {
	t.Helper()
	var port int32
	world.Eventually(t, func(ctx context.Context) error {
		mirrored, err := m.Mirrored(ctx, k)
		if err != nil {
			return err
		}
		for _, slice := range mirrored {
			isGateway := slice.Labels[clusterset.LabelGateway] != "" && slice.AddressType == discoveryv1.AddressTypeIPv4 // as the gateways of these tests
			if slice.Labels[mcsv1beta1.LabelSourceCluster] != source || !isGateway {
				continue
			}
			listen, err := clusterset.ParseListen(slice.Annotations[clusterset.AnnotationGatewayPorts])
			if err != nil {
				return err
			}
			found := world.Addresses(slice)
			if port = listen[80]; port == 0 || strings.Join(found, " ") != strings.Join(addresses, " ") || len(addresses) > 0 && *slice.Ports[0].Port != port {
				return fmt.Errorf("%s has gateways %v at %v, ports %v; want %v", slice.Name, found, listen, slice.Ports, addresses)
			}
			return nil
		}
		found := &mcsv1beta1.ServiceImport{}
		return errors.Join(fmt.Errorf("import %s has no slice of gateways for cluster %s", k, source), m.Get(ctx, k, found), fmt.Errorf("its status is %+v", found.Status))
	})
	return port
}

// Two members with the same pod range are in two networks.
//
// spec: A1, A2, A6, G2, W1, W2, W3, W4
//
//nolint:tparallel // each test begins where the one before it ends
func TestNetworks(t *testing.T) {
	t.Parallel()
	w := newEnv(t, membership.Hub(), lab.Member("a"), lab.Member("b"))
	a, b := w.members["a"], w.members["b"]
	w.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) {
		s.Network, s.Publish, s.PodCIDRs = "cloud", hubv1alpha1.PublishAvailability, []hubv1alpha1.CIDR{"10.1.0.0/16"}
	})
	stop := a.Start(t, inAgentNamespace)
	b.Start(t, inAgentNamespace)
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	_, slice := b.ExportWeb(t, k, "10.1.0.1")

	a.ImportCondition(t, k, conditions.TypeSourceUnusable, metav1.ConditionTrue, conditions.ReasonNetwork,
		`Cluster b is in network cloud, this cluster in network default, and this cluster has no gateway: if the pods of both reach each other, set one network in both Members.`)
	w.installGateway(t, "a", "10.1.9.1", "10.1.9.2")
	a.ImportCondition(t, k, conditions.TypeSourceUnusable, metav1.ConditionTrue, conditions.ReasonNetwork,
		`Cluster b is in network cloud, this cluster in network default, and it publishes no gateway: if the pods of both reach each other, set one network in both Members.`)
	w.installGateway(t, "b", "10.1.9.1")
	port := a.listens(t, k, "b", "10.1.9.1", "10.1.9.2")
	if port < ports.First || port > ports.Last {
		t.Errorf("the listening port is %d", port)
	}
	t.Run("no address leaves the cluster", func(t *testing.T) {
		if records := world.List(t, w.HubClient, &hubv1alpha1.PublishedEndpointsList{}); len(records.Items) > 0 {
			t.Errorf("the hub has endpoints: %+v", records.Items)
		}
	})
	set := func(t *testing.T, to discoveryv1.EndpointConditions) {
		t.Helper()
		world.Update(t, b, client.ObjectKeyFromObject(slice), slice, func() { slice.Endpoints[0].Conditions = to })
	}
	available := *slice.Endpoints[0].Conditions.DeepCopy()
	t.Run("an unavailable source keeps its port", func(t *testing.T) {
		set(t, discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false), Terminating: new(false)})
		lab.Equal(t, "the port", port, a.listens(t, k, "b"))
		set(t, available)
		a.listens(t, k, "b", "10.1.9.1", "10.1.9.2")
	})
	t.Run("the last endpoint terminates", func(t *testing.T) {
		set(t, discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)})
		world.Eventually(t, func(ctx context.Context) error { return a.gatewaysTerminate(ctx, k, true) })
		a.listens(t, k, "b", "10.1.9.1", "10.1.9.2")
		set(t, available)
		world.Eventually(t, func(ctx context.Context) error { return a.gatewaysTerminate(ctx, k, false) })
	})
	t.Run("rules about access", func(t *testing.T) { testAccessStatus(t, w, key{Namespace: k.Namespace, Name: "exported"}) })
	stop()
	a.Start(t, inAgentNamespace)
	t.Run("ports survive a restart", func(t *testing.T) {
		other := key{Namespace: k.Namespace, Name: "other"}
		b.ExportWeb(t, other, "10.1.0.2")
		if first, second := a.listens(t, k, "b", "10.1.9.1", "10.1.9.2"), a.listens(t, other, "b", "10.1.9.1", "10.1.9.2"); first != port || second == port {
			t.Errorf("the ports are %d and %d, want %d and another", first, second, port)
		}
	})
	t.Run("a member of the same network is direct", func(t *testing.T) {
		w.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Network, s.Publish = "", hubv1alpha1.PublishAddresses })
		a.Endpoints(t, k, "b 10.1.0.1:http:8080")
		a.WithoutCondition(t, k, conditions.TypeSourceUnusable)
	})
	t.Run("a lost port is not given again", func(t *testing.T) {
		w.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Network = "cloud" })
		if again := a.listens(t, k, "b", "10.1.9.1", "10.1.9.2"); again == port {
			t.Errorf("port %d was given again within %s", again, ports.Quarantine)
		}
		world.Read(t, a, inAgents("tombolo-gateway-ports"), &corev1.ConfigMap{})
	})
}

// gatewaysTerminate returns nil if the gateways in the slices of an import terminate, or do not.
func (m *member) gatewaysTerminate(ctx context.Context, k key, want bool) error {
	mirrored, err := m.Mirrored(ctx, k)
	if err != nil {
		return err
	}
	found := 0
	for _, s := range mirrored {
		for _, e := range s.Endpoints {
			found++
			if got := e.Conditions.Terminating != nil && *e.Conditions.Terminating; got != want || *e.Conditions.Ready == want {
				return fmt.Errorf("gateway %v has the conditions %+v", e.Addresses, e.Conditions)
			}
		}
	}
	if found == 0 {
		return errors.New("the slices have no gateways")
	}
	return nil
}
