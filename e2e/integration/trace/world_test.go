// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trace_test breaks the way of services, hop by hop, on real API servers with real agents and a real CoreDNS, and
// has each fault traced.
package trace_test

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	_ "github.com/coredns/coredns/plugin/bind"
	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/controllers/agent"
	_ "github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// patience is how long anything may take on a busy machine.
const patience = 90 * time.Second

// heartbeat is the time between those of the agents here: four of them are missing when an agent is called silent.
const heartbeat = time.Second

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	m.Run()
}

// world is a clusterset of two members, of which b has a DNS.
type world struct {
	hub     *lab.Cluster
	hubKube client.Client
	a, b    *member
	dns     *caddy.Instance
}

type member struct {
	client.Client
	id         clusterset.ClusterID
	cluster    *lab.Cluster
	local, hub *rest.Config
	stop       func() // ends its agent, once
	// test is the one that the agents live as long as.
	test *testing.T
}

func newWorld(t *testing.T) *world {
	t.Helper()
	l := lab.Start(t, membership.Hub(), lab.Member("a"), lab.Member("b"))
	w := &world{hub: l.Cluster("hub")}
	w.hubKube = membership.Client(t, w.hub)
	lab.Must(t, membership.InitHub(t.Context(), w.hub))
	w.a, w.b = w.join(t, l.Cluster("a"), 1), w.join(t, l.Cluster("b"), 2)
	w.startDNS(t, corefile)
	return w
}

// join makes a cluster the n-th member, and starts its agent in this process.
func (w *world) join(t *testing.T, cluster *lab.Cluster, n int) *member {
	t.Helper()
	hub, err := membership.Join(t.Context(), w.hub, cluster, manifests.MemberOptions{PodCIDRs: membership.PodCIDRs(n)})
	lab.Must(t, err)
	local, err := membership.InstallAgent(t.Context(), cluster)
	lab.Must(t, err)
	m := &member{Client: membership.Client(t, cluster), id: clusterset.ClusterID(cluster.Name), cluster: cluster, local: local, hub: hub, test: t}
	deployment := &appsv1.Deployment{}
	lab.Must(t, m.Get(t.Context(), client.ObjectKey{Namespace: manifests.AgentNamespace, Name: manifests.AgentDeployment}, deployment))
	container := &deployment.Spec.Template.Spec.Containers[0]
	container.Args = append(container.Args, "--heartbeat-interval="+heartbeat.String())
	lab.Must(t, m.Update(t.Context(), deployment))
	m.start()
	return m
}

// start runs the member's agent until it is stopped or the whole test ends.
func (m *member) start() {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	options := agent.Options{
		Member: m.local, Hub: m.hub, Namespace: manifests.AgentNamespace, Election: agent.RunAlone, Workers: 4, HeartbeatInterval: heartbeat, AbsentTimeout: time.Hour,
		MetricsAddress: "0", ProbeAddress: "0", Log: logr.Discard(), Version: "test",
	}
	go func() { ended <- agent.Run(ctx, options) }()
	m.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			m.test.Errorf("agent of %s: %v", m.id, err)
		}
	})
	m.test.Cleanup(m.stop)
}

// corefiles of a DNS that serves the clusterset, and of one that does not.
const (
	corefile      = ".:0 {\nbind 127.0.0.1\nclusterset clusterset.local {\nkubeconfig %s\n}\n}\n"
	otherCorefile = "example.org:0 {\nbind 127.0.0.1\nclusterset example.org {\nkubeconfig %s\n}\n}\n"
)

func (w *world) startDNS(t *testing.T, content string) {
	t.Helper()
	dnsserver.Quiet, caddy.Quiet = true, true
	lab.Must(t, dnsserver.SetDirectives([]string{"bind", "clusterset"}))
	var err error
	w.dns, err = caddy.Start(caddy.CaddyfileInput{
		Contents: []byte(fmt.Sprintf(content, filepath.ToSlash(w.b.cluster.Kubeconfig()))), Filepath: "Corefile", ServerTypeName: "dns",
	})
	lab.Must(t, err)
}

// resolve asks the DNS of b; a has none.
func (w *world) resolve(_ context.Context, m *survey.Member) ([]survey.Resolver, error) {
	if m.ID != w.b.id {
		return nil, nil
	}
	return []survey.Resolver{survey.Server(w.dns.Servers()[0].Addr().String())}, nil
}

// find returns what an administrator of all clusters sees.
func (w *world) find(ctx context.Context) (*survey.Clusterset, error) {
	var places []survey.Place
	for _, c := range []*lab.Cluster{w.hub, w.a.cluster, w.b.cluster} {
		places = append(places, survey.Place{Name: c.Name, Config: c.Config()})
	}
	return survey.Find(ctx, places, nil, patience)
}

// trace follows a service that is wanted in b.
func (w *world) trace(ctx context.Context, key clusterset.ServiceKey) (survey.Traced, error) {
	found, err := w.find(ctx)
	if err != nil {
		return survey.Traced{}, err
	}
	return survey.Trace(ctx, survey.Tracing{Clusterset: found, Key: key, From: w.b.id, Resolve: w.resolve, Settle: time.Second})
}

// comesTo traces a service until the trace is as wanted, and returns the last trace and whether it came to that: an agent that
// a busy machine holds up for longer than a trace waits is blamed meanwhile.
func (w *world) comesTo(t *testing.T, key clusterset.ServiceKey, wanted func(survey.Traced) bool) (survey.Traced, bool) {
	t.Helper()
	var last survey.Traced
	var failed error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
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

// works waits until a trace finds nothing broken.
func (w *world) works(t *testing.T, keys ...clusterset.ServiceKey) {
	t.Helper()
	for _, key := range keys {
		eventually(t, func(ctx context.Context) error {
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

// silent stops a member's agent and waits until the hub has not heard of it for too long.
func (w *world) silent(t *testing.T, m *member) {
	t.Helper()
	m.stop()
	eventually(t, func(ctx context.Context) error {
		hub, err := survey.ReadHub(ctx, survey.Place{Name: "hub", Config: w.hub.Config()})
		if err != nil {
			return err
		}
		if silence, _ := hub.Silence(m.id); silence <= 5*heartbeat {
			return fmt.Errorf("heard of %s %s ago", m.id, silence)
		}
		return nil
	})
}

// eventually ends the test unless check succeeds in time; then with check's last error.
func eventually(t *testing.T, check func(context.Context) error) {
	t.Helper()
	lab.Eventually(t, patience, check)
}
