// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// seen is a clusterset of east and west that is looked at.
type seen struct {
	*world
	// whole is the test of which all others are parts: agents outlive a part.
	whole *testing.T
	stop  map[string]func()
}

func (s *seen) startAgent(name string) { s.stop[name] = startNode(s.whole, s.Cluster(name), s.agent) }

// testSee looks at a clusterset as its administrator does while things go wrong, one after the other.
//
// spec: C1, C2, C3, R3
func (w *world) testSee(t *testing.T) {
	s := &seen{world: w, whole: t, stop: map[string]func(){}}
	for i, name := range []string{"east", "west"} {
		s.must(t, s.join(name, "--wait 0 --check-from-inside=false --agent-image example/agent:v1 --pod-cidrs "+[]string{"10.1.0.0/16", "10.2.0.0/16"}[i]))
		s.hurries(t, name)
		s.create(t, name, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		s.startAgent(name)
	}
	s.awaitProblems(t, "no problems", func(p []survey.Problem) bool { return len(p) == 0 })
	t.Run("export", s.testExport)
	t.Run("status", s.testStatus)
	t.Run("explain", s.testExplain)
	t.Run("graph", s.testGraph)
	t.Run("bad exports", s.testBadExports)
	t.Run("bundle", s.testBundle)
	t.Run("silence", s.testSilence)
	t.Run("unexport", s.testUnexport)
	t.Run("pending deletions", s.testPendingDeletions)
}

// hurries has a member's heartbeats come each second, so that its silence is noticed soon.
func (s *seen) hurries(t *testing.T, name string) {
	t.Helper()
	agent := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-agent"}}
	s.get(t, name, agent)
	container := &agent.Spec.Template.Spec.Containers[0]
	container.Args = append(container.Args, "--heartbeat-interval=1s")
	s.update(t, name, agent)
}

// serve creates a Service with one endpoint.
func (s *seen) serve(t *testing.T, cluster, name, address string, port int32) {
	t.Helper()
	s.create(t, cluster, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"tier": "front"}},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: port}}},
	})
	s.create(t, cluster, &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: name + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)}}},
	})
}

// data runs a command that prints JSON, into a value, and reports whether it succeeded.
func (s *seen) data(t *testing.T, command string, into any) bool {
	t.Helper()
	var out, err bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &err}
	code := cli.Run(t.Context(), release, append(strings.Fields(command), "--kubeconfig", s.kubeconfig), streams)
	if code != cli.ExitOK { // a stall may have the hub not answer in time
		t.Logf("$ kubectl clusterset %s\n%s%sexit code %d", command, &out, &err, code)
		return false
	}
	if err := json.Unmarshal(out.Bytes(), into); err != nil {
		t.Fatalf("$ kubectl clusterset %s\n%s%v", command, &out, err)
	}
	return true
}

// statusPause is the pause between two commands that look at all clusters, each of which is hundreds of requests.
const statusPause = time.Second

// awaitProblems returns the first status whose problems are as wanted.
func (s *seen) awaitProblems(t *testing.T, what string, wanted func([]survey.Problem) bool) survey.Status {
	t.Helper()
	var status survey.Status
	defer func() {
		if t.Failed() {
			t.Logf("problems: %+v\nmembers: %+v", status.Problems, status.Members)
		}
	}()
	s.await(t, statusPause, what, func() bool {
		status = survey.Status{}
		return s.data(t, "status -o json", &status) && wanted(status.Problems)
	})
	return status
}

// about reports whether there is a problem of a kind, of a member and a service.
func about(reason survey.Reason, member, service string) func([]survey.Problem) bool {
	return func(problems []survey.Problem) bool {
		for _, p := range problems {
			if p.Reason == reason && string(p.Member) == member && p.Service == service {
				return true
			}
		}
		return false
	}
}

// isAbove reports whether a number is known and large enough: a busy machine may keep a member from answering in time.
func isAbove(n *int, bound int) bool { return n != nil && *n > bound }

func (s *seen) says(t *testing.T, command string, texts ...string) {
	t.Helper()
	s.refused(t, command, cli.ExitOK, texts...)
}

// shows runs a command that may be repeated until it succeeds and says what it should: each cluster has a few seconds to
// answer, and a command leaves out one that a busy machine holds up for longer. It returns what is printed then.
func (s *seen) shows(t *testing.T, command string, texts ...string) string {
	t.Helper()
	return s.endsWith(t, command, cli.ExitOK, texts...)
}

// endsWith is shows for any exit code.
func (s *seen) endsWith(t *testing.T, command string, code int, texts ...string) string {
	t.Helper()
	var out string
	var got int
	defer func() {
		if t.Failed() {
			t.Logf("$ kubectl clusterset %s\n%sexit code %d", command, out, got)
		}
	}()
	s.await(t, statusPause, fmt.Sprintf("exit code %d that comes with %q", code, texts), func() bool {
		out, got = s.run(t, command)
		return got == code && !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(out, text) })
	})
	return out
}

func (s *seen) testExport(t *testing.T) {
	s.serve(t, "east", "web", "10.1.0.1", 80)
	s.serve(t, "west", "web", "10.2.0.1", 8080)
	s.serve(t, "west", "cart", "10.2.0.2", 80)
	exports := func(cluster string) int {
		list := &mcsv1beta1.ServiceExportList{}
		if err := s.client(t, cluster).List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	s.refused(t, "export --context east -n shop", cli.ExitUsage, "which Services?")
	s.refused(t, "export --context east -n shop web --all", cli.ExitUsage, "which Services?")
	s.refused(t, "export --context hub -n shop web", cli.ExitFailed, "does not know ServiceExports")
	s.refused(t, "export --context east -n shop web wbe", cli.ExitFailed, "Service wbe: there is none of that name in namespace shop", "nothing has been changed")
	s.says(t, "export --context east -n shop web --dry-run", "created    ServiceExport shop/web", "dry run")
	if n := exports("east"); n != 0 {
		t.Fatalf("refused commands and a dry run have created %d ServiceExports", n)
	}
	s.create(t, "west", &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "alias", Labels: map[string]string{"tier": "front"}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"},
	})
	s.refused(t, "export --context west -n shop alias", cli.ExitFailed, "Service alias is of type ExternalName, which cannot be exported")
	s.says(t, "export --context east -n shop web --wait 3m", "created    ServiceExport shop/web", "web: The service is exported to the clusterset.")
	s.says(t, "export --context east -n shop web --wait 3m", "unchanged  ServiceExport shop/web")
	s.says(t, "export --context west -n shop -l tier=front --wait 3m", "Service alias is left out: ", "created    ServiceExport shop/cart", "created    ServiceExport shop/web")
	if n := exports("west"); n != 2 {
		t.Errorf("west has %d ServiceExports, want 2", n)
	}
	s.stop["east"]()
	s.serve(t, "east", "slow", "10.1.0.3", 80)
	s.refused(t, "export --context east -n shop slow --wait 100ms", cli.ExitFailed, "slow: its agent has said nothing about it", "the ServiceExports are there, but not all are ready")
	s.startAgent("east")
	s.says(t, "export --context east -n shop slow --wait 3m", "slow: The service is exported to the clusterset.")
}

func (s *seen) testStatus(t *testing.T) {
	s.awaitProblems(t, "a conflict, and its service in both clusters", func(p []survey.Problem) bool {
		return len(p) == 1 && about(survey.ReasonConflict, "", "shop/web")(p)
	})
	var status survey.Status
	s.await(t, statusPause, "import of all services by members that are connected", func() bool {
		status = survey.Status{}
		return s.data(t, "status -o json", &status) && !slices.ContainsFunc(status.Members, func(m survey.MemberStatus) bool {
			return m.State != survey.StateConnected || !isAbove(m.Imports, 2)
		})
	})
	east := status.Members[0]
	if east.Exports != 2 || east.ReadyEndpoints != 2 || east.Context != "east" || east.Publication != "Complete" {
		t.Errorf("east: %+v", east)
	}
	s.shows(t, "status", "WARN  Conflict shop/web: The exporters disagree on ports", "-> See who says what: kubectl clusterset explain shop/web", "east(1/1),west(1/1)")
	s.shows(t, "status -o wide", "east,west", "OLDEST")
	s.shows(t, "status -o yaml", "kind: ClustersetStatus")
	s.shows(t, "status --hub-context hub --contexts west", "east   connected", "Conflict shop/web")
	s.endsWith(t, "status --exit-code", cli.ExitFailed, "the clusterset has problems")
	s.refused(t, "status -o table", cli.ExitUsage, "must be one of wide, json, yaml")
	s.refused(t, "status --services none", cli.ExitUsage, "must be some or all")
	s.endsWith(t, "status --contexts east", cli.ExitFailed, "none of the contexts leads to a hub")
	s.testScope(t)
	s.testObstructed(t)
}

// testScope: a command says so if what it is asked to look at is not there.
func (s *seen) testScope(t *testing.T) {
	file, err := clientcmd.LoadFromFile(s.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	file.Clusters["away"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"} // nobody listens there
	file.Contexts["away"] = &clientcmdapi.Context{Cluster: "away"}
	if err := clientcmd.WriteToFile(*file, s.kubeconfig); err != nil {
		t.Fatal(err)
	}
	defer s.writeKubeconfig(t)
	for command, text := range map[string]string{
		"status --hub-context east":                       "it is no hub, as it has no kind Member: pass the context of the hub in --hub-context",
		"diff shop/ghost":                                 "nothing is known of shop/ghost: no cluster that was looked at exports or imports it, and the hub has no record of it",
		"diff --hub-context hub --contexts east,away":     "not everything was looked at, so what its agent would write is not known: context away; pass --contexts",
		"diff shop/web --hub-context hub --contexts away": "not everything was looked at, so what its agent would write is not known: context away; pass --contexts",
	} {
		s.endsWith(t, command, cli.ExitFailed, text)
	}
	s.shows(t, "status --namespace shop", "SERVICES (3)", "Conflict shop/web")
	if out := s.must(t, "status --namespace ghost"); !strings.Contains(out, "note: no service of namespace ghost is exported") || strings.Contains(out, "shop") {
		t.Errorf("status of a namespace without services:\n%s", out)
	}
	s.shows(t, "trace shop/slow", "shop/slow works, as far as can be seen from here", "Pass --dns-server east=HOST:PORT to ask the one that it has")
	s.shows(t, "diff shop/slow")
}

// testObstructed: status knows what an Event, the metric and trace know.
func (s *seen) testObstructed(t *testing.T) {
	key := metav1.ObjectMeta{Namespace: "shop", Name: "slow"}
	s.stop["west"]()
	if err := s.client(t, "west").Delete(t.Context(), &mcsv1beta1.ServiceImport{ObjectMeta: key}); err != nil {
		t.Fatal(err)
	}
	theirs := &mcsv1beta1.ServiceImport{ObjectMeta: key, Spec: mcsv1beta1.ServiceImportSpec{
		Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}},
	}}
	s.create(t, "west", theirs)
	s.startAgent("west")
	obstructed := about(survey.ReasonImportObstructed, "west", "shop/slow")
	s.awaitProblems(t, "obstructed import", obstructed)
	s.shows(t, "status", "ERROR ImportObstructed west shop/slow: The service is not imported, because a ServiceImport of this name is there that is not managed by Tombolo.",
		"-> If nobody needs that one: kubectl --context west -n shop delete serviceimport slow")
	if err := s.client(t, "west").Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	s.awaitProblems(t, "end of the obstacle", func(p []survey.Problem) bool { return len(p) == 1 })
}

func (s *seen) testExplain(t *testing.T) {
	s.shows(t, "explain shop/web", "is exported by 2 clusters", "west: http:8080/TCP", "Port http:8080/TCP of west: nobody reaches it: the name http means 80/TCP, of the older export of east")
	s.shows(t, "explain -n shop cart", "is exported by 1 cluster.")
	s.await(t, statusPause, "explanation as JSON", func() bool {
		var e survey.Explanation
		return s.data(t, "explain shop/web -o json", &e) && len(e.Exports) == 2 && e.Exports[0].Cluster == "east" && len(e.LostPorts) == 1
	})
	s.endsWith(t, "explain other/web", cli.ExitFailed, "The hub has no record of service other/web.", "Do you mean one of these?\n  shop/web\n")
	s.refused(t, "explain a/b/c", cli.ExitUsage, "is no service")
}

func (s *seen) testGraph(t *testing.T) {
	s.shows(t, "graph", "<svg ", ">cart</text>", "conflict: ports", "</svg>")
	s.shows(t, "graph -o dot", `"member west" -> "service shop/web" [color=orange`, `"service shop/cart" -> "member east" [color=gray, style=dashed]`)
	if out := s.shows(t, "graph -o dot -n default", `"member east"`); strings.Contains(out, "shop") {
		t.Errorf("of another namespace:\n%s", out)
	}
	file := filepath.Join(t.TempDir(), "clusterset.svg")
	s.await(t, statusPause, "graph that prints nothing beside the file", func() bool {
		out, code := s.run(t, "graph --file "+file)
		return code == cli.ExitOK && out == ""
	})
	if content, err := os.ReadFile(file); err != nil || !strings.Contains(string(content), ">cart</text>") {
		t.Errorf("the file: %v\n%s", err, content)
	}
	s.refused(t, "graph -o png", cli.ExitUsage, "must be one of svg, dot")
}

// testBadExports: an export of a Service that does not exist, and a member that has never connected.
func (s *seen) testBadExports(t *testing.T) {
	s.create(t, "east", &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "missing"}})
	s.create(t, "hub", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "member-ghost"}})
	s.create(t, "hub", &hubv1alpha1.Member{
		ObjectMeta: metav1.ObjectMeta{Namespace: "member-ghost", Name: "member"},
		Spec:       hubv1alpha1.MemberSpec{ClusterID: "ghost", PodCIDRs: []hubv1alpha1.CIDR{"10.9.0.0/16"}},
	})
	s.awaitProblems(t, "problem with the export", about(survey.ReasonExportInvalid, "east", "shop/missing"))
	s.awaitProblems(t, "problem with the member", about(survey.ReasonMemberNeverHeard, "ghost", ""))
	s.shows(t, "status", "There is no Service missing in namespace shop.", "kubectl clusterset unexport --context east -n shop missing", "NEVER HEARD")
	s.endsWith(t, "explain shop/missing", cli.ExitFailed, "east has a ServiceExport for it: There is no Service missing in namespace shop.")
	s.says(t, "unexport --context east -n shop missing", "deleted    ServiceExport shop/missing")
}

// printed is what a command prints, which is read while it runs.
type printed struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *printed) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(text)
}

func (p *printed) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// testSilence watches a member fall silent, which says of another version than the rest.
func (s *seen) testSilence(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &printed{}
	ended := make(chan int, 1)
	watch := func() {
		streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out}
		ended <- cli.Run(ctx, release, []string{"status", "--watch", "--kubeconfig", s.kubeconfig}, streams)
	}
	go watch()
	s.eventually(t, "beginning of what the watch prints", func() bool {
		select {
		case <-ended: // the hub has not answered in time
			out = &printed{}
			go watch()
		default:
		}
		return strings.Contains(out.String(), "MEMBERS (")
	})
	s.stop["west"]()
	beat := &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: "member-west", Name: hubv1alpha1.HeartbeatName}}
	s.edit(t, "hub", beat, func() { beat.Spec.AgentVersion = "v0.0.9" }) // the agent's last may be under way
	s.awaitProblems(t, "problem with west", about(survey.ReasonMemberSilent, "west", ""))
	s.awaitProblems(t, "problem with versions", about(survey.ReasonVersionSkew, "", ""))
	s.shows(t, "status", "The hub has not heard from west for", "kubectl --context west -n tombolo-system logs deployment/tombolo-agent", "v0.0.9 (west)")
	const silent = "ERROR MemberSilent west"
	s.eventually(t, "silence in what the watch prints", func() bool { return strings.Contains(out.String(), silent) })
	s.startAgent("west")
	s.awaitProblems(t, "end of the silence", func(p []survey.Problem) bool { return !about(survey.ReasonMemberSilent, "west", "")(p) })
	cancel()
	if code := <-ended; code != cli.ExitOK {
		t.Errorf("a watch that is interrupted ends with %d", code)
	}
	if text := out.String(); strings.Count(text, "MEMBERS (") != 1 || !strings.Contains(text, silent) {
		t.Errorf("the watch has printed:\n%s", text)
	}
}

func (s *seen) testUnexport(t *testing.T) {
	s.refused(t, "unexport --context west -n shop web wbe", cli.ExitFailed, "there is no ServiceExport wbe in namespace shop", "nothing has been changed")
	s.says(t, "unexport --context west -n shop -l tier=front --dry-run", "dry run", "deleted    ServiceExport shop/web")
	s.says(t, "unexport --context west -n shop --all", "deleted    ServiceExport shop/cart", "deleted    ServiceExport shop/web")
	s.says(t, "unexport --context west -n shop --all", "no ServiceExport of namespace shop is picked")
	s.eventually(t, "end of the exports of west", func() bool {
		list := &hubv1alpha1.PublishedServiceList{}
		return s.client(t, "hub").List(t.Context(), list, client.InNamespace("member-west")) == nil && len(list.Items) == 0
	})
}

// many is more than the losses that are believed at once.
const many = 25

// ofEast is how many services there are then: the two from before are web and slow.
const ofEast = many + 2

// testPendingDeletions: what the hub loses of a stopped member stays in the others, and is reported, until the member is
// taken out.
func (s *seen) testPendingDeletions(t *testing.T) {
	for i := range many {
		s.serve(t, "east", fmt.Sprintf("many-%02d", i), fmt.Sprintf("10.1.1.%d", i+1), 80)
	}
	s.must(t, "export --context east -n shop --all --wait 3m")
	imports := func(wanted func(int) bool) func() bool {
		return func() bool {
			list := &mcsv1beta1.ServiceImportList{}
			return s.client(t, "west").List(t.Context(), list) == nil && wanted(len(list.Items))
		}
	}
	s.eventually(t, "import of all", imports(func(n int) bool { return n == ofEast }))
	s.stop["east"]()
	s.stop["west"]()
	s.loseRecords(t, "member-east")
	s.startAgent("west")
	pending := func(p []survey.Problem) bool { return about(survey.ReasonDeletionPending, "west", "")(p) }
	s.awaitProblems(t, "pending deletion", pending)
	s.await(t, statusPause, "pending deletion of all imports", func() bool {
		var status survey.Status
		if !s.data(t, "status -o json", &status) {
			return false
		}
		pending := status.Members[len(status.Members)-1].PendingDeletions
		return pending != nil && *pending == ofEast
	})
	s.shows(t, "status", "west keeps what it has of east, which the hub no longer lists, in 27 imports until east's heartbeat confirms that it is gone",
		"kubectl clusterset leave --from hub --cluster-id east --hub-context hub")
	leave := "leave --from hub --cluster-id east --hub-context hub"
	s.shows(t, leave+" --dry-run", "Member member-east/member: suspended", "then up to 3s for the next heartbeat of west")
	s.shows(t, leave, "configured Member member-east/member: suspended", "waiting up to 3s for the next heartbeat of west", "ok    a heartbeat of each since then")
	s.eventually(t, "end of the imports", imports(func(n int) bool { return n == 0 }))
	s.awaitProblems(t, "end of the problem", func(p []survey.Problem) bool { return !pending(p) })
}

// loseRecords deletes all records of a member from the hub, and returns when who begins to watch there is shown none of them either.
func (s *seen) loseRecords(t *testing.T, member string) {
	t.Helper()
	kinds := map[client.Object]client.ObjectList{
		&hubv1alpha1.PublishedService{}: &hubv1alpha1.PublishedServiceList{}, &hubv1alpha1.PublishedEndpoints{}: &hubv1alpha1.PublishedEndpointsList{},
	}
	for kind, list := range kinds {
		if err := s.client(t, "hub").DeleteAllOf(t.Context(), kind, client.InNamespace(member)); err != nil {
			t.Fatal(err)
		}
		cached := &client.ListOptions{Namespace: member, Raw: &metav1.ListOptions{ResourceVersion: "0"}}
		s.eventually(t, "loss of the records", func() bool {
			return s.client(t, "hub").List(t.Context(), list, cached) == nil && meta.LenList(list) == 0
		})
	}
}
