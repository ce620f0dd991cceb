// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/autoexport"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// agentWith returns a Deployment of an agent with these arguments.
func agentWith(args ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Args: args}}
	return d
}

// labelled returns a Service with the label for automatic export.
func labelled(namespace, name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{clusterset.LabelAutoExport: "true"}},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}},
	}
}

// TestProblemsOfLabels: the agent's flags and the labelled Services of namespace shop, and what status reports.
//
// spec: P3
func TestProblemsOfLabels(t *testing.T) {
	t.Parallel()
	external := labelled("shop", "db")
	external.Spec.Type = corev1.ServiceTypeExternalName
	a, b, c := labelled("shop", "a"), labelled("shop", "b"), labelled("shop", "c")
	problem := func(service, message, trace string) Problem {
		return Problem{
			Severity: SeverityWarning, Reason: ReasonNotExportedByLabel, Member: "east", Service: service,
			Message: "A label (tombolo-mcs.io/auto-export) asks to export " + message, Next: "See what to do: kubectl clusterset trace " + trace,
		}
	}
	for name, tc := range map[string]struct {
		agent    *appsv1.Deployment
		services []*corev1.Service
		want     []Problem
	}{
		"no flag":          {agentWith("--v=1"), []*corev1.Service{b, a, c}, []Problem{problem("", "shop/a and 2 more Services, but the agent exports nothing by label.", "shop/a")}},
		"one Service":      {agentWith(), []*corev1.Service{a}, []Problem{problem("", "shop/a, but the agent exports nothing by label.", "shop/a")}},
		"switched off":     {agentWith("--auto-export=false"), []*corev1.Service{a}, []Problem{problem("", "shop/a, but the agent exports nothing by label.", "shop/a")}},
		"not created yet":  {agentWith("--auto-export"), []*corev1.Service{a, b, c}, nil},
		"beyond the limit": {agentWith("--auto-export=true", "--auto-export-limit=1"), []*corev1.Service{a, b, c}, []Problem{problem("shop/b", "shop/b and 1 more Service, but the agent exports at most 1 Service of a namespace by label.", "shop/b")}},
		"cannot be exported": {agentWith("--auto-export"), []*corev1.Service{external}, []Problem{problem("shop/db",
			"shop/db, but Service db is of type ExternalName, which cannot be exported. Use ClusterIP, NodePort, LoadBalancer or a headless Service.", "shop/db")}},
		"the agent runs elsewhere, its flags are not known": {nil, []*corev1.Service{a}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &Member{ID: "east", Agent: tc.agent}
			check.Must(t, m.Settings.parse(tc.agent))
			a := &assessment{}
			a.problemsOfLabels(MemberObjects{ID: "east", Gaps: m.gapsOf("shop", nil, tc.services, nil)})
			check.Equal(t, "problems", tc.want, a.problems)
		})
	}
}

// TestGapFix: each gap has a reason and what to do.
//
// spec: P3
func TestGapFix(t *testing.T) {
	t.Parallel()
	const export = "kubectl clusterset export a --namespace shop --context admin@east"
	for reason, want := range map[autoexport.Reason][]string{
		autoexport.ReasonDisabled:      {"the agent exports nothing by label", export + ", or let the agent export by label (join --auto-export)"},
		autoexport.ReasonBeyondLimit:   {"the agent exports at most 100 Services of a namespace by label", export + ", or raise the agent's --auto-export-limit"},
		autoexport.ReasonPending:       {"the agent has not created its ServiceExport", ""},
		autoexport.ReasonNotExportable: {"it is reserved", ""},
	} {
		gap := LabelGap{autoexport.Gap{Service: labelled("shop", "a"), Reason: reason, Obstacle: "it is reserved."}, autoexport.DefaultLimit}
		check.Equal(t, string(reason), want, []string{gap.Why(), gap.Fix("admin@east")})
	}
}

// TestExportedBy: what trace says of a label and a ServiceExport.
//
// spec: P3
func TestExportedBy(t *testing.T) {
	t.Parallel()
	type labels = map[string]string
	users, ours := &mcsv1beta1.ServiceExport{}, &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{
		Labels: labels{clusterset.LabelManagedBy: clusterset.ManagedBy}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: clusterset.FieldManager}},
	}}
	taken := ours.DeepCopy()
	taken.ManagedFields = append(taken.ManagedFields, metav1.ManagedFieldsEntry{Manager: "kubectl-edit"})
	label, excluded := labels{clusterset.LabelAutoExport: "true"}, labels{clusterset.LabelAutoExport: "false"}
	const byLabel, byUser = ", because of the label tombolo-mcs.io/auto-export", ", by a user's ServiceExport: the label tombolo-mcs.io/auto-export has no effect"
	for name, tc := range map[string]struct {
		export             *mcsv1beta1.ServiceExport
		service, namespace labels
		want               string
	}{
		"no label":                         {export: users},
		"automatic":                        {export: ours, service: label, want: byLabel},
		"automatic, of the Namespace":      {export: ours, namespace: label, want: byLabel},
		"a user's own":                     {export: users, service: label, want: byUser},
		"a user's own, of the Namespace":   {export: users, namespace: label, want: byUser},
		"a user's own, although excluded":  {export: users, service: excluded, namespace: label, want: byUser},
		"a user's own, and another reason": {export: users, namespace: excluded},
		"automatic, and edited":            {export: taken, service: label, want: byUser},
	} {
		check.Equal(t, name, tc.want, exportedBy(tc.export, tc.service, tc.namespace))
	}
}
