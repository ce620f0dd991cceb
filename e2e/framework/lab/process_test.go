// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// ask makes one request with one second of time.
func ask(t *testing.T, client kubernetes.Interface) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := client.CoreV1().Namespaces().Get(ctx, "marker", metav1.GetOptions{})
	return err
}

// answers waits for a request that succeeds: the first after a restart may take longer than it has.
func answers(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	var last error
	defer func() {
		if last != nil {
			t.Logf("the last request: %v", last)
		}
	}()
	eventually(t, "an answer", func(context.Context) (bool, error) {
		last = ask(t, client)
		return last == nil, nil
	})
}

func TestProcessesFreezeStopAndRestart(t *testing.T) {
	c := lab.Start(t, lab.Member("a")).Cluster("a")
	ctx := t.Context()
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	marker := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "marker"}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, marker, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	watch, err := client.CoreV1().Namespaces().Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()

	for _, p := range []*lab.Process{c.APIServer, c.Etcd} {
		t.Run("frozen "+p.String(), func(t *testing.T) { testFreeze(t, client, p) })
	}
	for _, p := range []*lab.Process{c.APIServer, c.Etcd} {
		t.Run("restarted "+p.String(), func(t *testing.T) { testRestart(t, client, p) })
	}
	t.Run("stopped while frozen", func(t *testing.T) {
		if err := errors.Join(c.APIServer.Freeze(), c.APIServer.Restart(t.Context())); err != nil {
			t.Error(err)
		}
		answers(t, client)
	})
	t.Run("killed", func(t *testing.T) {
		c.APIServer.Kill()
		c.Etcd.Kill()
		if c.Etcd.Running() || c.Etcd.PID() != 0 {
			t.Error("etcd still runs")
		}
		if err := c.Etcd.Freeze(); err == nil {
			t.Error("a dead process was frozen")
		}
		if err := errors.Join(c.Etcd.Start(t.Context()), c.APIServer.Start(t.Context())); err != nil {
			t.Error(err)
		}
		answers(t, client)
		if err := c.Etcd.Start(t.Context()); err == nil {
			t.Error("a running process was started again")
		}
	})
}

func testFreeze(t *testing.T, client kubernetes.Interface, p *lab.Process) {
	if err := p.Freeze(); err != nil {
		t.Fatal(err)
	}
	if err := ask(t, client); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while frozen: got error %v, want a timeout", err)
	}
	if err := p.Thaw(); err != nil {
		t.Fatal(err)
	}
	answers(t, client)
}

func testRestart(t *testing.T, client kubernetes.Interface, p *lab.Process) {
	answers(t, client)
	before, begin := p.PID(), time.Now()
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped after %.1f s", time.Since(begin).Seconds())
	if err := ask(t, client); err == nil {
		t.Error("while stopped: a request succeeded")
	}
	begin = time.Now()
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("started after %.1f s", time.Since(begin).Seconds())
	if after := p.PID(); after == before || after == 0 {
		t.Errorf("process %d before, %d after", before, after)
	}
	answers(t, client)
}
