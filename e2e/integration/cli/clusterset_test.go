// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterset_test uses "kubectl clusterset" as an administrator does, on real API servers.
package cli_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

func TestMain(m *testing.M) {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
	folder, err := os.MkdirTemp("", "tombolo-clusterset-")
	if err != nil {
		panic(err)
	}
	programFolder = folder
	m.Run()
	if err := os.RemoveAll(folder); err != nil {
		panic(err)
	}
}

// programFolder goes with the tests.
var programFolder string

// agent is the agent's program, built once for all tests.
var agent = sync.OnceValues(func() (string, error) { return build(programFolder, "tombolo-agent") })

// coredns is the DNS's program, built once for all tests.
var coredns = sync.OnceValues(func() (string, error) { return build(programFolder, "coredns") })

// build builds a command into a folder, as it is released, and returns where it is.
func build(folder, name string) (string, error) {
	path := filepath.Join(folder, name)
	return path, lab.Build(context.Background(), "../../..", name, path)
}

// world is a hub and clusters that may become its members, and the kubeconfig of somebody who administers all of them.
type world struct {
	*lab.Lab
	kubeconfig string
	agent      string // the program
	build      cli.Build

	mu      sync.Mutex
	clients map[string]client.Client // by cluster; see there
}

func start(t *testing.T, members ...string) *world {
	t.Helper()
	clusters := []lab.ClusterOptions{lab.Hub()}
	for _, name := range members {
		clusters = append(clusters, lab.ClusterOptions{Name: name, Controllers: lab.DefaultControllers()})
	}
	w := &world{Lab: lab.Start(t, clusters...), kubeconfig: filepath.Join(t.TempDir(), "kubeconfig"), build: release}
	w.writeKubeconfig(t)
	var err error
	if w.agent, err = agent(); err != nil {
		t.Fatal(err)
	}
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
	w.mu.Lock()
	defer w.mu.Unlock()
	w.clients = map[string]client.Client{}
}

// release is what the command was built as, unless a test says otherwise.
var release = cli.Build{Version: "v0.0.0-test", Registry: "example.com/tombolo"}

// run runs "kubectl clusterset" with arguments, split at spaces, and returns what it prints and its exit code.
func (w *world) run(t *testing.T, command string) (string, int) {
	t.Helper()
	return w.runUntil(t.Context(), command)
}

// runUntil is run, interrupted when a context ends.
func (w *world) runUntil(ctx context.Context, command string) (string, int) {
	var out bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out}
	code := cli.Run(ctx, w.build, append(strings.Fields(command), "--kubeconfig", w.kubeconfig), streams)
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
