// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/walk"
	"github.com/tombolo-mcs/tombolo/manifests"
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
	shell, _ := w.shell(t)
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

// shell returns a shell in a folder with copies of the repository's manifests and charts, whose PATH has kubectl, its plugin and helm.
func (w *world) shell(t *testing.T, more ...string) (shell *walk.Shell, folder string) {
	t.Helper()
	folder = t.TempDir()
	for _, name := range []string{"manifests", "charts"} {
		lab.Must(t, os.CopyFS(filepath.Join(folder, name), os.DirFS("../../../"+name)))
	}
	_, err := plugin()
	lab.Must(t, err)
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if _, err := os.Stat(filepath.Join(assets, "kubectl")); err != nil {
		t.Fatalf("this needs kubectl: run make assets kubectl (%v)", err)
	}
	shell, err = walk.NewShell(t.Context(), folder, append(append(os.Environ(), more...),
		"PATH="+programFolder+":"+assets+":"+os.Getenv("PATH"), "KUBECONFIG="+w.kubeconfig, "HOME="+folder, "HUB_URL="+w.Cluster("hub").Config().Host,
		"REGISTRY=example.com/tombolo", "TAG=v1"))
	lab.Must(t, err)
	t.Cleanup(shell.Close)
	return shell, folder
}

// resolves runs the DNS that is installed in a cluster, with its Corefile and its rights, and returns when it answers with
// the address of the derived Service.
func (w *world) resolves(t *testing.T, cluster, namespace, service string) {
	t.Helper()
	services := &corev1.ServiceList{}
	imported := client.MatchingLabels{"multicluster.kubernetes.io/service-name": service}
	if err := w.client(t, cluster).List(t.Context(), services, client.InNamespace(namespace), imported); err != nil || len(services.Items) != 1 {
		t.Fatalf("derived Services of %s: %d, %v", service, len(services.Items), err)
	}
	corefile := w.corefile(t, cluster)
	kubeconfig, err := w.Cluster(cluster).ServiceAccountKubeconfig(t.Context(), manifests.AgentNamespace, "tombolo-dns")
	lab.Must(t, err)
	program, err := coredns()
	lab.Must(t, err)
	question := new(dns.Msg).SetQuestion(service+"."+namespace+".svc.clusterset.local.", dns.TypeA)
	_, err = membership.StartDNS(t.Context(), w.Cluster(cluster), program,
		func(port int) string { return membership.Corefile(corefile, port, kubeconfig, "127.0.0.1:0") },
		func(ctx context.Context, address string) error {
			reply, _, err := (&dns.Client{Timeout: time.Second}).ExchangeContext(ctx, question, address)
			if err == nil && (len(reply.Answer) != 1 || reply.Answer[0].(*dns.A).A.String() != services.Items[0].Spec.ClusterIP) {
				err = fmt.Errorf("it does not resolve to %s: %s", services.Items[0].Spec.ClusterIP, reply)
			}
			return err
		})
	lab.Must(t, err)
}

// corefile returns that of the DNS's ConfigMap.
func (w *world) corefile(t *testing.T, cluster string) string {
	t.Helper()
	maps := &corev1.ConfigMapList{}
	lab.Must(t, w.client(t, cluster).List(t.Context(), maps, client.InNamespace(manifests.AgentNamespace)))
	for _, m := range maps.Items {
		if text := m.Data["Corefile"]; text != "" {
			return text
		}
	}
	t.Fatalf("%s has no Corefile", cluster)
	return ""
}
