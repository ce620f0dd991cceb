// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
)

// Start runs the member's agent until the test ends or stop is called. adjust changes its options.
func (m *Member) Start(t testing.TB, adjust ...func(*agent.Options)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := m.Run(ctx, t, adjust...)
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("agent of %s: %v", m.ID, err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Run runs the member's agent until ctx ends, and returns a channel that receives its error then.
func (m *Member) Run(ctx context.Context, t testing.TB, adjust ...func(*agent.Options)) <-chan error {
	t.Helper()
	output := &Output{}
	m.Registry, m.Output = prometheus.NewRegistry(), output
	options := agent.Options{
		Member: m.Local, Hub: m.Hub, ClusterID: m.ID, Election: agent.RunAlone, Workers: 4,
		HeartbeatInterval: time.Second, AbsentTimeout: time.Hour, MetricsAddress: "0", ProbeAddress: "0", Registry: m.Registry,
		Log: output.Logger(), Version: "test",
	}
	for _, change := range adjust {
		change(&options)
	}
	ended := make(chan error, 1)
	go func() { ended <- agent.Run(ctx, options) }()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("agent of %s:\n%s", m.ID, output.Tail(80))
		}
	})
	return ended
}

// Output collects the log of an agent, or of another program.
type Output struct {
	mu    sync.Mutex
	lines []string
}

// Logger returns a logger that writes to the output.
func (o *Output) Logger() logr.Logger {
	return funcr.New(func(prefix, args string) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.lines = append(o.lines, prefix+" "+args)
	}, funcr.Options{LogTimestamp: true, Verbosity: 1})
}

// Tail returns the last n lines.
func (o *Output) Tail(n int) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(o.lines[max(0, len(o.lines)-n):], "\n")
}

// quotaConflict is the answer of an API server whose quota controller has just counted. The agent retries the request.
const quotaConflict = "Operation cannot be fulfilled on resourcequotas"

// Errors returns the logged errors about the services of a namespace, without those that no agent can avoid.
func (o *Output) Errors(namespace string) []string {
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

// LogsNoErrors fails the test if an agent has logged errors about services of one of the namespaces.
func LogsNoErrors(t testing.TB, m *Member, namespaces ...string) {
	t.Helper()
	for _, namespace := range namespaces {
		if found := m.Output.Errors(namespace); len(found) > 0 {
			t.Errorf("%s logs errors: %v", m.ID, found)
		}
	}
}

// Gauge waits until a metric of the member's agent has a value: the sum over its labels.
func (m *Member) Gauge(t testing.TB, name string, want float64) {
	t.Helper()
	Eventually(t, func(context.Context) error {
		got, err := m.GaugeValue(name)
		if err == nil && got != want {
			err = fmt.Errorf("%s: %s is %v, want %v", m.ID, name, got, want)
		}
		return err
	})
}

// GaugeValue returns the value of a metric of the member's agent: the sum over its labels.
func (m *Member) GaugeValue(name string) (float64, error) {
	families, err := m.Registry.Gather()
	if err != nil {
		return 0, err
	}
	for _, family := range families {
		if family.GetName() == name {
			sum := 0.0
			for _, metric := range family.GetMetric() {
				sum += metric.GetGauge().GetValue()
			}
			return sum, nil
		}
	}
	return 0, fmt.Errorf("%s: no metric %s", m.ID, name)
}
