// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// stopGrace is how long an agent may take to end, and startTimeout to get ready.
const stopGrace, startTimeout = 10 * time.Second, 2 * time.Minute

// recordScript becomes the program "$@" under the same process number, which it has written to a file before: a lab's
// watchdog ends every process whose number it finds in the folder of a cluster, however the benchmark itself ends.
const recordScript = `echo $$ >"$1.new" && mv "$1.new" "$1" && shift && exec "$@"`

// agentProcess is a member's agent: the program that is released, with the rights and flags of its pod but for the ports.
type agentProcess struct {
	*member
	metrics, profile string // addresses
	log              string
	began            time.Time
	cmd              *exec.Cmd
	exited           chan struct{}
}

// agentOptions say how to start agents.
type agentOptions struct {
	program string
	proxy   string // URL of a proxy between agents and API servers; empty: none
}

// startAgent starts a member's agent and does not wait until it is ready.
func startAgent(ctx context.Context, w *world, m *member, o agentOptions) (*agentProcess, error) {
	local, err := m.cluster.ServiceAccountKubeconfig(ctx, manifests.AgentNamespace, manifests.AgentServiceAccount)
	if err != nil {
		return nil, err
	}
	remote, err := w.hub.ServiceAccountKubeconfig(ctx, m.id.HubNamespace(), manifests.MemberServiceAccount)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(viaProxy(local, o.proxy), viaProxy(remote, o.proxy)); err != nil {
		return nil, err
	}
	a := &agentProcess{member: m, exited: make(chan struct{})}
	free, err := lab.FreeAddresses(2)
	if err != nil {
		return nil, err
	}
	a.metrics, a.profile = free[0], free[1]
	folder := filepath.Dir(local)
	a.log = filepath.Join(folder, "tombolo-agent.log")
	log, err := os.Create(a.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	a.cmd = exec.Command("/bin/sh", "-c", recordScript, "bench", filepath.Join(folder, "tombolo-agent.pid"), o.program,
		"--kubeconfig="+local, "--hub-kubeconfig="+remote, "--namespace="+manifests.AgentNamespace, "--service-cidrs="+m.serviceCIDRs(),
		"--metrics-bind-address="+a.metrics, "--health-probe-bind-address=0", "--pprof-address="+a.profile, "--leader-elect=false")
	a.cmd.Stdout, a.cmd.Stderr = log, log
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a Ctrl-C is for the benchmark, which stops things in order
	a.began = time.Now()
	if err := a.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the agent of %s: %w", m.id, err)
	}
	go func() {
		_ = a.cmd.Wait() // ProcessState says how it ended
		close(a.exited)
	}()
	return a, nil
}

// startAgents starts the agents of members and returns when each has told the hub that all it exports is there.
func startAgents(ctx context.Context, w *world, members []*member, o agentOptions) (agents, error) {
	var all agents
	for _, m := range members {
		a, err := startAgent(ctx, w, m, o)
		if err != nil {
			return nil, errors.Join(err, all.stop())
		}
		all = append(all, a)
	}
	for _, a := range all {
		if err := a.awaitReady(ctx, w); err != nil {
			return nil, errors.Join(err, all.stop())
		}
	}
	return all, nil
}

// awaitReady returns when the agent has sent a heartbeat that says so.
func (a *agentProcess) awaitReady(ctx context.Context, w *world) error {
	heartbeat := &hubv1alpha1.Heartbeat{}
	name := client.ObjectKey{Namespace: a.id.HubNamespace(), Name: hubv1alpha1.HeartbeatName}
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, startTimeout, true, func(ctx context.Context) (bool, error) {
		err := client.IgnoreNotFound(w.hubKube.Get(ctx, name, heartbeat))
		if err != nil {
			return false, err
		}
		fresh := heartbeat.Spec.RenewTime.After(a.began) && heartbeat.Spec.Publication == hubv1alpha1.PublicationComplete
		return fresh, a.ended()
	})
	if err != nil {
		return fmt.Errorf("the agent of %s is not ready: %w\nIts log ends:\n%s", a.id, err, a.logTail())
	}
	return nil
}

// ended returns an error if the process has ended.
func (a *agentProcess) ended() error {
	select {
	case <-a.exited:
		return fmt.Errorf("it has ended by itself: %s", a.cmd.ProcessState)
	default:
		return nil
	}
}

// stop ends the agent: with SIGTERM, and with SIGKILL if that takes too long. It is an error if it has ended before.
func (a *agentProcess) stop() error {
	if err := a.ended(); err != nil {
		return fmt.Errorf("the agent of %s: %w\nIts log ends:\n%s", a.id, err, a.logTail())
	}
	_ = syscall.Kill(-a.cmd.Process.Pid, syscall.SIGTERM) // fails only if it has ended
	timer := time.NewTimer(stopGrace)
	defer timer.Stop()
	select {
	case <-a.exited:
	case <-timer.C:
		_ = syscall.Kill(-a.cmd.Process.Pid, syscall.SIGKILL) // the same
		<-a.exited
	}
	return nil
}

func (a *agentProcess) logTail() string {
	content, err := os.ReadFile(a.log)
	if err != nil {
		return err.Error()
	}
	return string(content[max(0, len(content)-4000):])
}

// agents are those of several members.
type agents []*agentProcess

func (all agents) stop() error {
	failures := make([]error, 0, len(all))
	for _, a := range all {
		failures = append(failures, a.stop())
	}
	return errors.Join(failures...)
}

// viaProxy has whoever uses a kubeconfig go through a proxy.
func viaProxy(path, proxy string) error {
	if proxy == "" {
		return nil
	}
	file, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return err
	}
	for _, c := range file.Clusters {
		c.ProxyURL = proxy
	}
	return clientcmd.WriteToFile(*file, path)
}
