// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

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
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// startTimeout bounds the start of an agent, and of a heartbeat or a connection after it.
const startTimeout = 2 * time.Minute

// agentProcess is a member's agent: the released program, with the rights and flags of its pod except for the ports.
type agentProcess struct {
	*member
	*lab.Process
	metrics, profile string // addresses
	began            time.Time
}

// startAgent starts a member's agent and does not wait until it is ready.
func (b *bench) startAgent(ctx context.Context, w *world, m *member) (*agentProcess, error) {
	local, err := m.cluster.ServiceAccountKubeconfig(ctx, manifests.AgentNamespace, manifests.AgentServiceAccount)
	if err != nil {
		return nil, err
	}
	remote, err := w.hub.ServiceAccountKubeconfig(ctx, m.id.HubNamespace(), manifests.MemberServiceAccount)
	if err != nil {
		return nil, err
	}
	if m.agent == nil {
		free, err := lab.FreeAddresses(2)
		if err != nil {
			return nil, err
		}
		m.agent = &agentProcess{member: m, metrics: free[0], profile: free[1]}
		m.agent.Process = m.cluster.Program(b.program, func(context.Context) error { return nil },
			"--kubeconfig="+local, "--hub-kubeconfig="+remote, "--namespace="+manifests.AgentNamespace, "--leader-elect=false",
			"--service-cidrs="+lab.Joined(m.cluster.ServiceCIDRs), "--metrics-bind-address="+free[0], "--health-probe-bind-address=0",
			"--pprof-address="+free[1])
	}
	m.agent.began = time.Now()
	return m.agent, m.agent.Start(ctx)
}

// startAgents starts the agents of all members, and returns when each has reported a complete publication, with a function
// that stops them.
func (b *bench) startAgents(ctx context.Context, w *world) (stop func() error, err error) {
	var all []*agentProcess
	stop = func() error {
		var failures error
		for _, a := range all {
			failures = errors.Join(failures, a.stop(ctx))
		}
		return failures
	}
	for _, m := range w.members {
		a, err := b.startAgent(ctx, w, m)
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
func (a *agentProcess) awaitReady(ctx context.Context, w *world) error {
	heartbeat := &hubv1alpha1.Heartbeat{}
	name := client.ObjectKey{Namespace: a.id.HubNamespace(), Name: hubv1alpha1.HeartbeatName}
	return a.poll(ctx, 20*time.Millisecond, "is not ready", func(ctx context.Context) (bool, error) {
		err := client.IgnoreNotFound(w.hubClient.Get(ctx, name, heartbeat))
		return heartbeat.Spec.RenewTime.After(a.began) && heartbeat.Spec.Publication == hubv1alpha1.PublicationComplete, err
	})
}

// poll returns when done returns true. An error, also because the agent has ended, shows the end of its log.
func (a *agentProcess) poll(ctx context.Context, interval time.Duration, failure string, done wait.ConditionWithContextFunc) error {
	err := wait.PollUntilContextTimeout(ctx, interval, roundTimeout, true, func(ctx context.Context) (bool, error) {
		if !a.Running() {
			return false, errors.New("it has ended by itself")
		}
		return done(ctx)
	})
	return a.explain(failure, err)
}

func (a *agentProcess) explain(failure string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("the agent of %s %s: %w\nIts log ends:\n%s", a.id, failure, err, a.LogTail())
}

// stop ends the agent. It is an error if it has ended before.
func (a *agentProcess) stop(ctx context.Context) error {
	if !a.Running() {
		return a.explain("cannot be stopped", errors.New("it has ended by itself"))
	}
	return a.Stop(context.WithoutCancel(ctx))
}

// cachesSynced returns when, by its own log, the agent started its workers for imports and had read from the hub: the later
// of the two.
func (a *agentProcess) cachesSynced() (time.Time, error) {
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
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Time.Before(a.began) {
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

// writeProfile writes a profile of the agent to a file. of is its path, such as profile?seconds=10.
func (a *agentProcess) writeProfile(ctx context.Context, of, path string) error {
	profile, err := lab.Get(ctx, http.DefaultClient, "http://"+a.profile+"/debug/pprof/"+of)
	if err != nil {
		return err
	}
	return os.WriteFile(path, profile, 0o644) //nolint:gosec // profiles are public
}
