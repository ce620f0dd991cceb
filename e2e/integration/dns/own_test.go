// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// testTransfersAreAnswered: what a zone transfer lists, questions find. CoreDNS' own lists the endpoints of headless services
// below the service, without their cluster, and then denies these names.
func (w world) testTransfersAreAnswered(t *testing.T) {
	w.create(t, imported("web", v1beta1.ClusterSetIP, "10.96.0.1"), imported("db", v1beta1.Headless), endpoints("db-east-1", "10.1.0.1", "10.1.0.2"))
	for stanza, want := range map[string]map[string]bool{
		ours: {},
		theirs: {
			"10-1-0-1.db.default.svc.clusterset.local. A": true, "10-1-0-2.db.default.svc.clusterset.local. A": true,
		},
	} {
		p := startProgram(t, "transfer {\nto *\n}\n"+fmt.Sprintf(stanza, w.cluster.Kubeconfig()))
		await(t, p, "db.default.svc.clusterset.local. A", "NOERROR 10.1.0.1 10.1.0.2")
		denied, listed := map[string]bool{}, 0
		for _, r := range transferred(t, p.tcp) {
			question := r.Header().Name + " " + dns.TypeToString[r.Header().Rrtype]
			listed++
			if _, reply := p.ask(question, "tcp"); len(reply.Answer) == 0 {
				denied[question] = true
			}
		}
		if listed < 5 {
			t.Errorf("%d records with\n%s", listed, stanza)
		}
		if fmt.Sprint(denied) != fmt.Sprint(want) {
			t.Errorf("transferred and denied with\n%s\n%v, want %v", stanza, denied, want)
		}
	}
}

// transferred returns the records of the zone.
func transferred(t *testing.T, address string) []dns.RR {
	t.Helper()
	envelopes, err := patientTransfer().In(new(dns.Msg).SetAxfr(zone), address)
	if err != nil {
		t.Fatal(err)
	}
	var all []dns.RR
	for e := range envelopes {
		if e.Error != nil {
			t.Fatal(e.Error)
		}
		all = append(all, e.RR...)
	}
	return all
}

// testWithoutCRD: where nobody has installed the API, the names of the cluster itself do not suffer. With CoreDNS' own, no
// name of the cluster can be denied any more, and each search list ends in an error.
func (w world) testWithoutCRD(t *testing.T) {
	api := &corev1.Service{}
	var err error
	if wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		err = w.client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "kubernetes"}, api)
		return err == nil, nil // the API server makes it soon after its start
	}) != nil {
		t.Fatal(err)
	}
	config := w.cluster.Kubeconfig()
	for plugins, want := range map[string]string{
		"clusterset clusterset.local {\nkubeconfig " + config + "\n}\nkubernetes cluster.local {\nkubeconfig " + config + "\nstartup_timeout 1m\n}": "NXDOMAIN",
		"kubernetes cluster.local clusterset.local {\nkubeconfig " + config + "\nmulticluster clusterset.local\nstartup_timeout 1s\n}":              "SERVFAIL",
	} {
		p := startProgram(t, plugins)
		await(t, p, "kubernetes.default.svc.cluster.local. A", "NOERROR "+api.Spec.ClusterIP)
		if got, _ := p.ask("none.default.svc.cluster.local. A", "tcp"); got != want {
			t.Errorf("%s, want %s, with\n%s", got, want, plugins)
		}
	}
}
