// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// bug is a patch of bugs/ that makes the product worse, a scene in which that shows, and the rule under which the checker
// must find it.
type bug struct {
	patch string
	rule  oracle.Rule
	scene func(context.Context, *world) error
}

func bugs() []bug {
	return []bug{
		{"merge-prefers-the-youngest", oracle.Imported, nothingMore},
		{"render-leaves-ports-unnamed", oracle.Derived, nothingMore},
		{"merge-serves-lost-ports", oracle.Endpoints, lostPortScene},
		{"exportstatus-reports-no-conflicts", oracle.Conditions, nothingMore},
		{"publish-keeps-withdrawn-records", oracle.Published, withdrawnScene},
		{"sources-take-all-slices", oracle.Unexported, nothingMore},
		{"hub-takes-missing-for-deleted", oracle.ImportKept, lossScene},
		{"imports-need-a-serviceimport", oracle.ImportKept, cutOffScene},
		{"publish-drops-inactive-records", oracle.AgeKept, recreatedScene},
		{"liveness-revives-ports", oracle.Withheld, stoppedScene},
		{"status-writes-enqueue-their-writer", oracle.FewWrites, invalidExport},
		{"presence-counts-silence-of-a-frozen-hub", oracle.EndpointKept, frozenScene},
		{"apply-adopts-unmanaged-objects", oracle.Unmanaged, foreignScene},
		{"render-changes-names", oracle.Name, nothingMore},
		{"imports-lose-addresses", oracle.Address, editedScene},
		{dnsBug, oracle.Answered, nothingMore},
	}
}

// testBug is a patch of bugs/ that a test of another kind must find, which then says a text.
type testBug struct {
	patch        string
	folder, test string
	says         string
	// fault is the one that a test of this folder injects.
	fault string
}

// hasTest reports whether the test of the bug exists.
func (b testBug) hasTest(t *testing.T) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", b.folder, "*_test.go"))
	lab.Must(t, err)
	return slices.ContainsFunc(files, func(name string) bool {
		text, err := os.ReadFile(name)
		lab.Must(t, err)
		return strings.Contains(string(text), "\nfunc "+b.test+"(")
	})
}

func testBugs() []testBug {
	const handshakes, pool, stream, forward, budget = "internal/gateway/handshakes", "internal/gateway/pool", "internal/gateway/stream", "internal/gateway/forward", "internal/gateway/budget"
	return []testBug{
		{"publish-waits-for-what-cannot-exist", "controllers/publish", "TestIsSettled", "settled: {created:false updated:false deleted:true lost:false}, want {created:true", ""},
		{"publish-settles-while-the-hub-starts", "controllers/publish", "TestIsSettled", "settled: {created:true updated:true deleted:true lost:false}, want {created:false", ""},
		{"presence-notifies-early-controllers-only", "controllers/presence", "TestOnMayWrite", "a controller subscribes later", ""},
		{"presence-lets-copies-continue", "controllers/presence", "TestCopies", "does not yield", ""},
		{"gateways-retry-after-client-bytes", forward, "TestOnce", "and the request arrived 2 times", ""},
		{"gateways-wait-for-silent-connections", forward, "TestSilentPath", "of which no byte was sent", ""},
		{"gateways-accept-expired-certificates", forward, "TestRightOfEachStream", "want a reset", ""},
		{"gateways-check-rights-at-the-handshake-only", forward, "TestRightOfEachStream", "want a reset", ""},
		{"gateways-close-answered-handshakes", handshakes, "TestSlowPeers", "before the grace has passed", ""},
		{"gateways-count-known-peers-as-handshakes", forward, "TestHostileDialer", "a peer that is verified is closed because of others", ""},
		{"gateways-dial-without-bound", pool, "TestManyClients", "first dials", ""},
		{"gateways-count-lost-connections-as-success", pool, "TestPauses", "a dial after a failure is not verified", ""},
		{"gateways-dial-addresses-that-have-failed", pool, "TestNextAddress", "neither the silent address nor the one that has failed", ""},
		{"gateways-dial-those-at-their-limit", pool, "TestLimit", "dials in ten seconds to two gateways at their limit", ""},
		{"gateways-give-all-streams-to-one-cluster", budget, "TestStreamsToEachCluster", "streams of 10.0.0.1 to [west]", ""},
		{"gateways-do-not-watch-half-closed-sockets", forward, "TestWatched", "streams are counted", ""},
		{"gateways-close-after-refused", stream, "TestDocument", "opening, receives REFUSED (another code)", ""},
		{"gateways-retry-without-pause", stream, "TestPauses", "pauses (-want +got)", ""},
		{"gateways-ask-again-after-denials", forward, "TestDeniedAgain", "clients have caused", ""},
		{"gateways-look-up-before-access", forward, "TestDeniedBeforeBackends", "denied, and it is not exported", ""},
		{"gateways-begin-streams-without-memory", budget, "TestMemoryOfStreams", "stream 2: <nil>", ""},
		{"gateways-keep-what-is-not-read", forward, "TestMemoryOfStalledStreams", "KiB are in use, of", ""},
		{"gateways-wait-for-each-other", forward, "TestFullInBothDirections", "i/o timeout", ""},
		{"imports-report-no-refusals", "internal/importing", "TestRefusedObjects", "error <nil>", ""},
		{"imports-keep-what-a-policy-changes", "internal/importing", "TestChangedByAPolicy", "Ready: ", ""},
		{"status-writes-change-labels", "e2e/integration/agent", "TestAdmissionPolicy", "our label is written by status of Service", ""},
		{"gateways-forward-to-gateways", "e2e/chaos", "TestGatewayFaults", "streams lead in circles", "two services lead to each other"},
		{"ports-are-given-twice", "e2e/chaos", "TestGatewayFaults", "has arrived at", "a service is withdrawn while all listening ports are in use"},
		{"imports-wait-for-no-free-port", "e2e/chaos", "TestGatewayFaults", "waiting has no listening port", "all listening ports are in use"},
		{"ports-are-not-quarantined", "e2e/chaos", "TestGatewayFaults", "has arrived at waiting", "a service is withdrawn while all listening ports are in use"},
	}
}

// namedIn returns those that a list names, separated by commas; all if it is empty or 1.
func namedIn[T any](list string, all []T, name func(T) string) []T {
	if list == "" || list == "1" {
		return all
	}
	return slices.DeleteFunc(all, func(one T) bool { return !slices.Contains(strings.Split(list, ","), name(one)) })
}

// dnsBug is the one that is not the agent's.
const dnsBug = "dns-answers-with-any-endpoint"

func commandOf(patch string) string {
	if patch == dnsBug {
		return "coredns"
	}
	return "tombolo-agent"
}

// TestEveryRuleHasABug: each rule of the checker has a bug that it must find, each patch is one of them, and applies. The test that must find a
// bug exists.
func TestEveryRuleHasABug(t *testing.T) {
	t.Parallel()
	rules := map[oracle.Rule]bool{}
	var names []string
	for _, b := range bugs() {
		rules[b.rule] = true
		names = append(names, patchOf(b.patch))
	}
	for _, b := range testBugs() {
		names = append(names, patchOf(b.patch))
		if !b.hasTest(t) {
			t.Errorf("%s: package %s has no %s", b.patch, b.folder, b.test)
		}
	}
	for _, name := range names {
		if _, err := overlay(t.TempDir(), "few-ports.patch", name); err != nil {
			t.Error(err)
		}
	}
	for _, rule := range oracle.Rules() {
		if !rules[rule] {
			t.Errorf("no bug breaks rule %s", rule)
		}
	}
	kept, err := filepath.Glob(filepath.Join("bugs", "*.patch"))
	lab.Must(t, err)
	slices.Sort(names)
	if !slices.Equal(kept, names) {
		t.Errorf("bugs/ holds %v, and these are tried: %v", kept, names)
	}
}

// TestBugs: the checker finds nothing in the product, and each bug in a copy of it. It runs with make chaos-bugs.
func TestBugs(t *testing.T) {
	if os.Getenv("CHAOS_BUGS") == "" {
		t.Skip("make chaos-bugs runs it")
	}
	chosen := namedIn(os.Getenv("CHAOS_BUGS"), bugs(), func(b bug) string { return b.patch })
	if len(chosen) == 0 {
		t.Skip("CHAOS_BUGS names no bug that the checker must find")
	}
	good, err := program()
	lab.Must(t, err)
	w := newWorld(t, good, rand.New(rand.NewPCG(1, 1)), "a", "b")
	lab.Must(t, w.createServices(t.Context()))
	goodDNS, err := coreDNS()
	lab.Must(t, err)
	w.startDNS(t, w.members[1], goodDNS)
	for _, b := range chosen {
		t.Run(b.patch, func(t *testing.T) {
			w.t = t
			bad := filepath.Join(t.TempDir(), commandOf(b.patch))
			lab.Must(t, buildBug(t, b.patch, bad))
			w.with(good, nil)
			_, never, wrong, err := w.settled(t.Context())
			lab.Must(t, err)
			if len(never)+len(wrong) > 0 && !after(b) {
				t.Fatalf("found in the product itself: %v %v", never, wrong)
			}
			if b.patch == dnsBug {
				lab.Must(t, w.resolver.become(bad))
				bad = good
			}
			found, err := w.play(t.Context(), bad, b.scene)
			lab.Must(t, err)
			if !slices.ContainsFunc(found, func(f oracle.Finding) bool { return f.Rule == b.rule }) {
				t.Errorf("rule %s finds nothing", b.rule)
			}
			seen := map[oracle.Rule]int{}
			for _, f := range found {
				seen[f.Rule]++
				if seen[f.Rule] == 1 {
					t.Log(f)
				}
			}
			t.Logf("findings by rule: %v", seen)
			lab.Must(t, w.resolver.become(goodDNS))
			w.with(good, w.cleanUp)
		})
	}
}

// TestBugsOfTests: the test that each of these bugs names fails with it. It runs with make chaos-bugs.
func TestBugsOfTests(t *testing.T) {
	names := os.Getenv("CHAOS_BUGS")
	if names == "" {
		t.Skip("make chaos-bugs runs it")
	}
	for _, b := range namedIn(names, testBugs(), func(b testBug) string { return b.patch }) {
		t.Run(b.patch, func(t *testing.T) {
			if b.fault != "" && os.Geteuid() != 0 {
				t.Skip("the faults of gateways need root")
			}
			file, err := overlay(t.TempDir(), patchOf(b.patch))
			lab.Must(t, err)
			command := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-timeout=10m", "-overlay="+file, "-run=^"+b.test+"$", "./"+b.folder)
			command.Dir = filepath.Join("..", "..")
			command.Env = append(os.Environ(), "CHAOS_BUGS=", "CHAOS=1", "CHAOS_SEED=1", "CHAOS_FAULTS="+b.fault, "CHAOS_BUG="+b.patch)
			output, err := command.CombinedOutput()
			found := slices.DeleteFunc(strings.Split(string(output), "\n"), func(line string) bool { return !strings.Contains(line, b.says) })
			if err == nil || len(found) == 0 {
				t.Fatalf("%s.%s does not say %q: %v\n%s", b.folder, b.test, b.says, err, output)
			}
			t.Log(strings.TrimSpace(found[0]))
		})
	}
}

// after reports whether the product has to repair first what the bug before did: what it does to that end is not judged.
func after(b bug) bool { return b.patch != bugs()[0].patch }

// with has all agents run another program, and does something while none runs.
func (w *world) with(path string, between func(context.Context)) {
	for _, m := range w.members {
		w.must(m.agent.stop())
		m.agent.path = path
	}
	if between != nil {
		between(context.Background())
	}
	for _, m := range w.members {
		w.must(m.agent.start())
	}
}

// play has a scene happen under a program and returns what the checker finds in the end, or found on the way.
func (w *world) play(ctx context.Context, path string, scene func(context.Context, *world) error) ([]oracle.Finding, error) {
	w.with(path, nil)
	k := oracle.Key{Namespace: scratch, Name: "web"}
	for _, m := range w.members {
		w.must(w.offer(ctx, m, service(k, uint(m.index)), w.random))
	}
	w.must(w.imported(ctx, k))
	_, err := w.rest(ctx)
	w.must(err)
	w.must(scene(ctx, w))
	wrong, err := w.rest(ctx)
	seen, lookErr := w.look(ctx)
	return slices.Concat(wrong, w.watch.begin(seen)), errors.Join(err, lookErr)
}

// rest waits until what the checker finds has not changed for a while, and returns it.
func (w *world) rest(ctx context.Context) ([]oracle.Finding, error) {
	var last []oracle.Finding
	since := time.Now()
	err := wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, waitLimit, true, func(ctx context.Context) (bool, error) {
		seen, err := w.look(ctx)
		if err != nil {
			return false, err
		}
		if found := w.asked(ctx, seen); !reflect.DeepEqual(found, last) {
			last, since = found, time.Now()
		}
		return time.Since(since) > 8*time.Second, nil
	})
	return last, err
}

func (w *world) cleanUp(ctx context.Context) {
	for _, m := range w.members {
		for _, name := range []string{"web", "theirs"} {
			w.must(w.withdraw(ctx, m, oracle.Key{Namespace: scratch, Name: name}))
		}
	}
}

func nothingMore(context.Context, *world) error { return nil }

// lostPortScene has members export a service whose ports bear one name and two numbers: one of them loses.
func lostPortScene(ctx context.Context, w *world) error {
	for i, m := range w.members {
		w.must(w.offer(ctx, m, service(oracle.Key{Namespace: scratch, Name: "theirs"}, uint(i)), w.random))
	}
	return nil
}

func withdrawnScene(ctx context.Context, w *world) error {
	return w.withdraw(ctx, w.members[0], oracle.Key{Namespace: scratch, Name: "web"})
}

// lossScene has the hub lose records while no agent runs, without the proof that it is noticed, which the bug would have fail.
func lossScene(ctx context.Context, w *world) error {
	ctx, cancel := context.WithTimeout(ctx, 45*time.Second)
	defer cancel()
	m, k := w.members[0], oracle.Key{Namespace: scratch, Name: "theirs"}
	w.must(w.offer(ctx, m, service(k, 0), w.random), w.awaitStable(ctx, m, k))
	err := w.loseWhileDown(ctx, m, 6, k, func() error { return nil })
	if err != nil && !errors.Is(err, errNoEffect) && !apierrors.IsNotFound(err) {
		return err
	}
	if m.agent.runs() {
		return nil
	}
	return m.agent.start()
}

// cutOffScene deletes an import by hand in a member that does not reach the hub.
func cutOffScene(ctx context.Context, w *world) error {
	m, k := w.members[1], aloneKey("a")
	return w.whileCutOff(ctx, m, func() error {
		w.watch.will(oracle.HandImport, m.id, k)
		if err := m.Delete(ctx, &mcsv1beta1.ServiceImport{ObjectMeta: meta(k)}); err != nil {
			return err
		}
		pause(ctx, heartbeat)
		return nil
	})
}

// recreatedScene deletes the Service of an export and makes it again.
func recreatedScene(ctx context.Context, w *world) error {
	m, k := w.members[0], aloneKey("a")
	w.watch.will(oracle.Source, m.id, k)
	err := errors.Join(m.Delete(ctx, &corev1.Service{ObjectMeta: meta(k)}), gone(ctx, w.members, k))
	return errors.Join(err, m.Create(ctx, service(k, 0)), w.imported(ctx, k))
}

func stoppedScene(ctx context.Context, w *world) error {
	down, other := w.members[0], w.members[1]
	w.watch.will(oracle.Silence, down.id, oracle.Key{})
	w.must(down.agent.kill())
	w.silent[down.id] = true
	defer delete(w.silent, down.id)
	if _, never, wrong, err := w.settled(ctx); err != nil || len(never)+len(wrong) > 0 {
		return fmt.Errorf("%v %v: %w", never, wrong, err)
	}
	return errors.Join(other.agent.crash(), w.beats(ctx, other))
}

func frozenScene(ctx context.Context, w *world) error {
	return w.without(ctx, 40*time.Second, w.hubKube, w.hub.APIServer.Freeze, w.hub.APIServer.Thaw)
}

// foreignScene has a ServiceImport of another user with the name of an export.
func foreignScene(ctx context.Context, w *world) error {
	k := oracle.Key{Namespace: scratch, Name: "theirs"}
	return errors.Join(w.obstruct(ctx, w.members[1], k), w.offer(ctx, w.members[0], service(k, 0), w.random))
}

// obstruct makes a ServiceImport that is not Tombolo's.
func (w *world) obstruct(ctx context.Context, m *member, k oracle.Key) error {
	theirs := &mcsv1beta1.ServiceImport{ObjectMeta: meta(k), Spec: mcsv1beta1.ServiceImportSpec{
		Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{{Port: 1, Protocol: corev1.ProtocolTCP}},
	}}
	return m.Create(ctx, theirs)
}

func editedScene(ctx context.Context, w *world) error {
	for i := range stillServices {
		m, k := w.members[1], stillKey(i)
		w.watch.will(oracle.Hand, m.id, k)
		found := &mcsv1beta1.ServiceImport{}
		w.must(m.Get(ctx, k, found))
		derived := &corev1.Service{ObjectMeta: meta(oracle.Key{Namespace: still, Name: found.Annotations["multicluster.kubernetes.io/derived-service"]})}
		w.must(m.Delete(ctx, derived))
	}
	return nil
}

// buildBug builds the agent with a patch, of which the tree remains untouched.
func buildBug(t *testing.T, patch, into string) error {
	t.Helper()
	file, err := overlay(t.TempDir(), patchOf(patch))
	if err != nil {
		return err
	}
	return lab.Build(context.Background(), filepath.Join("..", ".."), commandOf(patch), into, "-overlay="+file)
}

func patchOf(bug string) string { return filepath.Join("bugs", bug+".patch") }

// overlay applies patches to copies of the files that they change, and returns the path of a file from which the compiler reads
// to take those.
func overlay(folder string, patches ...string) (string, error) {
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for _, patch := range patches {
		if err := patchCopies(root, folder, patch, replace); err != nil {
			return "", err
		}
	}
	content, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "overlay.json"), os.WriteFile(filepath.Join(folder, "overlay.json"), content, 0o600)
}

// patchCopies applies a patch to copies of files of root in a folder. replace has the copies, and gets those that are missing.
func patchCopies(root, folder, patch string, replace map[string]string) error {
	text, err := os.ReadFile(patch)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		name, ok := strings.CutPrefix(strings.TrimSpace(line), "+++ b/")
		if !ok || replace[filepath.Join(root, name)] != "" {
			continue
		}
		content, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		into := filepath.Join(folder, name)
		replace[filepath.Join(root, name)] = into
		if err := errors.Join(os.MkdirAll(filepath.Dir(into), 0o755), os.WriteFile(into, content, 0o600)); err != nil {
			return err
		}
	}
	command := exec.Command("git", "apply", "-")
	command.Dir, command.Stdin = folder, strings.NewReader(string(text))
	command.Env = append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(folder))
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%s does not apply: %w\n%s", patch, err, output)
	}
	return nil
}
