// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/mcs-api/config/crd"
	"sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/internal/check"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// clusterOf returns a cluster with these objects.
func clusterOf(t *testing.T, objects ...client.Object) *cluster {
	t.Helper()
	scheme, err := newScheme()
	check.Must(t, err)
	return &cluster{what: "this cluster", client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}
}

// TestDiscoveredRanges: kinds of clusters differ in the source of their ranges; the first source with ranges is used.
func TestDiscoveredRanges(t *testing.T) {
	node := func(name, cidr, ip string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDRs: []string{cidr}},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}, {Type: corev1.NodeHostName, Address: name}}},
		}
	}
	component := func(name, arg string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, Labels: map[string]string{"component": name}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Command: []string{name, arg}}}},
		}
	}
	one, two := node("one", "10.1.0.0/24", "192.0.2.1"), node("two", "10.1.1.0/24", "2001:db8::1")
	manager := component("kube-controller-manager", "--cluster-cidr=10.1.0.0/16,fd00:1::/48")
	server := component("kube-apiserver", "--service-cluster-ip-range=10.97.0.0/16")
	kubeadm := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"},
		Data:       map[string]string{"ClusterConfiguration": "networking:\n  podSubnet: 10.1.0.0/17\n  serviceSubnet: 10.96.0.0/16\n"},
	}
	cidr := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.98.0.0/16"}}}
	for name, test := range map[string]struct {
		find        source
		objects     []client.Object
		want, where string
	}{
		"pods: nothing":               {podRanges, nil, "", "0 nodes'"},
		"pods: nodes":                 {podRanges, []client.Object{one, two}, "10.1.0.0/24, 10.1.1.0/24", "2 nodes' podCIDRs"},
		"pods: controller manager":    {podRanges, []client.Object{one, two, manager}, "10.1.0.0/16, fd00:1::/48", "flag --cluster-cidr of kube-controller-manager"},
		"pods: kubeadm":               {podRanges, []client.Object{one, manager, kubeadm}, "10.1.0.0/17", "ConfigMap kube-system/kubeadm-config"},
		"nodes":                       {nodeRanges, []client.Object{one, two}, "192.0.2.1/32, 2001:db8::1/128", "the addresses of 2 nodes"},
		"services: API server's flag": {serviceRanges, []client.Object{server}, "10.97.0.0/16", "flag --service-cluster-ip-range of kube-apiserver"},
		"services: kubeadm":           {serviceRanges, []client.Object{server, kubeadm}, "10.96.0.0/16", "ConfigMap kube-system/kubeadm-config"},
		"services: ServiceCIDRs":      {serviceRanges, []client.Object{server, kubeadm, cidr}, "10.98.0.0/16", "the cluster's ServiceCIDRs"},
	} {
		found, err := test.find(t.Context(), clusterOf(t, test.objects...))
		if err != nil || list(found.prefixes) != test.want || (test.want != "" && !strings.HasPrefix(found.where, test.where)) {
			t.Errorf("%s: %s (%s), %v; want %s (%s)", name, list(found.prefixes), found.where, err, test.want, test.where)
		}
	}
}

// TestOverlaps: addresses of pods and nodes must be in no range of the cluster's own Services or of another member.
func TestOverlaps(t *testing.T) {
	others := map[clusterset.ClusterID]ranges{
		"west": {pods: prefixes(t, "10.2.0.0/16"), nodes: prefixes(t, "192.0.2.0/24"), services: prefixes(t, "10.102.0.0/16")},
	}
	for name, test := range map[string]struct {
		own  ranges
		want string
	}{
		"none":             {ranges{pods: prefixes(t, "10.1.0.0/16"), services: prefixes(t, "10.102.0.0/16")}, ""},
		"its own Services": {ranges{pods: prefixes(t, "10.101.0.0/24"), services: prefixes(t, "10.101.0.0/16")}, "pod CIDR 10.101.0.0/24 overlap with service CIDR 10.101.0.0/16 of this cluster itself"},
		"pods":             {ranges{pods: prefixes(t, "10.2.128.0/17")}, "pod CIDR 10.2.128.0/17 overlap with pod CIDR 10.2.0.0/16 of member west"},
		"nodes":            {ranges{pods: prefixes(t, "192.0.2.0/25")}, "pod CIDR 192.0.2.0/25 overlap with node CIDR 192.0.2.0/24 of member west"},
		"Services":         {ranges{nodes: prefixes(t, "10.102.0.1/32")}, "node CIDR 10.102.0.1/32 overlap with service CIDR 10.102.0.0/16 of member west"},
	} {
		var got []string
		for _, o := range overlaps(test.own, others) {
			got = append(got, o.String())
		}
		check.Equal(t, name, test.want, strings.Join(got, "\n"))
	}
}

// TestTooManyNodeRanges: the hub's schema limits the number.
func TestTooManyNodeRanges(t *testing.T) {
	var out bytes.Buffer
	j := &joinCommand{member: clusterOf(t), r: &report{out: &out}}
	for i := range 65 {
		j.given.nodes = append(j.given.nodes, netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 32))
	}
	if err := j.checkRanges(t.Context()); err != nil || !strings.Contains(out.String(), "65 node addresses are more than the 64") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestIdentity: existing ClusterProperties are used, and not changed.
//
// spec: K1, K2
func TestIdentity(t *testing.T) {
	property := func(name, value string) *aboutv1beta1.ClusterProperty {
		return &aboutv1beta1.ClusterProperty{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: aboutv1beta1.ClusterPropertySpec{Value: value}}
	}
	own := []client.Object{property(aboutv1beta1.ClusterIDProperty, "orient"), property(aboutv1beta1.ClusterSetProperty, "others")}
	for name, test := range map[string]struct {
		id, clusterSet string
		objects        []client.Object
		says           []string
		created        int
	}{
		"new":                 {"east", "", nil, []string{`ok    cluster ID "east"`}, 2},
		"no label":            {"Not_A_Label", "", nil, []string{"is no DNS label", "choose another"}, 0},
		"empty":               {"", "", nil, []string{"the cluster ID is empty", "pass --cluster-id"}, 0},
		"too long":            {strings.Repeat("x", 57), "", nil, []string{"57 characters", "shorter"}, 0},
		"another than it has": {"east", "", own, []string{`this cluster calls itself "orient"`, "leave out --cluster-id"}, 0},
		"as it has":           {"", "", own, []string{`ok    cluster ID "orient"`}, 0},
		"another clusterset":  {"", "mine", own, []string{`a member of clusterset "others"`, "leave that first"}, 0},
	} {
		var out bytes.Buffer
		j := &joinCommand{member: clusterOf(t, test.objects...), r: &report{out: &out}}
		j.joinOptions.id, j.clusterSet = test.id, test.clusterSet
		if err := j.checkIdentity(t.Context()); err != nil || len(j.properties) != test.created {
			t.Errorf("%s: %d ClusterProperties are created, want %d (%v)", name, len(j.properties), test.created, err)
		}
		for _, text := range test.says {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s: %sdoes not contain %q", name, out.String(), text)
			}
		}
	}
}

// TestMemberDefinitions: the kinds of the Multi-Cluster Services API are never downgraded, and never replaced unless requested.
func TestMemberDefinitions(t *testing.T) {
	newer, unserved := &apiextensionsv1.CustomResourceDefinition{}, &apiextensionsv1.CustomResourceDefinition{}
	for _, definition := range []*apiextensionsv1.CustomResourceDefinition{newer, unserved} {
		check.Must(t, yaml.Unmarshal(crd.ServiceExportCRD, definition))
	}
	newer.Labels[crd.ReleaseVersionLabel] = "v9.0.0"
	unserved.Labels = nil // as in old releases
	for i, version := range unserved.Spec.Versions {
		unserved.Spec.Versions[i].Served = version.Name != "v1beta1"
	}
	for name, test := range map[string]struct {
		existing client.Object
		policy   definitionPolicy
		needed   int
		says     string
	}{
		"newer":                {newer, keepDefinitions, 2, "ok    serviceexports.multicluster.x-k8s.io is there (v9.0.0) and stays as it is"},
		"newer, in an upgrade": {newer, upgradeDefinitions, 2, "ok    serviceexports.multicluster.x-k8s.io is there (v9.0.0) and stays as it is"},
		"without v1beta1":      {unserved, keepDefinitions, 2, "does not serve v1beta1, which Tombolo needs: kubectl clusterset upgrade"},
		"older, in an upgrade": {unserved, upgradeDefinitions, 3, "ok    serviceexports.multicluster.x-k8s.io is of an unknown release and will be brought to"},
	} {
		var out bytes.Buffer
		needed, err := checkMemberDefinitions(t.Context(), clusterOf(t, test.existing), test.policy, &report{out: &out})
		if err != nil || len(needed) != test.needed || !strings.Contains(out.String(), test.says) {
			t.Errorf("%s: %d definitions are needed, want %d (%v), and it must say %q:\n%s", name, len(needed), test.needed, err, test.says, out.String())
		}
	}
}
