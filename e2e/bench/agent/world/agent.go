// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// StartTimeout bounds the start of an agent, and of a heartbeat or a connection after it.
const StartTimeout = 2 * time.Minute

// AgentProcess is a member's agent: the released program, with the rights and flags of its pod except for the ports.
type AgentProcess struct {
	*Member
	*lab.Process
	metrics, profile string // addresses
	Began            time.Time
}

// StartAgent starts a member's agent and does not wait until it is ready.
func (w *World) StartAgent(ctx context.Context, program string, m *Member) (*AgentProcess, error) {
	if m.Agent == nil {
		free, err := lab.FreeAddresses(2)
		if err != nil {
			return nil, err
		}
		m.Agent = &AgentProcess{Member: m, metrics: free[0], profile: free[1]}
	}
	args, err := membership.AgentArgs(ctx, w.Hub, m.Cluster, m.Agent.metrics) // with new tokens
	if err != nil {
		return nil, err
	}
	if m.Agent.Process == nil {
		m.Agent.Process = m.Cluster.Program(program, func(context.Context) error { return nil }, append(args, "--pprof-address="+m.Agent.profile)...)
	}
	m.Agent.Began = time.Now()
	return m.Agent, m.Agent.Start(ctx)
}

// StartAgents starts the agents of all members, and returns when each has reported a complete publication, with a function
// that stops them.
func (w *World) StartAgents(ctx context.Context, program string) (stop func() error, err error) {
	var all []*AgentProcess
	stop = func() error {
		var failures error
		for _, a := range all {
			failures = errors.Join(failures, a.End(ctx))
		}
		return failures
	}
	for _, m := range w.Members {
		a, err := w.StartAgent(ctx, program, m)
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		all = append(all, a)
	}
	for _, a := range all {
		if err := a.awaitReady(ctx, w); err != nil {
			return nil, errors.Join(err, stop())
		}
	}
	return stop, nil
}

// awaitReady returns when the agent has sent a heartbeat with a complete publication.
func (a *AgentProcess) awaitReady(ctx context.Context, w *World) error {
	heartbeat := &hubv1alpha1.Heartbeat{}
	name := client.ObjectKey{Namespace: a.ID.HubNamespace(), Name: hubv1alpha1.HeartbeatName}
	return a.poll(ctx, 20*time.Millisecond, "is not ready", func(ctx context.Context) (bool, error) {
		err := client.IgnoreNotFound(w.HubClient.Get(ctx, name, heartbeat))
		return heartbeat.Spec.RenewTime.After(a.Began) && heartbeat.Spec.Publication == hubv1alpha1.PublicationComplete, err
	})
}

// poll returns when done returns true. An error, also because the agent has ended, shows the end of its log.
func (a *AgentProcess) poll(ctx context.Context, interval time.Duration, failure string, done wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextTimeout(ctx, interval, RoundTimeout, true, func(ctx context.Context) (bool, error) {
		if !a.Running() {
			return false, errors.New("it has ended by itself")
		}
		return done(ctx)
	})
	return a.explain(failure, err)
}

func (a *AgentProcess) explain(failure string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the agent of %s %s: %w\nIts log ends:\n%s", a.ID, failure, err, a.LogTail())
}

// End ends the agent. It is an error if it has ended before.
func (a *AgentProcess) End(ctx context.Context) error {
	if !a.Running() {
		return a.explain("cannot be stopped", errors.New("it has ended by itself"))
	}
	return a.Stop(context.WithoutCancel(ctx))
}

// CachesSynced returns when, by its own log, the agent started its workers for imports and had read from the hub: the later
// of the two.
func (a *AgentProcess) CachesSynced() (time.Time, error) {
	file, err := os.Open(a.LogFile())
	if err != nil {
		return time.Time{}, err
	}
	defer file.Close()
	var workers, connected time.Time
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var line struct {
			Time            time.Time `json:"time"`
			Msg, Controller string
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Time.Before(a.Began) {
			continue // of a library, or of an earlier start
		}
		switch {
		case line.Msg == "Starting workers" && line.Controller == "imports":
			workers = line.Time
		case line.Msg == "connected to the hub":
			connected = line.Time
		}
	}
	if workers.IsZero() || connected.IsZero() {
		return time.Time{}, a.explain("does not log when its caches were in sync", errors.Join(errors.New("no such lines"), lines.Err()))
	}
	if connected.After(workers) {
		return connected, lines.Err()
	}
	return workers, lines.Err()
}

// WriteProfile writes a profile of the agent to a file. of is its path, such as profile?seconds=10.
func (a *AgentProcess) WriteProfile(ctx context.Context, of, path string) error {
	profile, err := lab.Get(ctx, http.DefaultClient, "http://"+a.profile+"/debug/pprof/"+of)
	if err != nil {
		return err
	}
	return os.WriteFile(path, profile, 0o644) //nolint:gosec // profiles are public
}
