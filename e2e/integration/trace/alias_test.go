// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/trace"
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
	alias.Annotations, alias.Spec.IPFamilyPolicy = map[string]string{clusterset.AnnotationImport: "web"}, new(corev1.IPFamilyPolicySingleStack)
	lab.Must(t, w.b.Create(t.Context(), alias))
	annotate := func(value string) {
		t.Helper()
		world.Update(t, w.b, all, alias, func() { alias.Annotations[clusterset.AnnotationImport] = value })
	}

	w.shows(t, "works", all, func(traced trace.Result) bool {
		return traced.Broken() == nil && slices.ContainsFunc(traced.Steps, is(trace.HopProxy, "b", trace.OK, "http 1")) &&
			slices.ContainsFunc(traced.Steps, is(trace.HopAlias, "b", trace.OK, "the Service has the endpoints of ServiceImport web at the ports main/TCP"))
	})
	testSlowServers(t, w, all)
	annotate("bank/web")
	w.shows(t, "another namespace", all, brokenAt(trace.HopAlias, "b", "is refused"))
	annotate("none")
	w.shows(t, "not exported", all, brokenAt(trace.HopExport, "", "no cluster exports it"))
	annotate("web")
	world.Update(t, w.a, client.ObjectKeyFromObject(slice), slice, func() {
		slice.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: new(false)}
	})
	w.shows(t, "the import is broken", all, brokenAt(trace.HopEndpoints, "a", ""))
	world.Update(t, w.a, client.ObjectKeyFromObject(slice), slice, func() {
		slice.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: new(true)}
	})
	local := new(corev1.ServiceInternalTrafficPolicyLocal)
	world.Update(t, w.b, all, alias, func() { alias.Spec.InternalTrafficPolicy = local })
	w.shows(t, "a traffic policy drops all traffic", all, brokenAt(trace.HopAlias, "b", "internalTrafficPolicy is Local"))
	world.Update(t, w.b, all, alias, func() { alias.Spec.InternalTrafficPolicy = nil })
	world.Update(t, w.b, all, alias, func() { alias.Spec.Ports[0].Protocol = corev1.ProtocolUDP })
	w.shows(t, "no port", all, brokenAt(trace.HopAlias, "b", "the import has no port like main/UDP"))

	own := world.Service(web, world.Port("main", 80)) // of the name that a exports
	own.Annotations, own.Spec.IPFamilyPolicy = map[string]string{clusterset.AnnotationImport: "web"}, new(corev1.IPFamilyPolicySingleStack)
	lab.Must(t, w.b.Create(t.Context(), own))
	w.shows(t, "the name of the import", web, func(traced trace.Result) bool {
		return traced.Broken() == nil && slices.ContainsFunc(traced.Steps, is(trace.HopAlias, "b", trace.OK, "the Service has the endpoints of ServiceImport web"))
	})
}

// delay is how late each response is: a trace takes longer than the service has time to settle.
const delay = 300 * time.Millisecond

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

func late(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		waiting, cancel := context.WithTimeout(request.Context(), delay)
		defer cancel()
		<-waiting.Done()
		return next.RoundTrip(request)
	})
}

// testSlowServers: the time that a service has to settle does not limit the time that slow API servers have to answer.
func testSlowServers(t *testing.T, w *env, key clusterset.ServiceKey) {
	t.Helper()
	var contexts []survey.KubeContext
	for _, c := range []*lab.Cluster{w.Hub, w.a.Cluster, w.b.Cluster} {
		config := c.Config()
		config.Wrap(late)
		contexts = append(contexts, survey.KubeContext{Name: c.Name, Config: config})
	}
	found, err := survey.Find(t.Context(), survey.FindOptions{Contexts: contexts, Timeout: world.Within})
	lab.Must(t, err)
	traced, err := trace.Run(t.Context(), trace.Options{Clusterset: found, Key: key, From: w.b.id, Resolve: w.resolve, Settle: delay})
	if err != nil || len(traced.Steps) == 0 {
		t.Errorf("the trace has %d steps, %v", len(traced.Steps), err)
	}
}
