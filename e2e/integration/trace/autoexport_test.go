// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/trace"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/watch"
	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestTraceLabel: trace and status say why a Service with the label for automatic export has no ServiceExport: its agent exports nothing
// by label, or the namespace has as many automatic exports as it creates. trace says whose export a labelled Service has.
//
// spec: P3
func TestTraceLabel(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	ns := world.Namespace(t, w.a, w.b)
	key := func(name string) clusterset.ServiceKey { return clusterset.ServiceKey{Namespace: ns, Name: name} }
	label := func(name string) {
		t.Helper()
		service := &corev1.Service{}
		world.Update(t, w.a, key(name), service, func() { service.Labels = map[string]string{clusterset.LabelAutoExport: "true"} })
	}
	exported := func(text string) func(trace.Result) bool {
		return func(traced trace.Result) bool {
			return traced.Broken() == nil && slices.ContainsFunc(traced.Steps, func(s trace.Step) bool {
				return s.Hop == trace.HopExport && s.Cluster == "a" && s.State == trace.OK && strings.HasSuffix(s.Found, text)
			})
		}
	}
	reported := func(text string) {
		t.Helper()
		found, err := w.find(t.Context())
		lab.Must(t, err)
		problems := watch.Once(t.Context(), found).InNamespace(ns).Problems
		if !slices.ContainsFunc(problems, func(p assess.Problem) bool {
			return p.Reason == assess.ReasonNotExportedByLabel && p.Member == "a" && strings.Contains(p.Message, text)
		}) {
			t.Errorf("status does not say %q: %+v", text, problems)
		}
	}
	for i, name := range []string{"own", "first", "second"} {
		service := world.Service(key(name), world.Port("http", 80))
		world.Create(t, w.a, service, world.Slice(service, "v4", []string{"10.1.0.1", "10.1.0.2", "10.1.0.3"}[i]))
	}

	label("own")
	w.shows(t, "without the flag", key("own"), brokenAt(trace.HopExport, "a", "exports nothing by label"))
	reported("the agent exports nothing by label")
	lab.Must(t, w.a.Create(t.Context(), world.Export(key("own"))))
	w.shows(t, "a user's own", key("own"), exported("by a user's ServiceExport: the label tombolo-mcs.io/auto-export has no effect"))

	w.a.stop()
	w.a.argue(t, "--auto-export", "--auto-export-limit=1")
	w.a.startWith(t, func(o *agent.Options) { o.AutoExport, o.AutoExportLimit = agent.AutoExportLabel, 1 })
	label("first")
	w.shows(t, "without the rights", key("first"), brokenAt(trace.HopExport, "a", "cannot be written"))
	lab.Must(t, membership.InstallAutoExport(t.Context(), w.a.Cluster))
	w.shows(t, "automatic", key("first"), exported("because of the label tombolo-mcs.io/auto-export"))
	label("second")
	w.shows(t, "beyond the limit", key("second"), brokenAt(trace.HopExport, "a", "at most 1 Service of a namespace"))
	reported("at most 1 Service of a namespace")
}
