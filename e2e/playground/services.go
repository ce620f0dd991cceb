// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// workload is a Service in one cluster and the pods behind it. There are no nodes, so no pods either: their EndpointSlices
// are written by hand, as Kubernetes' own controller would.
type workload struct {
	name      string
	clusterIP string // as in the Service: "None" for a headless one
	ports     []corev1.ServicePort
	pods      []pod
}

type pod struct{ hostname, ipv4, ipv6 string }

var (
	webInA = workload{
		name:  "web",
		ports: []corev1.ServicePort{servicePort("http", 80, 8080)},
		pods:  []pod{{ipv4: "10.1.0.11", ipv6: "fd00:1::11"}, {ipv4: "10.1.0.12", ipv6: "fd00:1::12"}},
	}
	// webInB has another number for the port named http, and a port that the other does not have.
	webInB = workload{
		name:  "web",
		ports: []corev1.ServicePort{servicePort("http", 8000, 8080), servicePort("metrics", 9090, 9090)},
		pods:  []pod{{ipv4: "10.2.0.21", ipv6: "fd00:2::21"}},
	}
	dbInA = workload{
		name:      "db",
		clusterIP: corev1.ClusterIPNone,
		ports:     []corev1.ServicePort{servicePort("sql", 5432, 5432)},
		pods: []pod{
			{hostname: "db-0", ipv4: "10.1.0.31", ipv6: "fd00:1::31"},
			{hostname: "db-1", ipv4: "10.1.0.32", ipv6: "fd00:1::32"},
		},
	}
)

func servicePort(name string, number, target int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: number, TargetPort: intstr.FromInt32(target)}
}

// objects returns the Service and its slices.
func (w workload) objects() []client.Object {
	return []client.Object{
		&corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.name},
			Spec: corev1.ServiceSpec{
				ClusterIP:      w.clusterIP,
				IPFamilies:     []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
				IPFamilyPolicy: new(corev1.IPFamilyPolicyRequireDualStack),
				Ports:          w.ports,
			},
		},
		w.slice(discoveryv1.AddressTypeIPv4, func(p pod) string { return p.ipv4 }),
		w.slice(discoveryv1.AddressTypeIPv6, func(p pod) string { return p.ipv6 }),
	}
}

func (w workload) slice(family discoveryv1.AddressType, address func(pod) string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: w.name + "-" + strings.ToLower(string(family)),
			Labels: map[string]string{discoveryv1.LabelServiceName: w.name},
		},
		AddressType: family,
	}
	for _, p := range w.ports {
		slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{
			Name: new(p.Name), Protocol: new(p.Protocol), Port: new(p.TargetPort.IntVal),
		})
	}
	for _, p := range w.pods {
		endpoint := discoveryv1.Endpoint{
			Addresses:  []string{address(p)},
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
		}
		if p.hostname != "" {
			endpoint.Hostname = new(p.hostname)
		}
		slice.Endpoints = append(slice.Endpoints, endpoint)
	}
	return slice
}

// endpoints returns what a cluster that exports the workload contributes to mirrored slices if these of its ports take part,
// as in "cluster-a http:8080 10.1.0.11".
func (w workload) endpoints(cluster string, ports ...string) []string {
	var result []string
	for _, p := range w.ports {
		if !slices.Contains(ports, p.Name) {
			continue
		}
		for _, pod := range w.pods {
			for _, address := range []string{pod.ipv4, pod.ipv6} {
				result = append(result, endpoint(cluster, p.Name, p.TargetPort.IntVal, address))
			}
		}
	}
	return result
}

func endpoint(cluster, port string, number int32, address string) string {
	return fmt.Sprintf("%s %s:%d %s", cluster, port, number, address)
}

func serviceExport(name string) *mcsv1beta1.ServiceExport {
	return &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}
