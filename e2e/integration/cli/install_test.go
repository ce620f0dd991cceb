// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/walk"
)

// kubeadmCorefile is what kubeadm writes.
const kubeadmCorefile = `.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30
    loop
    reload
    loadbalance
}
`

// TestInstallDocument runs docs/install.md: a hub, a member with the command and one with kustomize alone, an export that the other
// member resolves; then all leave, one of them while it is down. Nothing is left.
//
// spec: K1, K3
func TestInstallDocument(t *testing.T) {
	t.Parallel()
	w := start(t, "east", "west")
	corefile := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}, Data: map[string]string{"Corefile": kubeadmCorefile}}
	w.create(t, "east", corefile.DeepCopy())
	before := w.traces(t, "hub", "east", "west")
	text, err := os.ReadFile("../../../docs/install.md")
	lab.Must(t, err)
	steps, err := walk.Steps(string(text))
	lab.Must(t, err)
	shell := w.shell(t)
	if _, err := coredns(); err != nil { // a build beside the agents would hold them up
		t.Fatal(err)
	}
	startNode(t, w.Cluster("east"), w.agent)
	stopWest := startNode(t, w.Cluster("west"), w.agent)
	exported := false
	for _, step := range steps {
		if strings.Contains(step.Commands, "leave --from hub") {
			stopWest() // it is down
		}
		lab.Must(t, shell.Take(step))
		if strings.Contains(step.Commands, "kind: ServiceExport") {
			w.resolves(t, "west", "shop", "web")
			exported = true
		}
	}
	after := corefile.DeepCopy()
	w.get(t, "east", after)
	lab.Equal(t, "the Corefile of a cluster that has left", corefile.Data, after.Data)
	if !exported {
		t.Error("nothing has been exported")
	}
	lab.Equal(t, "all have left, and left something behind", before, w.traces(t, "hub", "east", "west"))
}

// shell returns a shell in a copy of the repository's manifests, whose PATH has kubectl and its plugin.
func (w *world) shell(t *testing.T) *walk.Shell {
	t.Helper()
	folder, bin := t.TempDir(), t.TempDir()
	lab.Must(t, os.CopyFS(filepath.Join(folder, "manifests"), os.DirFS("../../../manifests")))
	if _, err := build(bin, "kubectl-clusterset"); err != nil {
		t.Fatal(err)
	}
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if _, err := os.Stat(filepath.Join(assets, "kubectl")); err != nil {
		t.Fatalf("this needs kubectl: run make assets kubectl (%v)", err)
	}
	shell, err := walk.NewShell(t.Context(), folder, append(os.Environ(),
		"PATH="+bin+":"+assets+":"+os.Getenv("PATH"), "KUBECONFIG="+w.kubeconfig, "HOME="+folder, "HUB_URL="+w.Cluster("hub").Config().Host,
		"REGISTRY=example.com/tombolo", "TAG=v1"))
	lab.Must(t, err)
	t.Cleanup(shell.Close)
	return shell
}
