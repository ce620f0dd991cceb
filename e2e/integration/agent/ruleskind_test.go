// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// TestGrantKindDeleted: the CRD of grants is deleted, and all grants with it. What they grant to some clusters is not exported to the others:
// while the CRD is missing, after a change of the Service, and after the CRD was installed again without the grants. A grant that exists
// again, and that a user then deletes, is deleted.
//
// spec: A7
func TestGrantKindDeleted(t *testing.T) {
	t.Parallel()
	const toElsewhere = "cluster elsewhere. Not a member: elsewhere. See the ServiceExportGrants of the namespace"
	w, a, b := newPair(t)
	address := lab.FreeAddress(t)
	a.Start(t, func(o *agent.Options) { o.ProbeAddress = address })
	b.Start(t)
	ns := world.Namespace(t, a, b)
	k, open := key{Namespace: ns, Name: "web"}, key{Namespace: ns, Name: "open"}
	lab.Must(t, a.Create(t.Context(), world.Grant(k, peers("elsewhere"))))
	a.ExportWeb(t, k, "10.1.0.1")
	a.exportedTo(t, k, toElsewhere)
	b.Gone(t, k)
	ready := func(status int, texts ...string) {
		t.Helper()
		world.Eventually(t, func(context.Context) error {
			errs := []error{answers("http://"+address+"/readyz", status, "")}
			for _, text := range texts {
				errs = append(errs, a.logs(text))
			}
			return errors.Join(errs...)
		})
	}
	service := &corev1.Service{}
	port := int32(8000)
	stays := func(when string) { // a change of the Service is published, and still for the granted clusters only
		t.Helper()
		port++
		world.Update(t, a, k, service, func() { service.Spec.Ports[0].Port = port })
		world.Eventually(t, func(context.Context) error {
			spec, err := json.Marshal(w.record(t, a.ID, k).Spec)
			if err == nil && !strings.Contains(string(spec), fmt.Sprintf(`"port":%d`, port)) {
				err = fmt.Errorf("%s, the record is %s", when, spec)
			}
			return err
		})
		a.exportedTo(t, k, toElsewhere)
		b.Gone(t, k)
	}

	a.deleteCRD(t, "serviceexportgrants.policy.tombolo-mcs.io")
	ready(http.StatusInternalServerError, "the cluster does not serve serviceexportgrants.policy.tombolo-mcs.io/v1alpha1", "1 rules of serviceexportgrants.policy.tombolo-mcs.io were deleted with their CustomResourceDefinition")
	stays("without the kind")
	lab.Must(t, membership.InstallCRDs(t.Context(), a.Cluster))
	a.ExportWeb(t, open, "10.1.0.2") // b receives what a publishes
	b.Endpoints(t, open, "a 10.1.0.2:http:8080")
	stays("with the kind, without grants")
	ready(http.StatusInternalServerError)

	grant := world.Grant(k, peers("elsewhere"))
	world.Eventually(t, func(ctx context.Context) error { return a.Create(ctx, grant) })
	ready(http.StatusOK)
	stays("with the grant")
	lab.Must(t, a.Delete(t.Context(), grant))
	a.exportedTo(t, k, "the clusterset")
	b.Imported(t, k)
}
