// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/dryrun"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/memberdns"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// slice returns a slice with one ready endpoint, of a cluster, or of Kubernetes if cluster is empty.
func slice(cluster, port string) discoveryv1.EndpointSlice {
	s := discoveryv1.EndpointSlice{
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(port), Protocol: new(corev1.ProtocolTCP)}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
	}
	if cluster != "" {
		s.Labels = map[string]string{mcsv1beta1.LabelSourceCluster: cluster}
	}
	if cluster == "" || cluster == "west" {
		s.Endpoints[0].NodeName = new("node-1")
	}
	return s
}

// imported returns the trace of the import shop/web in cluster west, with the ports http and admin.
func imported(policy corev1.ServiceInternalTrafficPolicy, slices ...discoveryv1.EndpointSlice) *memberTrace {
	derived := &corev1.Service{}
	derived.Spec.InternalTrafficPolicy, derived.Spec.IPFamilies = &policy, []corev1.IPFamily{corev1.IPv4Protocol}
	for _, name := range []string{"http", "admin"} {
		derived.Spec.Ports = append(derived.Spec.Ports, corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP})
	}
	return &memberTrace{
		Result:  &dryrun.Result{Sources: sources.Sources{Key: clusterset.ServiceKey{Namespace: "shop", Name: "web"}}},
		view:    &dryrun.View{Member: &survey.Member{ID: "west", KubeContext: survey.KubeContext{Name: "admin@west"}}},
		derived: derived, slices: slices,
		serviceImport: &mcsv1beta1.ServiceImport{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
			Spec:       mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP, IPs: []string{"10.1.0.1"}},
		},
	}
}

// TestProxied: the endpoints to which kube-proxy sends connections.
func TestProxied(t *testing.T) {
	t.Parallel()
	const all, local = corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal
	nowhere := Step{
		Cluster: "west", Hop: HopProxy, State: Broken,
		Found: "ready endpoints by port: http 1, admin 1; but internalTrafficPolicy is Local, and none of them is in this cluster: every connection fails here",
		Fix: "run pods of it in this cluster and export it here too, or export it without internalTrafficPolicy Local: " +
			"kubectl clusterset explain shop/web says whose setting counts",
	}
	for name, test := range map[string]struct {
		view *memberTrace
		want Step
	}{
		"all":                  {imported(all, slice("east", "http"), slice("east", "admin")), Step{"west", HopProxy, OK, "ready endpoints by port: http 1, admin 1", ""}},
		"one port without":     {imported(all, slice("east", "http")), Step{"west", HopProxy, Note, "ready endpoints by port: http 1, admin 0", "kubectl clusterset explain shop/web"}},
		"local, none here":     {imported(local, slice("east", "http"), slice("east", "admin")), nowhere},
		"local, of its own":    {imported(local, slice("east", "http"), slice("west", "admin")), Step{"west", HopProxy, Note, "ready endpoints by port: http 1, admin 1; but internalTrafficPolicy is Local: only pods on nodes that have one of them reach it", ""}},
		"local, by a selector": {imported(local, slice("east", "http"), slice("", "admin")), Step{"west", HopProxy, Note, "ready endpoints by port: http 1, admin 1; but internalTrafficPolicy is Local: only pods on nodes that have one of them reach it", ""}},
		"none at all": {imported(local, slice("east", "web")), Step{
			"west", HopProxy, Broken, `no port has a ready endpoint, so connections are refused: the Service has the ports ["admin" "http"], its slices ["web"]`,
			"have the exporters' EndpointSlices name their ports as the Service does; where they have no ready endpoint, see their pods",
		}},
	} {
		check.Equal(t, name, []Step{test.want}, test.view.proxySteps())
	}
}

// TestResolved: an unusual cluster DNS is not a fault of the service; one that does not answer is.
func TestResolved(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answers []answer
		want    []Step
	}{
		"not asked": {nil, nil},
		"right":     {[]answer{{code: "NOERROR", addresses: []string{"10.1.0.1"}}}, []Step{{"west", HopDNS, OK, "web.shop.svc.clusterset.local is 10.1.0.1", ""}}},
		"another DNS": {[]answer{{err: fmt.Errorf("%w (nowhere)", memberdns.ErrNotFound)}}, []Step{{
			"west", HopDNS, Note, "web.shop.svc.clusterset.local was not queried: could not find the cluster's DNS (nowhere). " +
				"Pass --dns-server west=HOST:PORT to query it", "",
		}}},
		"down": {[]answer{{err: fmt.Errorf("%w kube-system/kube-dns", memberdns.ErrNoPod)}}, []Step{{
			"west", HopDNS, Broken, "no answer for web.shop.svc.clusterset.local: no ready pod is behind Service kube-system/kube-dns",
			"check the pods of the cluster's DNS, usually: kubectl --context admin@west --namespace kube-system get pods --selector k8s-app=kube-dns; if its DNS is another one, pass --dns-server west=HOST:PORT",
		}}},
		"behind": {[]answer{{by: "pod dns-1", code: "NOERROR", addresses: []string{"10.1.0.9"}}}, []Step{{
			"west", HopDNS, Broken, "pod dns-1: web.shop.svc.clusterset.local is 10.1.0.9, but should be 10.1.0.1",
			"the DNS is behind: the logs of deployment/tombolo-dns in admin@west",
		}}},
	} {
		v := imported(corev1.ServiceInternalTrafficPolicyCluster)
		v.answers = test.answers
		check.Equal(t, name, test.want, v.dnsSteps())
	}
	v := imported(corev1.ServiceInternalTrafficPolicyCluster)
	v.answers = []answer{{code: "NOERROR", addresses: []string{"10.1.0.1"}}}
	v.dns = memberdns.Configuration{State: memberdns.NotKnown, Message: "pods query another one first", Next: "add it", OfCache: true}
	if steps := v.dnsSteps(); len(steps) != 1 || steps[0].State != NotKnown || steps[0].Found != v.dns.Message {
		t.Errorf("with NodeLocal DNSCache: %+v", steps)
	}
}

// TestResolvedByConfiguration: if the configuration of the DNS is wrong, it is the cause of a wrong answer. Right answers show that the DNS
// works, unless NodeLocal DNSCache has not given them, or they will not last.
func TestResolvedByConfiguration(t *testing.T) {
	t.Parallel()
	right, failure := answer{code: "NOERROR", addresses: []string{"10.1.0.1"}}, answer{code: "SERVFAIL"}
	unanswered, down, elsewhere := answer{err: errors.New("no answer within 5s")}, answer{err: memberdns.ErrNoPod}, answer{err: memberdns.ErrNotFound}
	for name, test := range map[string]struct {
		state   memberdns.State
		answers []answer
		want    Health
		byCause bool
	}{
		"stale, a failure":       {memberdns.Stale, []answer{failure}, Broken, true},
		"stale, no answer":       {memberdns.Stale, []answer{unanswered}, Broken, true},
		"stale, no pods":         {memberdns.Stale, []answer{down}, Broken, false},
		"stale, elsewhere":       {memberdns.Stale, []answer{elsewhere}, Broken, true},
		"stale, not queried":     {memberdns.Stale, nil, Broken, true},
		"stale, still cached":    {memberdns.Stale, []answer{right}, NotKnown, true},
		"not set, no such name":  {memberdns.NotSet, []answer{{code: "NXDOMAIN"}}, Broken, true},
		"not set, no answer":     {memberdns.NotSet, []answer{unanswered}, Broken, false},
		"not set, works":         {memberdns.NotSet, []answer{right}, OK, false},
		"not set, not queried":   {memberdns.NotSet, nil, "", false},
		"not known, a failure":   {memberdns.NotKnown, []answer{failure}, Broken, false},
		"not known, works":       {memberdns.NotKnown, []answer{right}, OK, false},
		"not known, not queried": {memberdns.NotKnown, nil, "", false},
		"forwarded, a failure":   {memberdns.Forwarded, []answer{failure}, Broken, false},
		"forwarded":              {memberdns.Forwarded, []answer{right}, OK, false},
	} {
		v := imported(corev1.ServiceInternalTrafficPolicyCluster)
		v.answers, v.dns = test.answers, memberdns.Configuration{State: test.state, Message: "the cause", Next: "repair it"}
		steps := v.dnsSteps()
		if test.want == "" && len(steps) == 0 {
			continue
		}
		if len(steps) != 1 || steps[0].State != test.want || strings.HasPrefix(steps[0].Found, "the cause") != test.byCause || (steps[0].Fix == "repair it") != test.byCause {
			t.Errorf("%s: %+v", name, steps)
		}
	}
}
