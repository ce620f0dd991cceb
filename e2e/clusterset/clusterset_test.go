// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterset_test uses "kubectl clusterset" as an administrator does, on real API servers.
package clusterset_test

import (
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/tombolo-mcs/tombolo/e2e/lab"
	"github.com/tombolo-mcs/tombolo/pkg/cli"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	m.Run()
}

// world is a hub and clusters that may become its members, and the kubeconfig of somebody who administers all of them.
type world struct {
	*lab.Lab
	kubeconfig string
	agent      string // the program
}

func start(t *testing.T, members ...string) *world {
	t.Helper()
	clusters := []lab.ClusterOptions{lab.Hub()}
	for _, name := range members {
		clusters = append(clusters, lab.ClusterOptions{Name: name, Controllers: lab.DefaultControllers()})
	}
	w := &world{Lab: lab.Start(t, clusters...), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	w.writeKubeconfig(t)
	w.agent = build(t)
	return w
}

// writeKubeconfig writes how to reach the clusters, as it is now.
func (w *world) writeKubeconfig(t *testing.T) {
	t.Helper()
	file := clientcmdapi.NewConfig()
	for _, cluster := range w.Clusters() {
		config := cluster.Config()
		file.Clusters[cluster.Name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
		file.AuthInfos[cluster.Name] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
		file.Contexts[cluster.Name] = &clientcmdapi.Context{Cluster: cluster.Name, AuthInfo: cluster.Name}
	}
	if err := clientcmd.WriteToFile(*file, w.kubeconfig); err != nil {
		t.Fatal(err)
	}
}

// build returns the agent's program, with the race detector if the test has it.
func build(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tombolo-agent")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", path, "../../cmd/tombolo-agent")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, output)
	}
	return path
}

// run runs "kubectl clusterset" with arguments, split at spaces, and returns what it prints and its exit code.
func (w *world) run(t *testing.T, command string) (string, int) {
	t.Helper()
	return w.runUntil(t.Context(), command)
}

// runUntil is run, interrupted when a context ends.
func (w *world) runUntil(ctx context.Context, command string) (string, int) {
	var out bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}
	code := cli.Run(ctx, "v0.0.0-test", append(strings.Fields(command), "--kubeconfig", w.kubeconfig), streams)
	return out.String(), code
}

// must runs a command that must succeed.
func (w *world) must(t *testing.T, command string) string {
	t.Helper()
	out, code := w.run(t, command)
	if code != cli.ExitOK {
		t.Fatalf("$ kubectl clusterset %s\n%sexit code %d", command, out, code)
	}
	return out
}

// join returns the command line for a cluster of the lab, whose hub is on the loopback interface.
func (w *world) join(name, more string) string {
	return "join --context " + name + " --hub-context hub --cluster-id " + name + " --hub-server " + w.Cluster("hub").Config().Host + " " + more
}
