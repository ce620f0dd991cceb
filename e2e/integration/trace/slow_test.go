// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

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
	traced, err := survey.Trace(t.Context(), survey.TraceOptions{Clusterset: found, Key: key, From: w.b.id, Resolve: w.resolve, Settle: delay})
	if err != nil || len(traced.Steps) == 0 {
		t.Errorf("the trace has %d steps, %v", len(traced.Steps), err)
	}
}
