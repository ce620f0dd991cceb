// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package agent_test runs real agents between real API servers and looks at what users would see.
package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// patience is how long a test waits for what users would see within a second: these machines are shared, and an API
// server that was restarted takes half a minute until its admission policies find the Members again.
const patience = 90 * time.Second

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	code := m.Run()
	if err := pairs.close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// world is a hub and its members.
type world struct {
	hub     *lab.Cluster
	hubKube client.Client
	members map[string]*member
}

// member is a member cluster as its users and its agent see it.
type member struct {
	client.Client
	id      string
	cluster *lab.Cluster
	// local holds the credentials of the agent in the member, and hub those on the hub.
	local    *rest.Config
	hub      *rest.Config
	registry *prometheus.Registry
	// output is what its agent has logged since it was last started.
	output *output
}

// newWorld starts a hub, and the clusters as its members, without agents. The pods of the n-th have addresses of
// 10.<n>.0.0/16 and fd00:<n>::/64. Most tests need no more than newPair.
func newWorld(t *testing.T, clusters ...lab.ClusterOptions) *world {
	t.Helper()
	return newWorldOn(t, membership.Hub(), clusters...)
}

// newWorldOn is newWorld with another hub.
func newWorldOn(t *testing.T, hub lab.ClusterOptions, clusters ...lab.ClusterOptions) *world {
	t.Helper()
	l := lab.Start(t, append([]lab.ClusterOptions{hub}, clusters...)...)
	lab.Must(t, membership.InitHub(t.Context(), l.Cluster("hub")))
	return join(t, l)
}

// join makes all clusters of a lab but the hub members, and returns them.
func join(t *testing.T, l *lab.Lab) *world {
	t.Helper()
	w := &world{hub: l.Cluster("hub"), members: map[string]*member{}}
	w.hubKube = membership.Client(t, w.hub)
	var joining errgroup.Group
	for i, cluster := range l.Clusters() {
		if cluster == w.hub {
			continue
		}
		m := &member{Client: membership.Client(t, cluster), id: cluster.Name, cluster: cluster}
		w.members[cluster.Name] = m
		joining.Go(func() (err error) {
			if m.hub, err = membership.Join(t.Context(), w.hub, cluster, manifests.MemberOptions{PodCIDRs: membership.PodCIDRs(i)}); err != nil {
				return err
			}
			m.local, err = membership.InstallAgent(t.Context(), cluster)
			return err
		})
	}
	lab.Must(t, joining.Wait())
	return w
}

// start runs the member's agent until the test ends or stop is called.
func (m *member) start(t *testing.T) (stop func()) {
	t.Helper()
	return m.startWith(t, func(*agent.Options) {})
}

// startWith is start with other options.
func (m *member) startWith(t *testing.T, adjust func(*agent.Options)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := m.run(ctx, t, adjust)
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("agent of %s: %v", m.id, err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// run runs the member's agent until ctx ends, and returns a channel that receives its error then.
func (m *member) run(ctx context.Context, t *testing.T, adjust func(*agent.Options)) <-chan error {
	t.Helper()
	m.registry = prometheus.NewRegistry()
	output := &output{}
	m.output = output
	options := agent.Options{
		Member: m.local, Hub: m.hub, ClusterID: m.id, Election: agent.RunAlone, Workers: 4,
		HeartbeatInterval: time.Second, AbsentTimeout: time.Hour, MetricsAddress: "0", ProbeAddress: "0", Registry: m.registry,
		Log: funcr.New(output.line, funcr.Options{LogTimestamp: true, Verbosity: 1}), Version: "test",
	}
	adjust(&options)
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, options) }()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("agent of %s:\n%s", m.id, output.tail(80))
		}
	})
	return ended
}

// output collects an agent's log.
type output struct {
	mu    sync.Mutex
	lines []string
}

func (o *output) line(prefix, args string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines = append(o.lines, prefix+" "+args)
}

func (o *output) tail(n int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.lines[max(0, len(o.lines)-n):], "\n")
}

// quotaConflict is what an API server says when its quota controller has just counted. The work is tried again, and is done.
const quotaConflict = "Operation cannot be fulfilled on resourcequotas"

// errors returns the errors that were logged about the services of a namespace, but for those that no agent can help.
func (o *output) errors(namespace string) []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var found []string
	for _, line := range o.lines {
		if strings.Contains(line, `"error"=`) && !strings.Contains(line, quotaConflict) && strings.Contains(line, fmt.Sprintf(`"namespace"=%q`, namespace)) {
			found = append(found, line)
		}
	}
	return found
}

// namespace creates a namespace named after the test in each of the members and returns its name.
func namespace(t *testing.T, members ...*member) string {
	t.Helper()
	name := strings.ToLower(t.Name()[strings.LastIndex(t.Name(), "/")+1:])
	for _, m := range members {
		lab.Must(t, m.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	return name
}

// deleteCRD removes a CRD and waits until it is gone.
func (m *member) deleteCRD(t *testing.T, name string) {
	t.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	definition.SetName(name)
	lab.Must(t, m.Delete(t.Context(), definition))
	// Where two controllers of an API server write it at once, the one that ends it looks again when all are looked at: every 5 minutes.
	lab.Eventually(t, 6*time.Minute, func(ctx context.Context) error {
		return absent(m.Get(ctx, client.ObjectKey{Name: name}, definition))
	})
}

// absent returns nil for the error of a read that found nothing.
func absent(err error) error {
	if err == nil {
		return errors.New("it is still there")
	}
	return client.IgnoreNotFound(err)
}

// eventually ends the test unless check succeeds in time; then with check's last error.
func eventually(t *testing.T, check func(context.Context) error) {
	t.Helper()
	lab.Eventually(t, patience, check)
}
