// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package memberdns

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

func dnsService(namespace, name, ip, port string) corev1.Service {
	return corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{
		ClusterIP: ip, ClusterIPs: []string{ip},
		Ports: []corev1.ServicePort{{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}, {Name: port, Port: 53, Protocol: corev1.ProtocolTCP}},
	}}
}

// TestSelectDNS: the address that kubelets give to pods decides, then the usual names.
func TestSelectDNS(t *testing.T) {
	t.Parallel()
	kubeadm := dnsService("kube-system", "kube-dns", "10.96.0.10", "dns-tcp")
	rke2 := dnsService("kube-system", "rke2-coredns-rke2-coredns", "10.43.0.10", "tcp-53")
	openShift := dnsService("openshift-dns", "dns-default", "172.30.0.10", "dns-tcp")
	own := dnsService("infra", "resolver", "10.96.0.99", "tcp")
	headless := dnsService("infra", "headless", "", "tcp")
	for name, test := range map[string]struct {
		services  []corev1.Service
		addresses []string
		want      string
	}{
		"of kubeadm":              {[]corev1.Service{own, kubeadm}, nil, "kube-dns"},
		"of RKE2":                 {[]corev1.Service{rke2}, nil, "rke2-coredns-rke2-coredns"},
		"of OpenShift":            {[]corev1.Service{own, openShift}, nil, "dns-default"},
		"of the kubelets":         {[]corev1.Service{kubeadm, own}, []string{"10.96.0.99"}, "resolver"},
		"NodeLocal, own address":  {[]corev1.Service{kubeadm, own}, []string{"169.254.20.10"}, "kube-dns"},
		"elsewhere":               {[]corev1.Service{own}, []string{"192.0.2.53"}, ""},
		"an empty address":        {[]corev1.Service{headless}, []string{""}, ""},
		"nothing is known":        {[]corev1.Service{own}, nil, ""},
		"a usual name, elsewhere": {[]corev1.Service{dnsService("other", "kube-dns", "10.96.0.11", "dns-tcp")}, nil, ""},
	} {
		got := ""
		if service := selectDNS(test.services, test.addresses); service != nil {
			got = service.Name
		}
		check.Equal(t, name+": Service", test.want, got)
	}
}

// TestDNSPods: the ready pods are queried at the port that the TCP port of the Service leads to, whatever its name.
func TestDNSPods(t *testing.T) {
	t.Parallel()
	slice := func(port string, ready bool, kind string) discoveryv1.EndpointSlice {
		return discoveryv1.EndpointSlice{
			Ports: []discoveryv1.EndpointPort{
				{Name: new("dns"), Port: new(int32(1053)), Protocol: new(corev1.ProtocolUDP)},
				{Name: &port, Port: new(int32(5353)), Protocol: new(corev1.ProtocolTCP)},
			},
			Endpoints: []discoveryv1.Endpoint{{
				Conditions: discoveryv1.EndpointConditions{Ready: &ready}, TargetRef: &corev1.ObjectReference{Kind: kind, Name: "a"},
			}},
		}
	}
	service := dnsService("kube-system", "any", "10.43.0.10", "tcp-53")
	udpOnly := dnsService("kube-system", "any", "10.43.0.10", "tcp-53")
	udpOnly.Spec.Ports = udpOnly.Spec.Ports[:1]
	for name, test := range map[string]struct {
		service   corev1.Service
		slice     discoveryv1.EndpointSlice
		want      map[string]int32
		elsewhere bool
	}{
		"ready":          {service, slice("tcp-53", true, "Pod"), map[string]int32{"a": 5353}, false},
		"not ready":      {service, slice("tcp-53", false, "Pod"), map[string]int32{}, false},
		"no pod":         {service, slice("tcp-53", true, "Node"), map[string]int32{}, true},
		"another port":   {service, slice("metrics", true, "Pod"), map[string]int32{}, true},
		"without a port": {udpOnly, slice("tcp-53", true, "Pod"), map[string]int32{}, true},
	} {
		pods, elsewhere := dnsPods(&test.service, []discoveryv1.EndpointSlice{test.slice})
		check.Equal(t, name+": pods", test.want, pods)
		check.Equal(t, name+": elsewhere", test.elsewhere, elsewhere)
	}
}
