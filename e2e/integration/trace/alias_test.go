// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestTraceAlias: a trace of an alias follows its import, and names what breaks the import before it names the alias.
//
// spec: L1
func TestTraceAlias(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	ns := world.Namespace(t, w.a, w.b)
	web, all := clusterset.ServiceKey{Namespace: ns, Name: "web"}, clusterset.ServiceKey{Namespace: ns, Name: "all"}
	_, slice := w.a.ExportWeb(t, web, "10.1.0.1")
	alias := world.Service(all, world.Port("main", 80))
	alias.Annotations = map[string]string{clusterset.AnnotationImport: "web"}
	lab.Must(t, w.b.Create(t.Context(), alias))
	is := func(hop survey.Hop, cluster clusterset.ClusterID, state survey.Health, text string) func(survey.Step) bool {
		return func(s survey.Step) bool {
			return s.Hop == hop && s.Cluster == cluster && s.State == state && strings.Contains(s.Found, text)
		}
	}
	comesTo := func(what string, key clusterset.ServiceKey, wanted func(survey.TraceResult) bool) {
		t.Helper()
		if traced, ok := w.comesTo(t, key, wanted); !ok || traced.Key != key {
			t.Errorf("%s: trace of %s:\n%s", what, traced.Key, show(traced))
		}
	}
	brokenAt := func(hop survey.Hop, cluster clusterset.ClusterID, text string) func(survey.TraceResult) bool {
		return func(traced survey.TraceResult) bool {
			broken := traced.Broken()
			return broken != nil && broken.Fix != "" && is(hop, cluster, survey.Broken, text)(*broken)
		}
	}
	annotate := func(value string) {
		t.Helper()
		world.Update(t, w.b, all, alias, func() { alias.Annotations[clusterset.AnnotationImport] = value })
	}

	comesTo("works", all, func(traced survey.TraceResult) bool {
		return traced.Broken() == nil && slices.ContainsFunc(traced.Steps, is(survey.HopProxy, "b", survey.OK, "http 1")) &&
			slices.ContainsFunc(traced.Steps, is(survey.HopAlias, "b", survey.OK, "the Service has the endpoints of ServiceImport web at the ports main/TCP"))
	})
	testSlowServers(t, w, all)
	annotate("bank/web")
	comesTo("another namespace", all, brokenAt(survey.HopAlias, "b", "is refused"))
	annotate("none")
	comesTo("not exported", all, brokenAt(survey.HopExport, "", "no cluster exports it"))
	annotate("web")
	world.Update(t, w.a, client.ObjectKeyFromObject(slice), slice, func() {
		slice.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: new(false)}
	})
	comesTo("the import is broken", all, brokenAt(survey.HopEndpoints, "a", ""))
	world.Update(t, w.a, client.ObjectKeyFromObject(slice), slice, func() {
		slice.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: new(true)}
	})
	world.Update(t, w.b, all, alias, func() { alias.Spec.Ports[0].Protocol = corev1.ProtocolUDP })
	comesTo("no port", all, brokenAt(survey.HopAlias, "b", "the import has no port like main/UDP"))

	own := world.Service(web, world.Port("main", 80)) // of the name that a exports
	own.Annotations = map[string]string{clusterset.AnnotationImport: "web"}
	lab.Must(t, w.b.Create(t.Context(), own))
	comesTo("the name of the import", web, func(traced survey.TraceResult) bool {
		return traced.Broken() == nil && slices.ContainsFunc(traced.Steps, is(survey.HopAlias, "b", survey.OK, "the Service has the endpoints of ServiceImport web"))
	})
}
