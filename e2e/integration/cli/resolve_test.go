// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/manifests"
)

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
	server, starts := startDNS(t, w.Cluster(cluster), corefile), 1
	question := new(dns.Msg)
	question.SetQuestion(service+"."+namespace+".svc.clusterset.local.", dns.TypeA)
	var got string
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		if server.hasEnded() && starts < portAttempts { // another process has taken its port
			server, starts = startDNS(t, w.Cluster(cluster), corefile), starts+1
		}
		reply, _, err := (&dns.Client{Timeout: time.Second}).ExchangeContext(ctx, question, server.address)
		got = ""
		if err == nil && len(reply.Answer) == 1 {
			got = reply.Answer[0].(*dns.A).A.String()
		}
		return got == services.Items[0].Spec.ClusterIP, nil
	})
	if err != nil {
		t.Fatalf("%s resolves to %q, not to %s: %v", question.Question[0].Name, got, services.Items[0].Spec.ClusterIP, err)
	}
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

// portAttempts bounds the search for a port that no other process takes before CoreDNS does.
const portAttempts = 5

// dnsServer is a CoreDNS of which the test is the only client.
type dnsServer struct {
	address string
	ended   chan struct{} // closed when it has
}

func (s *dnsServer) hasEnded() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// startDNS runs CoreDNS as the DNS's pods do, but for the ports, which others may have.
func startDNS(t *testing.T, cluster *lab.Cluster, corefile string) *dnsServer {
	t.Helper()
	kubeconfig, err := cluster.ServiceAccountKubeconfig(t.Context(), manifests.AgentNamespace, "tombolo-dns")
	lab.Must(t, err)
	program, err := coredns()
	lab.Must(t, err)
	free, err := lab.FreePort()
	lab.Must(t, err)
	port := strconv.Itoa(free)
	text := strings.NewReplacer(
		":1053", ":"+port, "\n    clusterset\n", "\n    bind 127.0.0.1\n    clusterset {\n        kubeconfig "+kubeconfig+"\n    }\n",
		"health :8080", "health 127.0.0.1:0", "ready :8181", "ready 127.0.0.1:0", "prometheus :9153", "prometheus 127.0.0.1:0",
	).Replace(corefile)
	path := filepath.Join(t.TempDir(), "Corefile")
	lab.Must(t, os.WriteFile(path, []byte(text), 0o600))
	cmd := exec.CommandContext(t.Context(), program, "-conf", path)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	lab.Must(t, cmd.Start())
	s := &dnsServer{address: "127.0.0.1:" + port, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		_ = cmd.Wait() // killed with the test's context, or it has said why it ends
	}()
	t.Cleanup(func() { <-s.ended })
	return s
}
