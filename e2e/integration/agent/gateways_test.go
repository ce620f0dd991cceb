// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/identity"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/ports"
)

// inAgentNamespace tells an agent its namespace, which is also that of the gateways.
func inAgentNamespace(o *agent.Options) { o.Namespace = manifests.AgentNamespace }

// installGateway creates what the agents see of a member's gateways: their Service, their EndpointSlice and the record on the hub.
func (e *env) installGateway(t *testing.T, id string, addresses ...string) *discoveryv1.EndpointSlice {
	t.Helper()
	m := e.members[id]
	service := world.Service(key{Namespace: manifests.AgentNamespace, Name: clusterset.GatewayService}, world.Port("gateway", 443))
	lab.Must(t, m.Create(t.Context(), service))
	slice := world.Slice(service, "v4", addresses...)
	lab.Must(t, m.Create(t.Context(), slice))
	e.ChangeMember(t, id, func(s *hubv1alpha1.MemberSpec) { s.GatewayCIDRs = []hubv1alpha1.CIDR{"198.51.100.0/24"} })
	authority, err := identity.NewAuthority(clusterset.ClusterID(id), time.Now())
	lab.Must(t, err)
	gateway := &hubv1alpha1.PublishedGateway{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterset.ClusterID(id).HubNamespace(), Name: hubv1alpha1.GatewayName},
		Spec: hubv1alpha1.PublishedGatewaySpec{
			Addresses: []hubv1alpha1.GatewayAddress{{Host: "198.51.100.1", Port: 443}}, Versions: []int32{1},
			Bundle: identity.EncodeBundle([]identity.Authority{authority}),
		},
	}
	world.Eventually(t, func(ctx context.Context) error { return e.HubClient.Create(ctx, gateway.DeepCopy()) })
	return slice
}

// listens waits until an import has a slice of gateways for a source, with these gateways, and returns its listening port for port 80.
func (m *member) listens(t *testing.T, k key, source string, addresses ...string) int32 {
	t.Helper()
	var port int32
	world.Eventually(t, func(ctx context.Context) error {
		slices, err := m.Mirrored(ctx, k)
		if err != nil {
			return err
		}
		for _, slice := range slices {
			if slice.Labels[mcsv1beta1.LabelSourceCluster] != source || slice.Labels[clusterset.LabelGateway] == "" {
				continue
			}
			listen, err := clusterset.ParseListen(slice.Annotations[clusterset.AnnotationGatewayPorts])
			if err != nil {
				return err
			}
			var found []string
			for _, endpoint := range slice.Endpoints {
				found = append(found, endpoint.Addresses...)
			}
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
// spec: G2, W1, W2, W3, W4
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
	port := a.listens(t, k, "b", "10.1.9.1")
	if port < ports.First || port > ports.Last {
		t.Errorf("the listening port is %d", port)
	}
	t.Run("no address leaves the cluster", func(t *testing.T) {
		records := &hubv1alpha1.PublishedEndpointsList{}
		lab.Must(t, w.HubClient.List(t.Context(), records))
		if len(records.Items) > 0 {
			t.Errorf("the hub has endpoints: %+v", records.Items)
		}
	})
	t.Run("an unavailable source keeps its port", func(t *testing.T) {
		world.Update(t, b, key{Namespace: k.Namespace, Name: slice.Name}, slice, func() {
			slice.Endpoints[0].Conditions.Ready, slice.Endpoints[0].Conditions.Serving = new(false), new(false)
		})
		if got := a.listens(t, k, "b"); got != port {
			t.Errorf("the port is %d, want %d", got, port)
		}
		world.Update(t, b, key{Namespace: k.Namespace, Name: slice.Name}, slice, func() {
			slice.Endpoints[0].Conditions.Ready, slice.Endpoints[0].Conditions.Serving = new(true), new(true)
		})
		a.listens(t, k, "b", "10.1.9.1")
	})
	stop()
	a.Start(t, inAgentNamespace)
	t.Run("ports survive a restart", func(t *testing.T) {
		other := key{Namespace: k.Namespace, Name: "other"}
		b.ExportWeb(t, other, "10.1.0.2")
		if first, second := a.listens(t, k, "b", "10.1.9.1"), a.listens(t, other, "b", "10.1.9.2"); first != port || second == port {
			t.Errorf("the ports are %d and %d, want %d and another", first, second, port)
		}
	})
	t.Run("a member of the same network is direct", func(t *testing.T) {
		w.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Network, s.Publish = "", hubv1alpha1.PublishAddresses })
		a.Endpoints(t, k, "b 10.1.0.1:http:8080")
		world.Eventually(t, func(ctx context.Context) error {
			found := &mcsv1beta1.ServiceImport{}
			if err := a.Get(ctx, k, found); err != nil {
				return err
			}
			for _, c := range found.Status.Conditions {
				if c.Type == conditions.TypeSourceUnusable {
					return errors.New(c.Message)
				}
			}
			return nil
		})
	})
	t.Run("a lost port is not given again", func(t *testing.T) {
		w.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Network = "cloud" })
		if again := a.listens(t, k, "b", "10.1.9.1"); again == port {
			t.Errorf("port %d was given again within %s", again, ports.Quarantine)
		}
		if err := a.Get(t.Context(), key{Namespace: manifests.AgentNamespace, Name: "tombolo-gateway-ports"}, &corev1.ConfigMap{}); err != nil {
			t.Error(err)
		}
	})
}
