// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/conditions"
)

// TestAliasThroughGateways: an alias has the gateways of its import at their listening port, but is no configuration of them.
//
// spec: L1, G2
func TestAliasThroughGateways(t *testing.T) {
	t.Parallel()
	w := newEnv(t, membership.Hub(), lab.Member("a"), lab.Member("b"))
	a, b := w.members["a"], w.members["b"]
	w.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Network, s.Publish = "cloud", hubv1alpha1.PublishAvailability })
	a.Start(t, released)
	b.Start(t, released)
	w.installGateway(t, "a", "10.1.9.1")
	w.installGateway(t, "b", "10.1.9.1")
	ns := world.Namespace(t, a, b)
	web, all, headless := key{Namespace: ns, Name: "web"}, key{Namespace: ns, Name: "all"}, key{Namespace: ns, Name: "pods"}
	b.ExportWeb(t, web, "10.2.0.1")
	port := a.listens(t, web, "b", "10.1.9.1")
	lab.Must(t, a.Create(t.Context(), aliasOf("web", world.Service(all, world.Port("main", 80)))))
	lab.Must(t, a.Create(t.Context(), aliasOf("web", world.Headless(headless, world.Port("http", 80)))))
	a.alias(t, all, fmt.Sprintf("b 10.1.9.1:main:%d", port))
	a.aliased(t, headless, metav1.ConditionTrue, conditions.ReasonEndpointsLeftOut, "the endpoints of b are left out, because they are reached through gateways")
	a.alias(t, headless)
	found, err := a.aliasSlices(t.Context(), all)
	lab.Must(t, err)
	for _, slice := range found {
		if slice.Labels[clusterset.LabelGateway] != "" || len(slice.Annotations) > 0 {
			t.Errorf("gateways read slice %s: labels %v, annotations %v", slice.Name, slice.Labels, slice.Annotations)
		}
	}
}
