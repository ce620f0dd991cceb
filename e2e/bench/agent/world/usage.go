// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/procfs"

	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// MetricsInterval is how often an agent's metrics are read while it works.
const MetricsInterval = 100 * time.Millisecond

// Metrics are those of a process at one time.
type Metrics map[string]*dto.MetricFamily

// ReadMetrics reads all metrics of a process. The agent counts its imports for that, so one read answers all questions.
func ReadMetrics(ctx context.Context, connection *http.Client, url string) (Metrics, error) {
	text, err := lab.Get(ctx, connection, url)
	if err != nil {
		return nil, err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	return families, err
}

// Sum returns the sum of a counter or gauge over all its label sets, or over those with a label if it is given as a name
// and a value; 0 if there are none.
func (m Metrics) Sum(name string, label ...string) float64 {
	total := 0.0
	for _, metric := range m[name].GetMetric() {
		isNamed := func(pair *dto.LabelPair) bool { return pair.GetName() == label[0] && pair.GetValue() == label[1] }
		if len(label) == 0 || slices.ContainsFunc(metric.GetLabel(), isNamed) {
			total += metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + metric.GetUntyped().GetValue()
		}
	}
	return total
}

// ReadMetrics reads all metrics of the agent.
func (a *AgentProcess) ReadMetrics(ctx context.Context) (Metrics, error) {
	m, err := ReadMetrics(ctx, http.DefaultClient, "http://"+a.metrics+"/metrics")
	return m, a.explain("does not return its metrics", err)
}

// unfinished returns how many keys of the agent's queues wait or are being reconciled.
func (m Metrics) unfinished() float64 {
	return m.Sum("workqueue_depth") + m.Sum("controller_runtime_active_workers")
}

// AwaitSynced returns when the agent was in sync: it has read the hub and reconciled so many imports, and its queues are empty, also a
// moment later. (Before it has read the hub, it reconciles without a result.)
func (a *AgentProcess) AwaitSynced(ctx context.Context, imports int) (time.Time, error) {
	var last string
	var since time.Time
	err := a.poll(ctx, MetricsInterval, "is not in sync", func(ctx context.Context) (bool, error) {
		m, err := a.ReadMetrics(ctx)
		if err != nil {
			last = err.Error()
			return false, nil //nolint:nilerr // it does not listen yet
		}
		reconciled := m.Sum("controller_runtime_reconcile_total", "controller", "imports")
		last = fmt.Sprintf("%.0f of %d imports reconciled, %.0f keys unfinished", reconciled, imports, m.unfinished())
		switch {
		case m.Sum("tombolo_hub_connected") == 0 || reconciled < float64(imports) || m.unfinished() > 0:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		default:
			return true, nil
		}
		return false, nil
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", last, err)
	}
	return since, nil
}

// AwaitLive returns when the agent counts so many other members as live, and is in sync.
func (a *AgentProcess) AwaitLive(ctx context.Context, members, imports int) error {
	err := a.poll(ctx, MetricsInterval, "counts too few members as live", func(ctx context.Context) (bool, error) {
		m, err := a.ReadMetrics(ctx)
		return m.Sum("tombolo_member_live") >= float64(members), err
	})
	if err != nil {
		return err
	}
	_, err = a.AwaitSynced(ctx, imports)
	return err
}

// AwaitIdle returns when the agent's queues are empty twice in a row.
func (a *AgentProcess) AwaitIdle(ctx context.Context) error {
	idle := 0
	return a.poll(ctx, 2*MetricsInterval, "is busy", func(ctx context.Context) (bool, error) {
		m, err := a.ReadMetrics(ctx)
		idle++
		if m.unfinished() > 0 {
			idle = 0
		}
		return idle == 2, err
	})
}

// CPUOf returns the CPU time that a process has used, in seconds.
func CPUOf(pid int) (float64, error) {
	stat, err := results.StatOf(pid)
	return stat.CPUTime(), err
}

// ResidentMB returns the resident memory of the agent.
func (a *AgentProcess) ResidentMB() (float64, error) {
	stat, err := results.StatOf(a.PID())
	return float64(stat.ResidentMemory()) / 1e6, err
}

// CollectedMB returns the agent's resident memory in MB after a garbage collection, when it has not decreased for a time: Go
// returns unused memory to the system little by little. An idle agent reaches it by itself, since Go collects every two
// minutes.
func (a *AgentProcess) CollectedMB(ctx context.Context, constant time.Duration) (float64, error) {
	if _, err := lab.Get(ctx, http.DefaultClient, "http://"+a.profile+"/debug/pprof/heap?gc=1"); err != nil {
		return 0, fmt.Errorf("garbage collection of the agent of %s: %w", a.ID, err)
	}
	const interval = 250 * time.Millisecond
	n := int(constant / interval)
	var values []float64
	for {
		now, err := a.ResidentMB()
		if err != nil {
			return 0, err
		}
		values = append(values, now)
		if last := len(values) - n; last > 0 && slices.Min(values[last:]) >= 0.99*values[last-1] {
			return now, nil
		}
		if err := Pause(ctx, interval); err != nil {
			return 0, err
		}
	}
}

// CPUTimes are the seconds of CPU that processes have used, by program, such as kube-apiserver.
type CPUTimes map[string]float64

// Harness is this process. It writes and watches for all members that have no agent.
const Harness = "harness"

// MeasureCPU returns the CPU times of the lab's processes and of this one.
func MeasureCPU(w *World) (CPUTimes, error) {
	own, err := CPUOf(os.Getpid())
	if err != nil {
		return nil, err
	}
	result := CPUTimes{Harness: own}
	for _, c := range w.Lab.Clusters() {
		if err := eachProcess(c, func(program string, stat procfs.ProcStat) { result[program] += stat.CPUTime() }); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// MemoryOf returns the resident memory of a cluster's processes in MB, by program.
func MemoryOf(c *lab.Cluster) (map[string]float64, error) {
	result := map[string]float64{}
	err := eachProcess(c, func(program string, stat procfs.ProcStat) { result[program] += float64(stat.ResidentMemory()) / 1e6 })
	return result, err
}

// eachProcess calls do for each running process of a cluster.
func eachProcess(c *lab.Cluster, do func(program string, stat procfs.ProcStat)) error {
	for _, p := range c.Processes() {
		if !p.Running() {
			continue
		}
		stat, err := results.StatOf(p.PID())
		if err != nil {
			return err
		}
		program, _, _ := strings.Cut(p.String(), " ")
		do(program, stat)
	}
	return nil
}

// Since returns the CPU times after earlier ones.
func (c CPUTimes) Since(earlier CPUTimes) CPUTimes {
	result := CPUTimes{}
	for program, used := range c {
		result[program] = used - earlier[program]
	}
	return result
}

func (c CPUTimes) total() float64 {
	sum := 0.0
	for _, used := range c {
		sum += used
	}
	return sum
}

// Utilization returns the part of this machine's CPU that was used in so much time.
func (c CPUTimes) Utilization(took time.Duration) float64 {
	return c.total() / took.Seconds() / float64(runtime.NumCPU())
}

// Percent returns the share of each program in all, in percent.
func (c CPUTimes) Percent() map[string]float64 {
	result, total := map[string]float64{}, c.total()
	for program, used := range c {
		result[program] = 100 * used / total
	}
	return result
}
