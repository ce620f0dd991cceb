// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// workload is a Service in one cluster and the pods behind it. There are no nodes, so no pods either: their EndpointSlices
// are written by hand, as Kubernetes' own controller would.
type workload struct {
	name     string
	headless bool
	ports    []corev1.ServicePort
	pods     []pod
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
		name:     "db",
		headless: true,
		ports:    []corev1.ServicePort{servicePort("sql", 5432, 5432)},
		pods: []pod{
			{hostname: "db-0", ipv4: "10.1.0.31", ipv6: "fd00:1::31"},
			{hostname: "db-1", ipv4: "10.1.0.32", ipv6: "fd00:1::32"},
		},
	}
)

func servicePort(name string, number, target int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: number, TargetPort: intstr.FromInt32(target)}
}

// service returns the Service.
func (w workload) service() *corev1.Service {
	k := world.Key{Namespace: namespace, Name: w.name}
	if w.headless {
		return world.Headless(k, w.ports...)
	}
	return world.Service(k, w.ports...)
}

// objects returns the Service and its slices.
func (w workload) objects() []client.Object {
	return []client.Object{
		w.service(), w.slice("ipv4", func(p pod) string { return p.ipv4 }), w.slice("ipv6", func(p pod) string { return p.ipv6 }),
	}
}

func (w workload) slice(suffix string, address func(pod) string) *discoveryv1.EndpointSlice {
	var addresses []string
	for _, p := range w.pods {
		addresses = append(addresses, address(p))
	}
	slice := world.Slice(w.service(), suffix, addresses...)
	for i, p := range w.pods {
		if p.hostname != "" {
			slice.Endpoints[i].Hostname = &p.hostname
		}
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
	return world.Export(world.Key{Namespace: namespace, Name: name})
}
