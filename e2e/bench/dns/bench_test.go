// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"testing"

	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

func TestMain(m *testing.M) {
	if corefile, isServer := os.LookupEnv(corefileVariable); isServer {
		results.ExitOn("bench-dns", serve(corefile))
		return
	}
	m.Run()
}

// TestQuestions: each question gets the expected answer from all servers. No time is measured.
func TestQuestions(t *testing.T) {
	if err := exec.CommandContext(t.Context(), "taskset", "-c", serverCore, "true").Run(); err != nil {
		lab.Skip(t, "the benchmark needs Linux and taskset")
	}
	cluster := lab.Start(t, lab.Member("a")).Cluster("a")
	c, err := newContent(t.Context(), cluster, 2, 2)
	lab.Must(t, err)
	lab.Must(t, c.create(t.Context()))
	b := &bench{content: c, kubeconfig: cluster.Kubeconfig(), log: t.Logf}
	defer func() { lab.Must(t, b.stop()) }()
	for _, another := range []string{"", "cache"} {
		servers, err := b.start(t.Context(), another)
		lab.Must(t, err)
		for _, s := range servers.all() {
			for _, q := range c.questions() {
				if err := q.check(t.Context(), s); err != nil {
					t.Error(err)
				}
			}
			if bytes, err := s.memory(); err != nil || bytes < 1e6 {
				t.Errorf("memory %v, %v", bytes, err)
			}
		}
	}
}
