// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

func TestMain(m *testing.M) {
	if corefile, isServer := os.LookupEnv(corefileVariable); isServer {
		exitOn(serve(corefile))
		return
	}
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	m.Run()
}

// TestScenarios: each kind of question gets the answer that is meant to be measured, from all contenders. Nothing is timed.
func TestScenarios(t *testing.T) {
	if err := exec.CommandContext(t.Context(), "taskset", "-c", serverCore, "true").Run(); err != nil {
		t.Skipf("the benchmark needs Linux and taskset (%v)", err)
	}
	cluster := lab.Start(t, lab.Member("a")).Cluster("a")
	data, err := newContent(t.Context(), cluster, size{clusterIPs: 2, headless: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := data.fill(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := &bench{content: data, kubeconfig: cluster.Kubeconfig(), folder: t.TempDir(), say: t.Logf}
	defer func() {
		if err := b.stop(); err != nil {
			t.Error(err)
		}
	}()
	large := largest(data.size)
	asked := append(scenarios(data.size), large)
	for _, more := range []string{"", "cache"} {
		all, err := b.startAll(t.Context(), more)
		if err != nil {
			t.Fatal(err)
		}
		if err := warmUp(t.Context(), asked, all); err != nil {
			t.Error(err)
		}
		for _, at := range all.each() {
			if _, err := pipelined(t.Context(), large, at, 50*time.Millisecond); err != nil {
				t.Error(err)
			}
			if _, err := at.memory(); err != nil {
				t.Error(err)
			}
		}
	}
}
