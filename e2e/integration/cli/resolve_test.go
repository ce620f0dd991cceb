// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
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
