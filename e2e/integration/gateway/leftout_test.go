// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/trace"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// testLeftOut: a hand-made slice of b leads to a port of a node that no pod declares, and to the Service of the API server. The export says
// that they are left out, and so does the trace. The first one serves as soon as a pod declares its port.
//
// spec: W5, G12
func testLeftOut(t *testing.T, e *env, namespace string) {
	b, k := e.Members["b"], world.Key{Namespace: namespace, Name: "stray"}
	port := lab.ServeTCP(t, net.JoinHostPort(e.host, "0"), func(conn net.Conn) {
		defer conn.Close()
		for lines := bufio.NewScanner(conn); lines.Scan(); {
			fmt.Fprintln(conn, "b:", lines.Text())
		}
	}).Port
	service := world.Service(k, corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt(port)})
	apiServer := world.Read(t, b, world.Key{Namespace: "default", Name: "kubernetes"}, &corev1.Service{}).Spec.ClusterIP
	b.ExportService(t, service, world.Slice(service, "v4", e.host, apiServer))
	onNode := fmt.Sprintf("%s is the address of a node, and no pod of namespace %s in its host network declares port %d/TCP", e.host, namespace, port)
	inServices := apiServer + " is in a range of this cluster's Services"
	e.leavesOut(t, k, onNode, inServices)
	world.Eventually(t, func(ctx context.Context) error {
		found, err := e.survey(ctx)
		if err != nil {
			return err
		}
		result, err := trace.Run(ctx, trace.Options{Clusterset: found, Key: k, From: "a", Settle: time.Second})
		for _, step := range result.Steps {
			if step.Hop == trace.HopRecord && step.Cluster == "b" && step.State == trace.Broken && strings.Contains(step.Found, onNode) {
				return err
			}
		}
		return errors.Join(err, fmt.Errorf("the trace is %+v", result.Steps))
	})
	if address, err := e.listening(t.Context(), "a", k); err == nil {
		t.Errorf("a uses %s, although b has no endpoint", address)
	}
	e.backendPod(t, "b", namespace, port)
	e.answers(t, "a", "b", k)
	e.leavesOut(t, k, inServices)
	lab.Must(t, b.Delete(t.Context(), world.Export(k)))
	e.Members["a"].Gone(t, k)
}

// leavesOut waits until the condition of an export of b says exactly what is left out.
func (e *env) leavesOut(t *testing.T, k world.Key, reasons ...string) {
	t.Helper()
	slices.Sort(reasons)
	want := " Left out: " + strings.Join(reasons, "; ") + ". An export leads only to pods of its cluster"
	world.Await(t, e.Members["b"], k, &mcsv1beta1.ServiceExport{}, func(export *mcsv1beta1.ServiceExport) error {
		for _, condition := range export.Status.Conditions {
			if condition.Type == string(mcsv1beta1.ServiceExportConditionReady) && strings.Contains(condition.Message, want) {
				return nil
			}
		}
		return fmt.Errorf("no condition says %q: %+v", want, export.Status.Conditions)
	})
}
