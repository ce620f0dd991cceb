// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package memberdns

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// dnsCluster has the objects that Read reads. Objects and kinds in forbidden cannot be read.
type dnsCluster struct {
	client.Reader
	configs   map[string]map[string]string
	services  []corev1.Service
	forbidden []string
}

func (c dnsCluster) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, name := range c.forbidden {
		if name == key.String() {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, key.Name, nil)
		}
	}
	switch o := into.(type) {
	case *corev1.ConfigMap:
		if data, ok := c.configs[key.String()]; ok {
			o.Data = data
			return nil
		}
	case *corev1.Service:
		for i := range c.services {
			if client.ObjectKeyFromObject(&c.services[i]) == key {
				c.services[i].DeepCopyInto(o)
				return nil
			}
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (c dnsCluster) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	for _, name := range c.forbidden {
		if name == "services" {
			return apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "", nil)
		}
	}
	into.(*corev1.ServiceList).Items = c.services
	return nil
}

// addressed returns a Service with these addresses.
func addressed(namespace, name string, ips ...string) corev1.Service {
	return corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{ClusterIP: ips[0], ClusterIPs: ips}}
}

// TestDNSConfiguration: the forward of the zone is compared with the Service of Tombolo's DNS. What is not known is never right.
func TestDNSConfiguration(t *testing.T) {
	t.Parallel()
	const root, node = ".:53 {\n kubernetes cluster.local\n}\n", "cluster.local:53 {\n forward . 10.96.0.10\n}\n.:53 {\n forward . /etc/resolv.conf\n}\n"
	forward := func(to string) string { return root + "clusterset.local:53 {\n forward . " + to + "\n}\n" }
	coreDNS := func(text string) map[string]map[string]string {
		return map[string]map[string]string{"kube-system/coredns": {"Corefile": text}}
	}
	with := func(all map[string]map[string]string, key string, data map[string]string) map[string]map[string]string {
		all[key] = data
		return all
	}
	dual := []corev1.Service{addressed("tombolo-system", "tombolo-dns", "10.96.0.33", "fd00::33")}
	second := addressed("tombolo-system", "entry", "10.96.0.40")
	second.Spec.Selector = map[string]string{"app.kubernetes.io/name": "tombolo-dns"}
	second.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.9"}}
	other := addressed("submariner-operator", "submariner-lighthouse-coredns", "10.96.0.20")
	const command, stale = "kubectl clusterset dns --context west", "the Corefile in ConfigMap kube-system/coredns forwards clusterset.local to 10.96.0.20, but "
	for name, test := range map[string]struct {
		cluster dnsCluster
		want    State
		text    string // of the message
		next    string
	}{
		"the address":              {dnsCluster{configs: coreDNS(forward("10.96.0.33")), services: dual}, Forwarded, "", ""},
		"the other family":         {dnsCluster{configs: coreDNS(forward("fd00:0::33")), services: dual}, Forwarded, "", ""},
		"both":                     {dnsCluster{configs: coreDNS(forward("10.96.0.33 fd00::33")), services: dual}, Forwarded, "", ""},
		"another of our Services":  {dnsCluster{configs: coreDNS(forward("192.0.2.9 10.96.0.40")), services: append(dual, second)}, Forwarded, "", ""},
		"an address of the past":   {dnsCluster{configs: coreDNS(forward("10.96.0.20")), services: dual}, Stale, stale + "Service tombolo-system/tombolo-dns has the address 10.96.0.33, fd00::33", command},
		"a family of the past":     {dnsCluster{configs: coreDNS(forward("10.96.0.33 fd00::20")), services: dual}, Stale, "to 10.96.0.33, fd00::20, but Service", command},
		"no Service":               {dnsCluster{configs: coreDNS(forward("10.96.0.20"))}, Stale, stale + "there is no Service tombolo-system/tombolo-dns", "install it (kubectl clusterset join, without --profile agent), then: " + command + "; or have CoreDNS serve the names: " + command + " --by kubernetes"},
		"another program":          {dnsCluster{configs: coreDNS(forward("10.96.0.20")), services: append(dual, other)}, NotKnown, "10.96.0.20 is Service submariner-operator/submariner-lighthouse-coredns, and whether that serves clusterset.local is not known", command},
		"outside of the cluster":   {dnsCluster{configs: coreDNS(forward("192.0.2.1")), services: dual}, NotKnown, "192.0.2.1 is the address of no Service, and whether", command},
		"a file":                   {dnsCluster{configs: coreDNS(forward("/etc/resolv.conf")), services: dual}, NotKnown, "is not known: it is forwarded to /etc/resolv.conf", "check that it resolves"},
		"served":                   {dnsCluster{configs: coreDNS(".:53 {\n kubernetes cluster.local clusterset.local {\n multicluster clusterset.local\n }\n}\n")}, Served, "", ""},
		"nothing":                  {dnsCluster{configs: coreDNS(root), services: dual}, NotSet, "the Corefile in ConfigMap kube-system/coredns has nothing for clusterset.local", command},
		"imports":                  {dnsCluster{configs: coreDNS(root + "import other\n"), services: dual}, NotKnown, "is not known: it imports other, which was not read", "check"},
		"invalid":                  {dnsCluster{configs: coreDNS("}"), services: dual}, NotKnown, "is not known: corefile: line 1", "check"},
		"no ConfigMap":             {dnsCluster{services: dual}, NotKnown, "what the cluster's DNS does with clusterset.local is not known: there is no ConfigMap kube-system/coredns with a Corefile", "check"},
		"no Corefile in it":        {dnsCluster{configs: map[string]map[string]string{"kube-system/coredns": {"a": "b"}}, services: dual}, NotKnown, "there is no ConfigMap", "check"},
		"no right":                 {dnsCluster{configs: coreDNS(forward("10.96.0.33")), services: dual, forbidden: []string{"kube-system/coredns"}}, NotKnown, `is not known: get ConfigMap kube-system/coredns: configmaps "coredns" is forbidden`, "check"},
		"no right on the Service":  {dnsCluster{configs: coreDNS(forward("10.96.0.33")), services: dual, forbidden: []string{"tombolo-system/tombolo-dns"}}, NotKnown, "whether that is Tombolo's DNS is not known: get Service", ""},
		"no right on Services":     {dnsCluster{configs: coreDNS(forward("10.96.0.20")), services: dual, forbidden: []string{"services"}}, NotKnown, "Services could not be listed", command},
		"no right, but it matches": {dnsCluster{configs: coreDNS(forward("10.96.0.33")), services: dual, forbidden: []string{"services"}}, Forwarded, "", ""},
		"custom files": {
			dnsCluster{configs: with(coreDNS(root+"import custom/*.server\n"), "kube-system/coredns-custom", map[string]string{"t.server": forward("10.96.0.20")}), services: dual},
			Stale, stale, "kubectl --context west -n kube-system edit configmap coredns-custom: in t.server, forward clusterset.local to 10.96.0.33 fd00::33",
		},
		"no right on custom files": {
			dnsCluster{configs: coreDNS(root + "import custom/*.server\n"), services: dual, forbidden: []string{"kube-system/coredns-custom"}},
			NotKnown, "it imports custom/*.server, which was not read", "check",
		},
		"of RKE2": {
			dnsCluster{configs: map[string]map[string]string{"kube-system/rke2-coredns-rke2-coredns": {"Corefile": forward("10.96.0.20")}}, services: dual},
			Stale, "ConfigMap kube-system/rke2-coredns-rke2-coredns forwards", command + " --configmap kube-system/rke2-coredns-rke2-coredns",
		},
		"of OpenShift": {
			dnsCluster{configs: map[string]map[string]string{"openshift-dns/dns-default": {"Corefile": forward("10.96.0.20")}}, services: dual},
			Stale, "ConfigMap openshift-dns/dns-default forwards", "kubectl --context west edit dnses.operator.openshift.io/default: in spec.servers, forward clusterset.local to 10.96.0.33 fd00::33",
		},
		"kube-dns": {
			dnsCluster{configs: map[string]map[string]string{"kube-system/kube-dns": {"stubDomains": `{"clusterset.local": ["10.96.0.33"]}`}}, services: dual}, Forwarded, "", "",
		},
		"kube-dns of the past": {
			dnsCluster{configs: map[string]map[string]string{"kube-system/kube-dns": {"stubDomains": `{"clusterset.local": ["10.96.0.20"]}`}}, services: dual},
			Stale,
			"kube-dns (ConfigMap kube-system/kube-dns) forwards clusterset.local to 10.96.0.20, but Service", "kubectl --context west -n kube-system edit configmap kube-dns: set the stub domain clusterset.local to 10.96.0.33 fd00::33",
		},
		"kube-dns without it": {
			dnsCluster{configs: map[string]map[string]string{"kube-system/kube-dns": {}}, services: dual}, NotKnown, "is not known: it has no stub domain clusterset.local", "check",
		},
		"NodeLocal without it": {
			dnsCluster{configs: with(coreDNS(forward("10.96.0.33")), "kube-system/node-local-dns", map[string]string{"Corefile": node}), services: dual},
			NotKnown,
			"pods query NodeLocal DNSCache first, and the Corefile in ConfigMap kube-system/node-local-dns has no block for clusterset.local", "add the block",
		},
		"NodeLocal": {
			dnsCluster{configs: with(coreDNS(forward("10.96.0.33")), "kube-system/node-local-dns", map[string]string{"Corefile": forward("10.96.0.33")}), services: dual}, Forwarded, "", "",
		},
		"NodeLocal of the past": {
			dnsCluster{configs: with(coreDNS(forward("10.96.0.33")), "kube-system/node-local-dns", map[string]string{"Corefile": forward("10.96.0.20")}), services: dual},
			Stale,
			"ConfigMap kube-system/node-local-dns forwards", command + " --configmap kube-system/node-local-dns",
		},
		"both of the past": {
			dnsCluster{configs: with(coreDNS(forward("10.96.0.20")), "kube-system/node-local-dns", map[string]string{"Corefile": forward("10.96.0.20")}), services: dual},
			Stale,
			"; the Corefile in ConfigMap kube-system/node-local-dns forwards", command + "; then: " + command + " --configmap kube-system/node-local-dns",
		},
		"no right on NodeLocal": {
			dnsCluster{configs: coreDNS(forward("10.96.0.33")), services: dual, forbidden: []string{"kube-system/node-local-dns"}}, NotKnown, "get ConfigMap kube-system/node-local-dns", "check",
		},
	} {
		got := Read(t.Context(), test.cluster, []netip.Prefix{netip.MustParsePrefix("10.96.0.0/12"), netip.MustParsePrefix("fd00::/108")}, "west")
		if got.State != test.want || !strings.Contains(got.Message, test.text) || !strings.HasPrefix(got.Next, test.next) || (test.next == "") != (got.Next == "") {
			t.Errorf("%s: %+v\nwant %s: %q -> %q", name, got, test.want, test.text, test.next)
		}
	}
	if got := Read(t.Context(), dnsCluster{configs: coreDNS(forward("192.0.2.1")), services: dual}, nil, ""); got.State != Stale || got.Next != "kubectl clusterset dns" {
		t.Errorf("without ranges: %+v", got)
	}
}
