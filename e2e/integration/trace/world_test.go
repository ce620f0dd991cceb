// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trace_test breaks services, hop by hop, on real API servers with real agents and a real CoreDNS, and traces each
// fault.
package trace_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/plugin/bind"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/memberdns"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/trace"
	"github.com/tombolo-mcs/tombolo/controllers/agent"
	_ "github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// env is a clusterset of two members, of which b has a DNS.
type env struct {
	*world.World
	a, b *member
	dns  *caddy.Instance
}

// member is a member whose agent runs but for some faults.
type member struct {
	*world.Member
	id    clusterset.ClusterID
	stop  func() // ends its agent
	start func()
}

// heartbeat is the interval of the agents here: four of them are missing when an agent is silent.
const heartbeat = time.Second

func newEnv(t *testing.T) *env {
	t.Helper()
	w := &env{World: world.New(t, membership.Hub(), lab.Member("a"), lab.Member("b"))}
	w.a, w.b = run(t, w.Members["a"]), run(t, w.Members["b"])
	w.startDNS(t, corefile)
	return w
}

// run starts a member's agent, whose Deployment says the same as its options.
func run(t *testing.T, wm *world.Member) *member {
	t.Helper()
	m := &member{Member: wm, id: clusterset.ClusterID(wm.ID)}
	m.argue(t, "--heartbeat-interval="+heartbeat.String())
	m.start = func() { m.startWith(t, func(*agent.Options) {}) } // until the whole test ends, not only a subtest
	m.start()
	return m
}

// argue adds arguments to the Deployment of a member's agent.
func (m *member) argue(t *testing.T, args ...string) {
	t.Helper()
	deployment := &appsv1.Deployment{}
	world.Update(t, m, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: manifests.AgentDeployment}, deployment, func() {
		container := &deployment.Spec.Template.Spec.Containers[0]
		container.Args = append(container.Args, args...)
	})
}

// startWith starts a member's agent with a change of its options.
func (m *member) startWith(t *testing.T, change func(*agent.Options)) {
	t.Helper()
	m.stop = m.Start(t, func(o *agent.Options) {
		o.ClusterID, o.Namespace, o.HeartbeatInterval = "", manifests.AgentNamespace, heartbeat
		change(o)
	})
}

// corefiles of a DNS that serves the clusterset, and of one that does not.
const (
	corefile      = ".:0 {\nbind 127.0.0.1\nclusterset clusterset.local {\nkubeconfig %s\n}\n}\n"
	otherCorefile = "example.org:0 {\nbind 127.0.0.1\nclusterset example.org {\nkubeconfig %s\n}\n}\n"
)

func (w *env) startDNS(t *testing.T, content string) {
	t.Helper()
	dnsserver.Quiet, caddy.Quiet = true, true
	lab.Must(t, dnsserver.SetDirectives([]string{"bind", "clusterset"}))
	var err error
	w.dns, err = caddy.Start(caddy.CaddyfileInput{
		Contents: []byte(fmt.Sprintf(content, filepath.ToSlash(w.b.Cluster.Kubeconfig()))), Filepath: "Corefile", ServerTypeName: "dns",
	})
	lab.Must(t, err)
}

// resolve asks the DNS of b; a has none.
func (w *env) resolve(_ context.Context, m *survey.Member) ([]memberdns.Resolver, error) {
	if m.ID != w.b.id {
		return nil, nil
	}
	return []memberdns.Resolver{memberdns.Server(w.dns.Servers()[0].Addr().String())}, nil
}

// find returns what an administrator of all clusters sees.
func (w *env) find(ctx context.Context) (*survey.Clusterset, error) {
	var contexts []survey.KubeContext
	for _, c := range []*lab.Cluster{w.Hub, w.a.Cluster, w.b.Cluster} {
		contexts = append(contexts, survey.KubeContext{Name: c.Name, Config: c.Config()})
	}
	return survey.Find(ctx, survey.FindOptions{Contexts: contexts, Timeout: world.Within})
}

// trace follows a service that is wanted in b.
func (w *env) trace(ctx context.Context, key clusterset.ServiceKey) (trace.Result, error) {
	found, err := w.find(ctx)
	if err != nil {
		return trace.Result{}, err
	}
	return trace.Run(ctx, trace.Options{Clusterset: found, Key: key, From: w.b.id, Resolve: w.resolve, Settle: time.Second})
}

// comesTo traces a service until the trace is as wanted, and returns the last trace and whether it came to that: an agent that
// a busy machine holds up for longer than a trace waits is blamed meanwhile.
func (w *env) comesTo(t *testing.T, key clusterset.ServiceKey, wanted func(trace.Result) bool) (trace.Result, bool) {
	t.Helper()
	var last trace.Result
	var failed error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, world.Within, true, func(ctx context.Context) (bool, error) {
		traced, err := w.trace(ctx, key)
		if ctx.Err() != nil {
			return false, ctx.Err() // the time is up, and this trace is not whole
		}
		last, failed = traced, err
		return err == nil && wanted(traced), nil
	})
	if failed != nil {
		t.Errorf("trace %s: %v", key, failed)
	}
	return last, err == nil
}

// shows fails the test unless a trace of a service comes to what is wanted.
func (w *env) shows(t *testing.T, what string, key clusterset.ServiceKey, wanted func(trace.Result) bool) {
	t.Helper()
	if traced, ok := w.comesTo(t, key, wanted); !ok || traced.Key != key {
		t.Errorf("%s: trace of %s:\n%s", what, traced.Key, show(traced))
	}
}

// is returns a function that reports whether a step is this one.
func is(hop trace.Hop, cluster clusterset.ClusterID, state trace.Health, text string) func(trace.Step) bool {
	return func(s trace.Step) bool {
		return s.Hop == hop && s.Cluster == cluster && s.State == state && strings.Contains(s.Found, text)
	}
}

// brokenAt returns a function that reports whether this step is the first that is broken, and says how to fix it.
func brokenAt(hop trace.Hop, cluster clusterset.ClusterID, text string) func(trace.Result) bool {
	return func(traced trace.Result) bool {
		broken := traced.Broken()
		return broken != nil && broken.Fix != "" && is(hop, cluster, trace.Broken, text)(*broken)
	}
}

// works waits until a trace finds nothing broken.
func (w *env) works(t *testing.T, keys ...clusterset.ServiceKey) {
	t.Helper()
	for _, key := range keys {
		world.Eventually(t, func(ctx context.Context) error {
			traced, err := w.trace(ctx, key)
			if err != nil {
				return err
			}
			if broken := traced.Broken(); broken != nil {
				return fmt.Errorf("%s is broken: %+v", key, *broken)
			}
			return nil
		})
	}
}

// silent stops a member's agent and waits until its heartbeat is overdue.
func (w *env) silent(t *testing.T, m *member) {
	t.Helper()
	m.stop()
	world.Eventually(t, func(ctx context.Context) error {
		hub, err := survey.ReadHub(ctx, survey.KubeContext{Name: "hub", Config: w.Hub.Config()})
		if err != nil {
			return err
		}
		if silence, _ := hub.Silence(m.id); silence <= 5*heartbeat {
			return fmt.Errorf("the last heartbeat of %s is %s old", m.id, silence)
		}
		return nil
	})
}
