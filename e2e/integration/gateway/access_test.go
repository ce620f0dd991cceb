// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/explain"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/trace"
	"github.com/tombolo-mcs/tombolo/e2e/framework/audit"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// clientHost is the address from which clients connect. It is not that of the machine, which gateways and backends have.
const clientHost = "127.0.0.2"

// connect connects to an address from clientHost.
func connect(address string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: 20 * time.Second, LocalAddr: &net.TCPAddr{IP: net.ParseIP(clientHost)}}
	return dialer.Dial("tcp", address)
}

// clientPod creates a pod of a member with the address from which clients connect.
func (e *env) clientPod(t *testing.T, id string, k world.Key, account string) *corev1.Pod {
	t.Helper()
	return e.pod(t, id, k, clientHost, corev1.PodSpec{ServiceAccountName: account, Containers: []corev1.Container{{Name: "client", Image: "client"}}})
}

// backendPod creates a pod of a member in the host network of this machine, which declares a port.
func (e *env) backendPod(t *testing.T, id, namespace string, port int) {
	t.Helper()
	e.pod(t, id, world.Key{Namespace: namespace, Name: fmt.Sprintf("backend-%d", port)}, e.host, corev1.PodSpec{
		ServiceAccountName: "backend", HostNetwork: true, Containers: []corev1.Container{{
			Name: "backend", Image: "backend", Ports: []corev1.ContainerPort{{ContainerPort: int32(port)}},
		}},
	})
}

// pod creates a pod of a member that runs and has an address, and its account.
func (e *env) pod(t *testing.T, id string, k world.Key, address string, spec corev1.PodSpec) *corev1.Pod {
	t.Helper()
	m, account := e.Members[id], world.Key{Namespace: k.Namespace, Name: spec.ServiceAccountName}
	sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	if err := m.Create(t.Context(), sa); err != nil {
		lab.Must(t, m.Get(t.Context(), account, sa))
	}
	spec.AutomountServiceAccountToken = new(false)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}, Spec: spec}
	lab.Must(t, m.Create(t.Context(), pod))
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, address, []corev1.PodIP{{IP: address}}
	lab.Must(t, m.Status().Update(t.Context(), pod))
	return pod
}

// denied waits until no client is answered at an address.
func denied(t *testing.T, address string) {
	t.Helper()
	world.Eventually(t, func(context.Context) error {
		if got, err := ask(address); err == nil {
			return fmt.Errorf("it answers %q", got)
		}
		return nil
	})
}

// isClosed waits until an open connection is reset.
func isClosed(t *testing.T, conn net.Conn) {
	t.Helper()
	lab.Must(t, conn.SetReadDeadline(time.Now().Add(world.Within)))
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the open connection: %v, want that it is closed", err)
	}
}

// grantTo returns a grant of an export to an account of a cluster a.
func grantTo(k world.Key, account policyv1alpha1.ObjectName) *policyv1alpha1.ServiceExportGrant {
	return world.Grant(k, policyv1alpha1.Peer{
		Clusters: []policyv1alpha1.ClusterID{"a"}, Namespaces: []policyv1alpha1.NamespaceName{policyv1alpha1.NamespaceName(k.Namespace)},
		ServiceAccounts: []policyv1alpha1.ObjectName{account},
	})
}

// canConnect fails the test unless the command says this about an account of a and a service of b.
func (e *env) canConnect(t *testing.T, k world.Key, account string, want explain.Access) {
	t.Helper()
	found, err := e.survey(t.Context())
	lab.Must(t, err)
	got := explain.CanConnect(t.Context(), found, k, access.Client{Cluster: "a", Namespace: k.Namespace, ServiceAccount: account})
	want.Exporter = "b"
	if diff := cmp.Diff([]explain.Access{want}, got); diff != "" {
		t.Errorf("account %s (-want +got):\n%s", account, diff)
	}
}

// explained fails the test unless explain and trace agree with the grant of b: it lets frontend of a use a service, and no other client.
func (e *env) explained(t *testing.T, k world.Key) {
	t.Helper()
	found, err := e.survey(t.Context())
	lab.Must(t, err)
	want := []explain.ClusterRules{{Cluster: "b", Direction: policyv1alpha1.DirectionExport, Rules: []explain.Rule{
		{Rule: "ServiceExportGrant " + k.String(), Action: "Accept", Clients: "clusters a and namespaces " + k.Namespace + " and accounts frontend"},
		{Rule: access.NotGranted, Action: "Deny", Clients: "all"},
	}}}
	if diff := cmp.Diff(want, explain.Rules(t.Context(), found, k)); diff != "" {
		t.Errorf("explain (-want +got):\n%s", diff)
	}
	for account, want := range map[string]trace.Health{"frontend": trace.OK, "backend": trace.Broken, "": trace.Note} {
		o, of := trace.Options{Clusterset: found, Key: k, From: "a", Settle: time.Second}, clusterset.ClusterID("b")
		if account != "" {
			of, o.Client = "a", access.Client{Cluster: "a", Namespace: k.Namespace, ServiceAccount: account}
		}
		result, err := trace.Run(t.Context(), o)
		lab.Must(t, err)
		if !slices.ContainsFunc(result.Steps, func(s trace.Step) bool { return s.Hop == trace.HopAccess && s.Cluster == of && s.State == want }) {
			t.Errorf("the trace for account %q is %+v, want a step that is %s", account, result.Steps, want)
		}
	}
}

// changesTakeEffect measures the time from the creation of a policy, which the API server has answered, until an open stream is closed.
func (e *env) changesTakeEffect(t *testing.T, k world.Key, policy *policyv1alpha1.ClusterServiceAccessPolicy, open func() net.Conn) {
	t.Helper()
	a := e.Members["a"]
	var took []time.Duration
	for range 100 {
		conn := open()
		policy.ResourceVersion = ""
		lab.Must(t, a.Create(t.Context(), policy))
		began := time.Now()
		isClosed(t, conn)
		took = append(took, time.Since(began))
		conn.Close()
		lab.Must(t, a.Delete(t.Context(), policy))
		e.answers(t, "a", "b", k)
	}
	slices.Sort(took)
	t.Logf("policy change to effect: p50 %s, p99 %s, slowest %s", took[len(took)/2], took[len(took)*99/100-1], took[len(took)-1])
}

// testAccess: rules of both clusters decide who may use a service of b from a, now and while connections are open.
//
// spec: A1, A2, A3, A4, A5, A6
func testAccess(t *testing.T, e *env, k world.Key, address string) {
	a, b := e.Members["a"], e.Members["b"]
	open := func() net.Conn {
		conn, err := connect(address)
		lab.Must(t, err)
		if got, err := say(conn); got != "b: hello" || err != nil {
			t.Fatalf("it answers %q, %v", got, err)
		}
		return conn
	}
	conn := open()
	defer conn.Close()
	grant := grantTo(k, "frontend")
	e.canConnect(t, k, "frontend", explain.Access{Verdict: explain.Allowed, ImportRule: access.NoRule, ExportRule: access.NoRule})
	lab.Must(t, b.Create(t.Context(), grant))
	granted := "ServiceExportGrant " + k.String()
	e.canConnect(t, k, "frontend", explain.Access{Verdict: explain.Allowed, ImportRule: access.NoRule, ExportRule: granted})
	e.canConnect(t, k, "backend", explain.Access{Verdict: explain.Denied, ImportRule: access.NoRule, ExportRule: access.NotGranted})
	e.explained(t, k)
	isClosed(t, conn) // a client that is no pod
	denied(t, address)
	e.scrape(t, "b", `tombolo_gateway_streams_denied_total{direction="export",rule="no ServiceExportGrant names the client"}`)
	b.Event(t, client.ObjectKeyFromObject(grant), "StreamDenied", "Service "+k.String()+": an unknown client of cluster a is denied: "+access.NotGranted)

	frontend := e.clientPod(t, "a", world.Key{Namespace: k.Namespace, Name: "frontend"}, "frontend")
	e.answers(t, "a", "b", k)
	frontend.Status.Phase = corev1.PodSucceeded
	lab.Must(t, a.Status().Update(t.Context(), frontend))
	denied(t, address)
	backend := e.clientPod(t, "a", world.Key{Namespace: k.Namespace, Name: "backend"}, "backend") // has the address of the finished pod
	denied(t, address)
	lab.Must(t, a.Delete(t.Context(), backend, client.GracePeriodSeconds(0)))
	e.clientPod(t, "a", world.Key{Namespace: k.Namespace, Name: "frontend-2"}, "frontend")
	e.answers(t, "a", "b", k)

	conn = open()
	defer conn.Close()
	policy := world.DenyImports("no-imports-from-b", policyv1alpha1.Peer{Clusters: []policyv1alpha1.ClusterID{"b"}})
	lab.Must(t, a.Create(t.Context(), policy))
	e.canConnect(t, k, "frontend", explain.Access{Verdict: explain.Denied, ImportRule: "ClusterServiceAccessPolicy no-imports-from-b"})
	isClosed(t, conn)
	denied(t, address)
	a.Event(t, world.Key{Namespace: metav1.NamespaceDefault, Name: policy.Name}, "StreamDenied", "Service "+k.String()+" of cluster b: client "+k.Namespace+"/frontend is denied")
	e.scrape(t, "a", `tombolo_gateway_streams_denied_total{direction="import",rule="ClusterServiceAccessPolicy no-imports-from-b"}`)
	lab.Must(t, a.Delete(t.Context(), policy))
	e.answers(t, "a", "b", k)
	e.changesTakeEffect(t, k, policy, open)
	lab.Must(t, b.Delete(t.Context(), grant))
	export := world.Export(k)
	world.Update(t, b, k, export, func() { export.Annotations = map[string]string{clusterset.AnnotationGrantedOnly: "true"} })
	denied(t, address)
	b.Event(t, k, "StreamDenied", access.GrantedOnly)
	a.Gone(t, k) // no grant names a; the import returns with another listening port
	world.Update(t, b, k, export, func() { export.Annotations = nil })
	e.regionDenied(t, k, e.answers(t, "a", "b", k))
}

// regionDenied: a policy of a denies imports from the clusters of a region, and follows the properties of b.
func (e *env) regionDenied(t *testing.T, k world.Key, address string) {
	t.Helper()
	a := e.Members["a"]
	region := func(p map[string]hubv1alpha1.PropertyValue) {
		e.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Properties = p })
	}
	policy := world.DenyImports("no-imports-from-us", policyv1alpha1.Peer{PropertySelector: &policyv1alpha1.PropertySelector{
		MatchProperties: map[string]policyv1alpha1.PropertyValue{"region": "us"},
	}})
	region(map[string]hubv1alpha1.PropertyValue{"region": "us"})
	lab.Must(t, a.Create(t.Context(), policy))
	denied(t, address)
	e.canConnect(t, k, "frontend", explain.Access{Verdict: explain.Denied, ImportRule: "ClusterServiceAccessPolicy no-imports-from-us"})
	region(map[string]hubv1alpha1.PropertyValue{"region": "eu"})
	e.answers(t, "a", "b", k)
	region(map[string]hubv1alpha1.PropertyValue{"region": "us"})
	denied(t, address)
	region(nil)
	e.answers(t, "a", "b", k)
	lab.Must(t, a.Delete(t.Context(), policy))
}

// testDenied: an export of b that is granted to one account denies a client of a that is no pod.
func testDenied(t *testing.T, e *env, k world.Key) {
	e.export(t, "b", k)
	e.answers(t, "a", "b", k)
	grant := grantTo(k, "nobody")
	lab.Must(t, e.Members["b"].Create(t.Context(), grant))
	e.denied(t, k)
	e.Members["b"].Event(t, client.ObjectKeyFromObject(grant), "StreamDenied", access.NotGranted)
}

// testDeniedAgain: if a client is denied again after a minute, the gateway patches its Event.
func testDeniedAgain(t *testing.T, e *env, k world.Key) {
	lab.Must(t, e.Members["a"].DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(k.Namespace), client.GracePeriodSeconds(0)))
	world.Eventually(t, func(context.Context) error {
		e.denied(t, k)
		if slices.ContainsFunc(e.misfits(t), func(p string) bool { return strings.HasPrefix(p, "never used: patch events") }) {
			return errors.New("the Event is not patched")
		}
		return nil
	})
}

// denied waits until no client of a reaches a service of b.
func (e *env) denied(t *testing.T, k world.Key) {
	t.Helper()
	address, err := e.listening(t.Context(), "a", k)
	lab.Must(t, err)
	denied(t, address)
}

// misfits returns what does not fit between the rights of the gateways of a and b together and the audit logs.
func (e *env) misfits(t *testing.T) []string {
	t.Helper()
	objects, err := manifests.Render("gateway")
	lab.Must(t, err)
	account := world.Key{Namespace: manifests.AgentNamespace, Name: "tombolo-gateway"}
	problems, err := audit.Misfits(account, objects, e.Members["a"].Cluster.AuditLog(), e.Members["b"].Cluster.AuditLog())
	lab.Must(t, err)
	return problems
}

// testRights: gateways use each of the rights that the manifests grant, and none of their requests is refused.
func testRights(t *testing.T, e *env, stops ...func()) {
	for _, stop := range stops {
		stop()
	}
	world.Eventually(t, func(context.Context) error { // a watch is logged when it has ended
		if problems := e.misfits(t); len(problems) > 0 {
			return errors.New(strings.Join(problems, "\n"))
		}
		return nil
	})
}
