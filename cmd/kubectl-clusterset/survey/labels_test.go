// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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

// TestGaps: the agent's flags, the labelled Services of namespace shop, and the gaps between them.
//
// spec: P3
func TestGaps(t *testing.T) {
	t.Parallel()
	external := labelled("shop", "db")
	external.Spec.Type = corev1.ServiceTypeExternalName
	a, b, c := labelled("shop", "a"), labelled("shop", "b"), labelled("shop", "c")
	const disabled, pending, beyond = "the agent exports nothing by label", "the agent has not created its ServiceExport", "the agent exports at most 1 Service of a namespace by label"
	for name, tc := range map[string]struct {
		agent    *appsv1.Deployment
		services []*corev1.Service
		want     []string
	}{
		"no flag":          {agentWith("--v=1"), []*corev1.Service{b, a}, []string{"shop/a: " + disabled, "shop/b: " + disabled}},
		"switched off":     {agentWith("--auto-export=false"), []*corev1.Service{a}, []string{"shop/a: " + disabled}},
		"not created yet":  {agentWith("--auto-export"), []*corev1.Service{a, b}, []string{"shop/a: " + pending, "shop/b: " + pending}},
		"beyond the limit": {agentWith("--auto-export=true", "--auto-export-limit=1"), []*corev1.Service{a, b, c}, []string{"shop/a: " + pending, "shop/b: " + beyond, "shop/c: " + beyond}},
		"cannot be exported": {agentWith("--auto-export"), []*corev1.Service{external}, []string{
			"shop/db: Service db is of type ExternalName, which cannot be exported. Use ClusterIP, NodePort, LoadBalancer or a headless Service",
		}},
		"the agent runs elsewhere, its flags are not known": {nil, []*corev1.Service{a}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &Member{ID: "east", Agent: tc.agent}
			check.Must(t, m.Settings.parse(tc.agent))
			var got []string
			for _, gap := range m.Gaps("shop", nil, tc.services, nil) {
				got = append(got, gap.Key().String()+": "+gap.Why())
			}
			check.Equal(t, "gaps", tc.want, got)
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
