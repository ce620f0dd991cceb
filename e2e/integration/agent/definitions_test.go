// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// TestCRDsReplaced: the CRDs of the API are replaced under a running agent by those of an older release, or by some without a status. The
// agent reports it, also as a metric, and is not ready; existing traffic is unaffected. When the CRDs are back, it writes what it could not write meanwhile,
// without a restart.
//
// spec: I1, D7
func TestCRDsReplaced(t *testing.T) {
	t.Parallel()
	_, a, b := newPair(t)
	address := lab.FreeAddress(t)
	a.Start(t, func(o *agent.Options) { o.ProbeAddress = address })
	b.Start(t)
	ns := world.Namespace(t, a, b)
	k := key{Namespace: ns, Name: "web"}
	b.ExportWeb(t, k, "10.2.0.1")
	a.Imported(t, k)
	a.Endpoints(t, k, "b 10.2.0.1:http:8080")
	reported := func(missing float64, text string) {
		t.Helper()
		world.Eventually(t, func(context.Context) error { // the details are in the agent's log
			return errors.Join(answers("http://"+address+"/readyz?verbose", http.StatusInternalServerError, "started failed"), a.logs(text))
		})
		a.Gauge(t, "tombolo_kind_missing", missing)
	}
	restored := func() {
		t.Helper()
		lab.Must(t, membership.InstallCRDs(t.Context(), a.Cluster))
		world.Eventually(t, func(context.Context) error { return answers("http://"+address+"/readyz", http.StatusOK, "ok") })
		a.Gauge(t, "tombolo_kind_missing", 0)
	}

	lab.Must(t, membership.ServeOldAPI(t.Context(), a))
	reported(2, "only v1alpha1: other CRDs have replaced those of this version")
	service := &corev1.Service{}
	world.Update(t, b, k, service, func() { service.Spec.Ports = append(service.Spec.Ports, world.Port("admin", 81)) }) // a cannot write its import
	late := key{Namespace: ns, Name: "late"}
	b.ExportWeb(t, late, "10.2.0.2")
	world.Eventually(t, func(ctx context.Context) error { return a.HasEndpoints(ctx, k, "b 10.2.0.1:http:8080") })
	restored()
	world.Eventually(t, func(ctx context.Context) error {
		found := &mcsv1beta1.ServiceImport{}
		if err := a.Get(ctx, k, found); err != nil {
			return err
		}
		if len(found.Spec.Ports) != 2 {
			return fmt.Errorf("the import has ports %v", found.Spec.Ports)
		}
		return nil
	})
	a.Imported(t, late)

	lab.Must(t, membership.WithoutStatus(t.Context(), a, "serviceexports"))
	reported(1, "serviceexports.multicluster.x-k8s.io/v1beta1 without the subresource status")
	own := key{Namespace: ns, Name: "own"}
	a.ExportWeb(t, own, "10.1.0.1")
	b.Endpoints(t, own, "a 10.1.0.1:http:8080")
	restored()
	a.Condition(t, own, ready, metav1.ConditionTrue, "Exported")
}

// logs returns nil if the agent has logged a text lately.
func (m *member) logs(text string) error {
	if !strings.Contains(m.Output.Tail(500), text) {
		return fmt.Errorf("the agent has not logged %q", text)
	}
	return nil
}
