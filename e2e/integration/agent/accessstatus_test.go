// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// grant returns a grant of an export to the cluster b.
func grant(namespace, export string) *policyv1alpha1.ServiceExportGrant {
	return &policyv1alpha1.ServiceExportGrant{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "grant"},
		Spec: policyv1alpha1.ServiceExportGrantSpec{
			Exports: []policyv1alpha1.ObjectName{policyv1alpha1.ObjectName(export)}, To: []policyv1alpha1.Peer{{Clusters: []policyv1alpha1.ClusterID{"b"}}},
		},
	}
}

// policy returns a policy that denies imports from the cluster b.
func policy(name string) *policyv1alpha1.ClusterServiceAccessPolicy {
	return &policyv1alpha1.ClusterServiceAccessPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: policyv1alpha1.ClusterServiceAccessPolicySpec{
			Tier: policyv1alpha1.TierAdmin, Direction: policyv1alpha1.DirectionImport, Action: policyv1alpha1.ActionDeny,
			Peers: []policyv1alpha1.Peer{{Clusters: []policyv1alpha1.ClusterID{"b"}}},
		},
	}
}

// reasons waits until the conditions of a grant or a policy have these reasons.
func (m *member) reasons(t *testing.T, object client.Object, accepted, enforced string) {
	t.Helper()
	world.Eventually(t, func(ctx context.Context) error {
		if err := m.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		var found []metav1.Condition
		switch o := object.(type) {
		case *policyv1alpha1.ServiceExportGrant:
			found = o.Status.Conditions
		case *policyv1alpha1.ClusterServiceAccessPolicy:
			found = o.Status.Conditions
		}
		got := map[string]string{}
		for _, c := range found {
			if c.ObservedGeneration == object.GetGeneration() {
				got[c.Type] = c.Reason
			}
		}
		want := map[string]string{policyv1alpha1.ConditionAccepted: accepted, policyv1alpha1.ConditionEnforced: enforced}
		if diff := cmp.Diff(want, got); diff != "" {
			return fmt.Errorf("%s: conditions of %s (-want +got):\n%s", m.ID, client.ObjectKeyFromObject(object), diff)
		}
		return nil
	})
}

// testAccessStatus: the agent of a, whose gateways were installed after it has started, says where rules are enforced. b is in another
// network.
func testAccessStatus(t *testing.T, w *env, k key) {
	a := w.members["a"]
	g, p := grant(k.Namespace, k.Name), policy("no-imports-from-b")
	lab.Must(t, a.Create(t.Context(), g))
	lab.Must(t, a.Create(t.Context(), p))
	a.reasons(t, g, policyv1alpha1.ReasonExportsNotFound, policyv1alpha1.ReasonEnforced)
	a.reasons(t, p, policyv1alpha1.ReasonAccepted, policyv1alpha1.ReasonEnforced)
	lab.Must(t, a.Create(t.Context(), world.Export(k)))
	a.reasons(t, g, policyv1alpha1.ReasonAccepted, policyv1alpha1.ReasonEnforced)
	lab.Must(t, a.Delete(t.Context(), world.Export(k)))
	a.reasons(t, g, policyv1alpha1.ReasonExportsNotFound, policyv1alpha1.ReasonEnforced)
	// The schema does not check the operators of selectors.
	world.Update(t, a, client.ObjectKeyFromObject(p), p, func() {
		p.Spec.NamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "stage", Operator: "Likes"}}}
	})
	a.reasons(t, p, policyv1alpha1.ReasonInvalidSelector, policyv1alpha1.ReasonEnforced)
	w.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Network = "" })
	a.reasons(t, p, policyv1alpha1.ReasonInvalidSelector, policyv1alpha1.ReasonEnforced) // b publishes no addresses
	a.reasons(t, g, policyv1alpha1.ReasonExportsNotFound, policyv1alpha1.ReasonSameNetwork)
	w.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Network = "cloud" })
	a.reasons(t, g, policyv1alpha1.ReasonExportsNotFound, policyv1alpha1.ReasonEnforced)
	lab.Must(t, a.Delete(t.Context(), g))
	lab.Must(t, a.Delete(t.Context(), p))
}
