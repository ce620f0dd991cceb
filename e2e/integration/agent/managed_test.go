// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/audit"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// TestManaged: an agent that runs beside the hub, with the rights that the overlays for that give, chooses its leader there,
// and needs nothing in the member but what they give.
func TestManaged(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withControllers(membership.Hub()), withControllers(lab.Member("cluster-a"))) // as the overlay calls it
	a, home := w.members["cluster-a"], "member-cluster-a"
	onHub, err := manifests.Render("overlays/managed")
	lab.Must(t, err)
	inMember, err := manifests.Render("overlays/managed-member")
	lab.Must(t, err)
	applyAll(t, w.Hub, onHub)
	applyAll(t, a.Cluster, inMember)
	inAgents := metav1.ObjectMeta{Namespace: manifests.AgentNamespace, Name: manifests.AgentServiceAccount}
	for _, unneeded := range []client.Object{&rbacv1.RoleBinding{ObjectMeta: inAgents}, &rbacv1.Role{ObjectMeta: inAgents}} {
		lab.Must(t, a.Delete(t.Context(), unneeded))
	}

	beside := func(o *agent.Options) {
		o.AgentCluster, o.Namespace, o.DenyNamespaces = o.Hub, home, []string{manifests.AgentNamespace}
	}
	a.lead(t, w.HubClient, home, beside)
	world.Read(t, w.HubClient, key{Namespace: home, Name: "tombolo-agent"}, &coordinationv1.Lease{})
	if elsewhere := world.List(t, a, &coordinationv1.LeaseList{}, client.InNamespace(manifests.AgentNamespace)); len(elsewhere.Items) > 0 {
		t.Errorf("there are leases in the member, too: %v", elsewhere.Items)
	}

	stop := a.Start(t, beside)
	k := key{Namespace: world.Namespace(t, a), Name: "web"}
	a.ExportWeb(t, k, "10.1.0.1")
	a.Endpoints(t, k, "cluster-a 10.1.0.1:http:8080")
	a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
	stop()

	ofAll, err := manifests.Hub()
	lab.Must(t, err)
	there, err := audit.Misfits(key{Namespace: home, Name: manifests.MemberServiceAccount}, append(ofAll, onHub...), w.Hub.AuditLog())
	lab.Must(t, err)
	here, err := audit.Misfits(key{Namespace: manifests.AgentNamespace, Name: manifests.AgentServiceAccount}, inMember, a.Cluster.AuditLog())
	lab.Must(t, err)
	for _, problem := range append(there, here...) { // TestRights is about the rights that agents need anywhere
		if strings.HasPrefix(problem, "refused") || strings.HasSuffix(problem, "tombolo-agent-lease") {
			t.Error(problem)
		}
	}
}

func applyAll(t *testing.T, cluster *lab.Cluster, objects []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		world.Eventually(t, func(ctx context.Context) error { return membership.Apply(ctx, cluster, o) })
	}
}
