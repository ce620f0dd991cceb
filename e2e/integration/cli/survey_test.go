// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// surveyed is a clusterset of the members east and west.
type surveyed struct {
	*world
	// whole is the test of all parts: agents run longer than one part.
	whole *testing.T
	stop  map[string]func()
}

func (s *surveyed) startAgent(name string) {
	s.stop[name] = startNode(s.whole, s.Cluster(name), s.agent)
}

// TestSurvey runs the commands that read a clusterset while things go wrong, one after the other. What they print of what they
// read is tested in cmd/kubectl-clusterset.
//
// spec: C1, C2, C3, R3
func TestSurvey(t *testing.T) { //nolint:tparallel // its parts follow one another
	t.Parallel()
	w := start(t, "east", "west")
	w.initHub(t, "hub")
	s := &surveyed{world: w, whole: t, stop: map[string]func(){}}
	for i, name := range []string{"east", "west"} {
		s.must(t, s.join(name, fmt.Sprintf("--wait 0 --check-from-inside=false --agent-image example/agent:v1 --pod-cidrs 10.%d.0.0/16", i+1)))
		agent := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-agent"}}
		s.edit(t, name, agent, func() { // so that silence is noticed soon
			container := &agent.Spec.Template.Spec.Containers[0]
			container.Args = append(container.Args, "--heartbeat-interval=1s")
		})
		s.create(t, name, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}})
		s.startAgent(name)
	}
	s.awaitProblems(t, "no problems", func(p []assess.Problem) bool { return len(p) == 0 })
	t.Run("export", s.testExport)
	t.Run("status", s.testStatus)
	t.Run("read", s.testRead)
	t.Run("unread", s.testUnread)
	t.Run("stale forward", s.testStaleForward)
	t.Run("dashboard", s.testDashboard)
	t.Run("bundle", s.testBundle)
	t.Run("silence", s.testSilence)
	t.Run("unexport", s.testUnexport)
	t.Run("pending deletions", s.testPendingDeletions)
}

func (s *surveyed) serve(t *testing.T, cluster, name, address string, port int32) {
	t.Helper()
	service := framework.Service(framework.Key{Namespace: "shop", Name: name}, framework.Port("http", port))
	service.Labels = map[string]string{"tier": "front"}
	s.create(t, cluster, service, framework.Slice(service, "1", address))
}

// data runs a command that prints JSON, and decodes that. On a busy machine the hub may not reply in time.
func (s *surveyed) data(t *testing.T, command string, into any) error {
	t.Helper()
	var out, errs bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errs}
	if code := cli.Run(t.Context(), release, append(strings.Fields(command), "--kubeconfig", s.kubeconfig), streams); code != cli.ExitOK {
		return fmt.Errorf("$ kubectl clusterset %s\n%s%sexit code %d", command, &out, &errs, code)
	}
	lab.Must(t, json.Unmarshal(out.Bytes(), into))
	return nil
}

// awaitProblems returns the first status whose problems are as wanted.
func (s *surveyed) awaitProblems(t *testing.T, what string, wanted func([]assess.Problem) bool) (status assess.Status) {
	t.Helper()
	lab.Eventually(t, waitLimit, func(context.Context) error {
		status = assess.Status{}
		if err := s.data(t, "status --all-contexts -o json", &status); err != nil {
			return err
		}
		if !wanted(status.Problems) {
			return fmt.Errorf("no %s: problems %+v, members %+v", what, status.Problems, status.Members)
		}
		return nil
	})
	return status
}

// about returns a function that reports whether there is a problem of this kind, of a member and a service.
func about(reason assess.Reason, member, service string) func([]assess.Problem) bool {
	return func(problems []assess.Problem) bool {
		return slices.ContainsFunc(problems, func(p assess.Problem) bool {
			return p.Reason == reason && string(p.Member) == member && p.Service == service
		})
	}
}

func (s *surveyed) says(t *testing.T, command string, texts ...string) {
	t.Helper()
	s.refused(t, command, cli.ExitOK, texts...)
}

// shows repeats a command until it succeeds and prints these texts: a command leaves out a cluster that a busy machine keeps from
// answering within a few seconds.
func (s *surveyed) shows(t *testing.T, command string, texts ...string) string {
	t.Helper()
	return s.endsWith(t, command, cli.ExitOK, texts...)
}

// endsWith is shows for any exit code.
func (s *surveyed) endsWith(t *testing.T, command string, code int, texts ...string) (out string) {
	t.Helper()
	lab.Eventually(t, waitLimit, func(context.Context) error {
		var got int
		out, got = s.run(t, command)
		if got != code || slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(out, text) }) {
			return fmt.Errorf("$ kubectl clusterset %s\n%sexit code %d, want %d with %q", command, out, got, code, texts)
		}
		return nil
	})
	return out
}

func (s *surveyed) testStatus(t *testing.T) {
	var status assess.Status
	lab.Eventually(t, waitLimit, func(context.Context) error {
		status = assess.Status{}
		if err := s.data(t, "status --all-contexts -o json", &status); err != nil {
			return err
		}
		if len(status.Problems) != 1 || !about(assess.ReasonConflict, "", "shop/web")(status.Problems) {
			return fmt.Errorf("the problems are %+v, not one conflict", status.Problems)
		}
		for _, m := range status.Members {
			if m.State != survey.StateConnected || m.Imports == nil || *m.Imports < 3 {
				return fmt.Errorf("not all services are imported: %+v", m)
			}
		}
		return nil
	})
	if east := status.Members[0]; east.Exports != 2 || east.ReadyEndpoints != 2 || east.Context != "east" || east.Publication != "Complete" {
		t.Errorf("east: %+v", east)
	}
	s.shows(t, "status --all-contexts", "WARN  Conflict shop/web: The exporters disagree on ports", "-> See who says what: kubectl clusterset explain shop/web", "east(1/1),west(1/1)")
	s.shows(t, "status --hub-context hub --contexts west", "east   connected", "Conflict shop/web")
	s.endsWith(t, "status --all-contexts --exit-code", cli.ExitFailed, "the clusterset has problems")
	// Without a selection, the cluster of the current context is read, and the hub that its agent uses.
	for _, command := range []string{"status --context west", "status --contexts west"} {
		out := s.shows(t, command, "east   connected", "Conflict shop/web")
		if noted := strings.Contains(out, "note: only what the hub stores of east is known: --all-contexts"); noted != (command == "status --context west") {
			t.Errorf("$ kubectl clusterset %s\n%s", command, out)
		}
	}
	s.endsWith(t, "status --context west --hub-context east", cli.ExitIncomplete, "it is no hub, as it has no kind Member: pass the context of the hub in --hub-context")
	s.shows(t, "status --all-contexts --namespace shop", "SERVICES (3)", "Conflict shop/web")
	if out := s.must(t, "status --all-contexts --namespace ghost"); !strings.Contains(out, "note: no service of namespace ghost is exported") || strings.Contains(out, "shop") {
		t.Errorf("status of a namespace without services:\n%s", out)
	}
}

// testRead runs the other commands that read: each finds the objects of both members.
func (s *surveyed) testRead(t *testing.T) {
	s.shows(t, "explain shop/web --context east", "is exported by 2 clusters", "west: http:8080/TCP", "Port http:8080/TCP of west: no client reaches it: the name http means 80/TCP, of the older export of east")
	s.endsWith(t, "explain other/web --all-contexts", cli.ExitFailed, "The hub has no record of service other/web.", "Do you mean one of these?\n  shop/web\n")

	s.shows(t, "trace shop/slow --all-contexts", "shop/slow works, as far as can be seen from here", "could not find the cluster's DNS (there is no Service kube-system/kube-dns, ")
	s.shows(t, "diff shop/slow --context east", "note: only what the hub stores of west is known")
	s.shows(t, "diff shop/slow --all-contexts -o json", `"kind": "PendingWrites"`, `"writes": []`)
	s.endsWith(t, "diff shop/ghost --all-contexts", cli.ExitDiffFailed, "nothing is known of shop/ghost: no cluster that was read exports or imports it, and the hub has no record of it")

	// A comparison of nothing is no success.
	s.endsWith(t, "diff --context hub", cli.ExitDiffFailed, "nothing was compared: none of the contexts that were read leads to a member")
	s.endsWith(t, "diff --all-contexts -n ghost", cli.ExitDiffFailed, "nothing was compared: no service of namespace ghost")

	s.shows(t, "graph --all-contexts -o dot", `"member west" -> "service shop/web" [color=orange`, `"service shop/cart" -> "member east" [color=gray, style=dashed]`)
	file := filepath.Join(t.TempDir(), "clusterset.svg")
	lab.Eventually(t, waitLimit, func(context.Context) error {
		if out, code := s.run(t, "graph --all-contexts --file "+file); code != cli.ExitOK || out != "" {
			return fmt.Errorf("exit code %d; with --file it prints\n%s", code, out)
		}
		return nil
	})
	if content, err := os.ReadFile(file); err != nil || !strings.Contains(string(content), ">cart</text>") {
		t.Errorf("the file: %v\n%s", err, content)
	}
}

// buffer collects the output of a command that still runs.
type buffer struct{ lab.Buffer }

func (b *buffer) await(t *testing.T, text string) {
	t.Helper()
	lab.Eventually(t, waitLimit, func(context.Context) error {
		if !strings.Contains(b.String(), text) {
			return fmt.Errorf("no %q in\n%s", text, b.String())
		}
		return nil
	})
}

// testSilence: a member becomes silent, and its last heartbeat names another version. "status --watch" prints both.
func (s *surveyed) testSilence(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.shows(t, "status --all-contexts", "MEMBERS (")
	out, ended := &buffer{}, make(chan int, 1)
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out}
	go func() {
		ended <- cli.Run(ctx, release, []string{"status", "--all-contexts", "--watch", "--kubeconfig", s.kubeconfig}, streams)
	}()
	out.await(t, "MEMBERS (")
	s.stop["west"]()
	beat := &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: "member-west", Name: hubv1alpha1.HeartbeatName}}
	s.edit(t, "hub", beat, func() { beat.Spec.AgentVersion = "v0.0.9" })
	s.awaitProblems(t, "problem with west", about(assess.ReasonMemberSilent, "west", ""))
	s.awaitProblems(t, "problem with versions", about(assess.ReasonVersionSkew, "", ""))
	s.shows(t, "status --all-contexts", "The hub has received no heartbeat of west for", "kubectl --context west -n tombolo-system logs deployment/tombolo-agent", "v0.0.9 (west)")
	out.await(t, "ERROR MemberSilent west")
	s.startAgent("west")
	s.awaitProblems(t, "end of the silence", func(p []assess.Problem) bool { return !about(assess.ReasonMemberSilent, "west", "")(p) })
	cancel()
	if code := <-ended; code != cli.ExitOK || strings.Count(out.String(), "MEMBERS (") != 1 {
		t.Errorf("an interrupted watch has exit code %d and has printed\n%s", code, out.String())
	}
}

// testPendingDeletions: if the hub loses the records of a stopped member, the other members keep the imports. That is reported
// until the member is removed.
func (s *surveyed) testPendingDeletions(t *testing.T) {
	const services = 2 // web and slow
	s.awaitCount(t, "west", &mcsv1beta1.ServiceImportList{}, services)
	s.stop["east"]()
	s.stop["west"]()
	east := client.InNamespace("member-east")
	for kind, list := range map[client.Object]client.ObjectList{
		&hubv1alpha1.PublishedService{}: &hubv1alpha1.PublishedServiceList{}, &hubv1alpha1.PublishedEndpoints{}: &hubv1alpha1.PublishedEndpointsList{},
	} {
		lab.Must(t, s.client(t, "hub").DeleteAllOf(t.Context(), kind, east))
		s.awaitCount(t, "hub", list, 0, east, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: "0"}}) // in the watch cache, too
	}
	s.startAgent("west")
	pending := about(assess.ReasonDeletionPending, "west", "")
	lab.Eventually(t, waitLimit, func(context.Context) error {
		status := s.awaitProblems(t, "pending deletion", pending)
		if n := status.Members[len(status.Members)-1].PendingDeletions; n == nil || *n != services {
			return errors.New("not the deletion of all imports is pending")
		}
		return nil
	})
	s.shows(t, "status --all-contexts", "west keeps what it has of east, which the hub no longer lists, in 2 imports until east's heartbeat confirms that it is gone",
		"kubectl clusterset leave --from hub --cluster-id east --hub-context hub")
	leave := "leave --from hub --cluster-id east --hub-context hub"
	s.shows(t, leave+" --dry-run", "member.hub.tombolo-mcs.io/member configured (server dry run)", "then up to 3s for the next heartbeat of west")
	s.refused(t, leave, cli.ExitFailed, "On the hub, east and all of its records are deleted", "nothing has been changed")
	s.shows(t, leave+" --yes", "member.hub.tombolo-mcs.io/member configured\n", "the Member of east is suspended", "waiting up to 3s for the next heartbeat of west", "ok    a heartbeat of each since then")
	s.awaitCount(t, "west", &mcsv1beta1.ServiceImportList{}, 0)
	s.awaitProblems(t, "end of the problem", func(p []assess.Problem) bool { return !pending(p) })
}
