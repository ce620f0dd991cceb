// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/audit"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// hubSecret is where the manifests have the agent's token for the hub.
var hubSecret = key{Namespace: manifests.AgentNamespace, Name: "tombolo-hub"}

// TestRights drives the agents down every path on which they write, delete or report something, and compares what the audit
// logs say that they asked for with the rights that the manifests give: each is used, and nothing is refused.
//
//nolint:tparallel // one story after the other
func TestRights(t *testing.T) {
	t.Parallel()
	w := newEnv(t, withControllers(membership.Hub()), withControllers(lab.Member("a")), withControllers(lab.Member("b")))
	a, b := w.members["a"], w.members["b"]
	for _, m := range w.members {
		lab.Must(t, m.Create(t.Context(), hubSecretFor(time.Hour)))
	}
	for _, m := range w.members {
		m.lead(t, m, manifests.AgentNamespace)
	}
	t.Run("Lagging", func(t *testing.T) { testLagging(t, w) })
	stopA, stopB := a.Start(t, releasedLate), b.Start(t, releasedLate)
	for _, m := range w.members {
		m.renewedToken(t)
	}
	t.Run("ExportWithdraw", func(t *testing.T) { testExportWithdraw(t, a, b) })
	t.Run("DriftIsReverted", func(t *testing.T) { testDrift(t, a, b) })
	t.Run("ForeignImportInTheWay", func(t *testing.T) { testForeignImport(t, a, b) })
	t.Run("RecordsByHand", func(t *testing.T) { testRecordsByHand(t, w) })
	t.Run("RecordsOfNobody", func(t *testing.T) { testUnknownRecords(t, w) })
	t.Run("RecreatedAtOnce", func(t *testing.T) { testRecreatedAtOnce(t, w) })
	t.Run("Terminating", func(t *testing.T) { testImporterTerminating(t, w) })
	t.Run("HubAway", func(t *testing.T) { testHubUnreachable(t, w) })
	t.Run("Properties", func(t *testing.T) { testProperties(t, w) })
	t.Run("Preferences", func(t *testing.T) { testPreferences(t, a) })
	t.Run("Alias", func(t *testing.T) { testAlias(t, a, b) })
	stopA = testGatewayPorts(t, w, stopA)
	stopA = testLabelledRights(t, w, a, stopA)
	t.Run("Left", func(t *testing.T) { testMemberLeaves(t, w, stopA) })
	stopB()
	world.Eventually(t, func(context.Context) error { // a watch is logged when it has ended
		if problems := w.misfits(t); len(problems) > 0 {
			return errors.New("rights and requests do not fit:\n" + strings.Join(problems, "\n"))
		}
		return nil
	})
}

// testPreferences: an agent writes the status of a policy.
func testPreferences(t *testing.T, a *member) {
	policy := routingPolicy(world.Namespace(t, a), "own", []policyv1alpha1.Source{{SameCluster: true}})
	lab.Must(t, a.Create(t.Context(), policy))
	a.accepted(t, policy, metav1.ConditionFalse, "NoImport", "")
}

// testLabelledRights: an agent creates and deletes exports by label, and reads one past its cache. It returns the function that stops the
// new agent of a.
func testLabelledRights(t *testing.T, w *env, a *member, stop func()) func() {
	lab.Must(t, membership.InstallAutoExport(t.Context(), a.Cluster))
	stop()
	stop = a.Start(t, labelling, func(o *agent.Options) {
		o.AutoExportLimit = 100
		releasedLate(o)
		o.Member = lagging(o.Member)
	})
	ns := "labelled"
	world.CreateNamespace(t, ns, a)
	for range 20 { // until the agent reconciles before it has read what it wrote
		a.label(t, key{Name: ns}, "true")
		var want []string
		for i := range 5 {
			k := key{Namespace: ns, Name: fmt.Sprintf("s%d", i)}
			a.serve(t, k, fmt.Sprintf("10.1.0.%d", i+1))
			want = append(want, k.Name)
		}
		a.exportedByLabel(t, ns, want...)
		a.label(t, key{Name: ns}, "")
		a.exportedByLabel(t, ns)
		for _, name := range want {
			service := world.Service(key{Namespace: ns, Name: name})
			world.Delete(t, a, service, world.Slice(service, "v4"))
		}
		if !slices.ContainsFunc(w.misfits(t), func(p string) bool { return strings.HasPrefix(p, "never used: get serviceexports") }) {
			return stop
		}
	}
	t.Error("the agent never had to get a ServiceExport")
	return stop
}

// testGatewayPorts: an agent stores the cursor of the listening ports, and reads it when it starts. It returns the function that stops
// the new agent of a.
func testGatewayPorts(t *testing.T, w *env, stop func()) func() {
	a, b := w.members["a"], w.members["b"]
	w.installGateway(t, "a", "10.1.9.1")
	w.installGateway(t, "b", "10.1.9.1")
	w.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Network = "cloud" })
	world.CreateNamespace(t, "gatewayports", a, b)
	k := key{Namespace: "gatewayports", Name: "web"}
	b.ExportWeb(t, k, "10.2.0.1")
	a.listens(t, k, "b", "10.1.9.1")
	stop()
	stop = a.Start(t, releasedLate)
	other := key{Namespace: k.Namespace, Name: "other"}
	b.ExportWeb(t, other, "10.2.0.2")
	a.listens(t, other, "b", "10.1.9.1")
	w.ChangeMember(t, "b", func(s *hubv1alpha1.MemberSpec) { s.Network = "" })
	a.Endpoints(t, k, "b 10.2.0.1:http:8080")
	testGatewayRights(t, w, a, b)
	testGatewayRights(t, w, b, a)
	return stop
}

// testGatewayRights: what an agent writes for its gateways is created, changed, restored and deleted.
func testGatewayRights(t *testing.T, w *env, m, other *member) {
	other.knows(t, m.ID, "198.51.100.1")
	g, p := world.Grant(key{Namespace: "gatewayports", Name: "none"}, peers("b")), world.DenyImports("none", peers("b"))
	world.Create(t, m, g, p)
	m.reasons(t, g, policyv1alpha1.ReasonExportsNotFound, policyv1alpha1.ReasonSameNetwork)
	m.issue(t, 25*time.Hour)
	lab.Must(t, m.Delete(t.Context(), m.knows(t, other.ID, "198.51.100.1")))
	m.knows(t, other.ID, "198.51.100.1")
	m.renewed(t)
	lab.Must(t, w.HubClient.Delete(t.Context(), &hubv1alpha1.PublishedGateway{ObjectMeta: metav1.ObjectMeta{Namespace: "member-" + m.ID, Name: hubv1alpha1.GatewayName}}))
	world.Eventually(t, func(ctx context.Context) error {
		return w.HubClient.Get(ctx, publishedKey(m.ID), &hubv1alpha1.PublishedGateway{})
	})
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-1"}} // as the EndpointSlice names it
	lab.Must(t, m.Create(t.Context(), node))
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeExternalIP, Address: "198.51.100.9"}}
	lab.Must(t, m.Status().Update(t.Context(), node))
	service := &corev1.Service{}
	world.Update(t, m, gatewayKey, service, func() { service.Spec.Type = corev1.ServiceTypeNodePort })
	other.knows(t, m.ID, "198.51.100.9")
	node.Status.Addresses[0].Address = "198.51.100.10"
	lab.Must(t, m.Status().Update(t.Context(), node))
	other.knows(t, m.ID, "198.51.100.10")
	world.Update(t, m, gatewayKey, service, func() { service.Spec.Type = corev1.ServiceTypeLoadBalancer })
	m.balance(t, "198.51.100.1")
	other.knows(t, m.ID, "198.51.100.1")
	lab.Must(t, m.Delete(t.Context(), service))
	m.reasons(t, p, policyv1alpha1.ReasonAccepted, policyv1alpha1.ReasonNoGateway)
	other.knows(t, m.ID)
	m.knows(t, other.ID)
	lab.Must(t, membership.InstallGateway(t.Context(), m.Cluster))
	for range 20 { // until the agent has something to write before it has read what it wrote
		m.balance(t, "198.51.100.2")
		m.balance(t, "198.51.100.1")
		other.knows(t, m.ID, "198.51.100.1")
		if !slices.ContainsFunc(w.misfits(t), func(p string) bool {
			return strings.HasPrefix(p, m.ID+" on the hub: never used: get publishedgateways")
		}) {
			return
		}
	}
	t.Errorf("agent %s never had to get its PublishedGateway", m.ID)
}

// released sets what the manifests do, but for the leader election, which an agent on a busy machine may lose.
func released(o *agent.Options) {
	o.Namespace, o.HubSecret, o.TokenLifetime = manifests.AgentNamespace, hubSecret, 72*time.Hour
}

// releasedLate also makes what the agent watches on the hub come late, so that it writes twice before it has read its first write.
func releasedLate(o *agent.Options) {
	released(o)
	o.Hub = lagging(o.Hub)
}

// withControllers returns the options of a cluster that has controllers and whose API server logs requests.
func withControllers(o lab.ClusterOptions) lab.ClusterOptions {
	o.Controllers = lab.DefaultControllers()
	return o.Audited()
}

// hubSecretFor returns a Secret whose token is good for some time.
func hubSecretFor(left time.Duration) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: hubSecret.Namespace, Name: hubSecret.Name,
		Annotations: map[string]string{clusterset.AnnotationTokenExpires: time.Now().Add(left).UTC().Format(time.RFC3339)},
	}}
}

// renewedToken waits until the member's agent has put a token into its Secret.
func (m *member) renewedToken(t *testing.T) {
	t.Helper()
	world.Await(t, m, hubSecret, &corev1.Secret{}, func(secret *corev1.Secret) error {
		if len(secret.Data[clusterset.HubSecretToken]) == 0 {
			return errors.New("the token for the hub is not renewed")
		}
		return nil
	})
}

// lead runs the member's agent until it has been elected leader in a namespace and that has an Event there. Meanwhile it
// may lose the lease, where the machine is busy. How it ends does not matter: one that stops while it adds its controllers may need more
// time than it has.
func (m *member) lead(t *testing.T, where client.Client, namespace string, adjust ...func(*agent.Options)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	electing := func(o *agent.Options) {
		o.Election, o.Namespace, o.Pod = agent.ElectLeader, namespace, agent.Pod{Name: "tombolo-agent", UID: "own"}
	}
	run := func() <-chan error { return m.Run(ctx, t, append([]func(*agent.Options){electing}, adjust...)...) }
	ended := run()
	world.Eventually(t, func(ctx context.Context) error {
		select {
		case err := <-ended:
			t.Logf("agent of %s: %v; starting it again", m.ID, err)
			ended = run()
		default:
		}
		list := &corev1.EventList{}
		if err := where.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		if !slices.ContainsFunc(list.Items, func(e corev1.Event) bool { return e.Reason == "LeaderElection" }) {
			return errors.New("there is no Event LeaderElection")
		}
		return nil
	})
	cancel()
	<-ended
	m.leaveLease(t, where, namespace) // the next leader reads the Pod of the last one
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	ended = run()
	world.Eventually(t, func(context.Context) error {
		if !strings.Contains(m.Output.Tail(1000), tookOver) {
			return errors.New("the lease is not taken over")
		}
		return nil
	})
	cancel()
	<-ended
}

func testHubUnreachable(t *testing.T, w *env) {
	lab.Must(t, w.Hub.APIServer.Stop(t.Context()))
	for _, m := range w.members {
		m.Gauge(t, "tombolo_hub_connected", 0)
	}
	lab.Must(t, w.Hub.APIServer.Start(t.Context()))
	for _, m := range w.members {
		m.Gauge(t, "tombolo_hub_connected", 1)
		m.beats(t, w)
	}
}

// optional matches the rights that an agent needs for gateways or automatic export only. testGatewayPorts, testGatewayRights and
// testLabelledRights use them.
var optional = regexp.MustCompile("gateway|configmaps|nodes|policy|autoexport")

// testLagging: an agent gets an object past its cache where that does not have the agent's own last write yet. So what it
// watches comes late, and services are exported, changed and withdrawn until that has happened to all kinds.
func testLagging(t *testing.T, w *env) {
	for _, m := range w.members {
		m.Start(t, func(o *agent.Options) {
			released(o)
			o.Member, o.Hub = lagging(o.Member), lagging(o.Hub)
		})
	}
	ns := world.Namespace(t, w.members["a"], w.members["b"])
	for round := range 20 {
		for _, m := range w.members {
			keys := services(ns, fmt.Sprintf("%s-%d", m.ID, round), 5)
			atOnce(t, keys, m.ExportOne)
			for _, k := range keys {
				m.Imported(t, k)
				m.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
			}
			atOnce(t, keys, m.alter)
			atOnce(t, keys, m.alter)
			for _, k := range keys {
				world.Eventually(t, func(ctx context.Context) error { return w.altered(ctx, m.ID, k) })
			}
			atOnce(t, keys, func(ctx context.Context, k key) error { return m.Delete(ctx, world.Export(k)) })
			m.Gone(t, keys...)
		}
		problems := slices.DeleteFunc(w.misfits(t), func(p string) bool {
			return !strings.Contains(p, "never used: get ") || optional.MatchString(p)
		})
		if len(problems) == 0 {
			return
		}
	}
	t.Error("the caches were never seen to lag for all kinds")
}

// altered returns nil once the hub holds a service of exportOne as it is when it has been altered twice.
func (w *env) altered(ctx context.Context, id string, k key) error {
	service, endpoints := &hubv1alpha1.PublishedService{}, &hubv1alpha1.PublishedEndpointsList{}
	if err := w.HubClient.Get(ctx, key{Namespace: "member-" + id, Name: k.Namespace + "." + k.Name}, service); err != nil {
		return err
	}
	if port := service.Spec.Ports[0].Port; port != 82 {
		return fmt.Errorf("port %d of %s is published", port, k)
	}
	if err := w.HubClient.List(ctx, endpoints, client.InNamespace("member-"+id)); err != nil {
		return err
	}
	for _, e := range endpoints.Items {
		if string(e.Spec.Service) == k.Name && e.Spec.Ports[0].Port == 8082 {
			return nil
		}
	}
	return fmt.Errorf("the endpoints of %s are not published anew", k)
}

// lag is how late an agent of testLagging reads changes.
const lag = 300 * time.Millisecond

// lagging returns the configuration of a client to which whatever it watches comes late.
func lagging(config *rest.Config) *rest.Config {
	result := rest.CopyConfig(config)
	result.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(request *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(request)
			if err == nil && request.URL.Query().Get("watch") == "true" {
				response.Body = lateBody{ReadCloser: response.Body, ctx: request.Context()}
			}
			return response, err
		})
	})
	return result
}

type lateBody struct {
	io.ReadCloser
	ctx context.Context
}

func (b lateBody) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	late, cancel := context.WithTimeout(b.ctx, lag)
	defer cancel()
	<-late.Done()
	return n, err
}

func (m *member) alter(ctx context.Context, k key) error {
	service, source := &corev1.Service{}, &discoveryv1.EndpointSlice{}
	if err := errors.Join(m.Get(ctx, k, service), m.Get(ctx, key{Namespace: k.Namespace, Name: k.Name + "-v4"}, source)); err != nil {
		return err
	}
	service.Spec.Ports[0].Port++
	*source.Ports[0].Port++
	return errors.Join(m.Update(ctx, service), m.Update(ctx, source))
}

// testMemberLeaves: a leaves, and its namespace on the hub with it.
func testMemberLeaves(t *testing.T, w *env, stopA func()) {
	a, b := w.members["a"], w.members["b"]
	k := key{Namespace: world.Namespace(t, a, b), Name: "web"}
	a.ExportWeb(t, k, "10.1.0.1")
	b.Endpoints(t, k, "a 10.1.0.1:http:8080")
	stopA()
	left := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "member-a"}}
	lab.Must(t, w.HubClient.Delete(t.Context(), left))
	b.Gone(t, k)
	world.Eventually(t, func(ctx context.Context) error {
		return world.Absent(w.HubClient.Get(ctx, client.ObjectKeyFromObject(left), left))
	})
}

// misfits returns what does not fit between the rights of the agents and what the audit logs say: all of them together in
// their clusters, where they are the same ServiceAccount, and each on the hub.
func (w *env) misfits(t *testing.T) []string {
	t.Helper()
	objects, err := manifests.Render("agent")
	lab.Must(t, err)
	labelled, err := manifests.AutoExportRights()
	lab.Must(t, err)
	account := key{Namespace: manifests.AgentNamespace, Name: manifests.AgentServiceAccount}
	var logs []string
	for _, m := range w.members {
		logs = append(logs, m.Cluster.AuditLog())
	}
	problems, err := audit.Misfits(account, append(objects, labelled...), logs...)
	lab.Must(t, err)
	for id := range w.members {
		ofAll, err := manifests.Hub()
		lab.Must(t, err)
		ofOne, err := manifests.Member(manifests.MemberOptions{ClusterID: clusterset.ClusterID(id)})
		lab.Must(t, err)
		onHub, err := audit.Misfits(key{Namespace: "member-" + id, Name: manifests.MemberServiceAccount}, append(ofAll, ofOne...), w.Hub.AuditLog())
		lab.Must(t, err)
		for _, problem := range onHub {
			problems = append(problems, id+" on the hub: "+problem)
		}
	}
	slices.Sort(problems)
	return problems
}
