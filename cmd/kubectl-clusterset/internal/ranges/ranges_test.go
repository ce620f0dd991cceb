// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package ranges

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// clusterOf returns a cluster with these objects.
func clusterOf(t *testing.T, objects ...client.Object) *connection.Cluster {
	t.Helper()
	scheme, err := connection.NewScheme()
	check.Must(t, err)
	return &connection.Cluster{What: "this cluster", Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}
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
		find        Source
		objects     []client.Object
		want, where string
	}{
		"pods: nothing":               {Pods, nil, "", "0 nodes'"},
		"pods: nodes":                 {Pods, []client.Object{one, two}, "10.1.0.0/24, 10.1.1.0/24", "2 nodes' podCIDRs"},
		"pods: controller manager":    {Pods, []client.Object{one, two, manager}, "10.1.0.0/16, fd00:1::/48", "flag --cluster-cidr of kube-controller-manager"},
		"pods: kubeadm":               {Pods, []client.Object{one, manager, kubeadm}, "10.1.0.0/17", "ConfigMap kube-system/kubeadm-config"},
		"nodes":                       {Nodes, []client.Object{one, two}, "192.0.2.1/32, 2001:db8::1/128", "the addresses of 2 nodes"},
		"services: API server's flag": {Services, []client.Object{server}, "10.97.0.0/16", "flag --service-cluster-ip-range of kube-apiserver"},
		"services: kubeadm":           {Services, []client.Object{server, kubeadm}, "10.96.0.0/16", "ConfigMap kube-system/kubeadm-config"},
		"services: ServiceCIDRs":      {Services, []client.Object{server, kubeadm, cidr}, "10.98.0.0/16", "the cluster's ServiceCIDRs"},
	} {
		found, err := test.find(t.Context(), clusterOf(t, test.objects...))
		if err != nil || List(found.Prefixes) != test.want || (test.want != "" && !strings.HasPrefix(found.Where, test.where)) {
			t.Errorf("%s: %s (%s), %v; want %s (%s)", name, List(found.Prefixes), found.Where, err, test.want, test.where)
		}
	}
}

// TestOverlaps: addresses of pods and nodes must be in no range of the cluster's own Services or of another member.
func TestOverlaps(t *testing.T) {
	others := map[clusterset.ClusterID]Set{
		"west": {Pods: prefixes(t, "10.2.0.0/16"), Nodes: prefixes(t, "192.0.2.0/24"), Services: prefixes(t, "10.102.0.0/16")},
	}
	for name, test := range map[string]struct {
		own  Set
		want string
	}{
		"none":             {Set{Pods: prefixes(t, "10.1.0.0/16"), Services: prefixes(t, "10.102.0.0/16")}, ""},
		"its own Services": {Set{Pods: prefixes(t, "10.101.0.0/24"), Services: prefixes(t, "10.101.0.0/16")}, "pod CIDR 10.101.0.0/24 overlap with service CIDR 10.101.0.0/16 of this cluster itself"},
		"pods":             {Set{Pods: prefixes(t, "10.2.128.0/17")}, "pod CIDR 10.2.128.0/17 overlap with pod CIDR 10.2.0.0/16 of member west"},
		"nodes":            {Set{Pods: prefixes(t, "192.0.2.0/25")}, "pod CIDR 192.0.2.0/25 overlap with node CIDR 192.0.2.0/24 of member west"},
		"Services":         {Set{Nodes: prefixes(t, "10.102.0.1/32")}, "node CIDR 10.102.0.1/32 overlap with service CIDR 10.102.0.0/16 of member west"},
	} {
		var got []string
		for _, o := range Overlaps(test.own, others) {
			got = append(got, o.String())
		}
		check.Equal(t, name, test.want, strings.Join(got, "\n"))
	}
}

func prefixes(t *testing.T, text string) []netip.Prefix {
	t.Helper()
	result, err := clusterset.ParsePrefixes(strings.Fields(text))
	check.Must(t, err)
	return result
}
