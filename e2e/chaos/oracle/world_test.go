// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// web is the service of all tests. Its derived Service is called as in spec D2.
var (
	web   = Key{Namespace: "shop", Name: "web-service"}
	start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
)

const derivedWeb = "derived-435094621"

// good returns a world in which all is well, written down by hand: a and b export a service, a first, and disagree on a
// port; c imports it.
func good() World {
	w := World{Clusters: []Cluster{cluster("a", "10.101.0.0/16"), cluster("b", "10.102.0.0/16"), cluster("c", "10.103.0.0/16")}}
	for i, id := range []string{"a", "b", "c"} {
		w.Members = append(w.Members, hubv1alpha1.Member{Spec: hubv1alpha1.MemberSpec{
			ClusterID: id, PodCIDRs: []hubv1alpha1.CIDR{hubv1alpha1.CIDR("10." + string(rune('1'+i)) + ".0.0/16")},
		}})
	}
	for i, id := range []string{"a", "b"} {
		c := &w.Clusters[i]
		c.Services = append(c.Services, source(corev1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}))
		c.Exports = append(c.Exports, mcsv1beta1.ServiceExport{
			ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name, CreationTimestamp: metav1.NewTime(start.Add(time.Duration(i) * time.Hour))},
			Spec:       mcsv1beta1.ServiceExportSpec{ExportedLabels: map[string]string{"team": "x", "argocd.argoproj.io/instance": "y", "app.kubernetes.io/instance": "z"}},
			Status: mcsv1beta1.ServiceExportStatus{Conditions: []metav1.Condition{
				{Type: "Valid", Status: "True", Reason: "Valid"},
				{Type: "Ready", Status: "True", Reason: "Exported"},
				{Type: "Conflict", Status: "True", Reason: "PortConflict"},
			}},
		})
		w.Records = append(w.Records, hubv1alpha1.PublishedService{
			ObjectMeta: metav1.ObjectMeta{Namespace: "member-" + id, CreationTimestamp: metav1.NewTime(start.Add(time.Duration(i) * time.Hour))},
			Spec:       hubv1alpha1.PublishedServiceSpec{Namespace: "shop", Service: "web-service"},
		})
	}
	w.Clusters[1].Services[0].Spec.Ports = []corev1.ServicePort{
		{Name: "http", Protocol: corev1.ProtocolTCP, Port: 81}, {Name: "", Protocol: corev1.ProtocolTCP, Port: 90},
	}
	w.Clusters[0].Slices = append(w.Clusters[0].Slices, sourceSlice("10.1.0.1", "http"), sourceSlice("10.9.0.1", "http"))
	w.Clusters[0].Slices[1].Name = "web-outside"
	w.Clusters[1].Slices = append(w.Clusters[1].Slices, sourceSlice("10.2.0.1", "http", ""))
	for i := range w.Clusters {
		c := &w.Clusters[i]
		ip := "10." + string(rune('1'+i)) + ".0.99"
		c.Services = append(c.Services, derived(ip))
		c.Imports = append(c.Imports, imported(ip))
		c.Slices = append(c.Slices, mirrored("a", "10.1.0.1", "http"), mirrored("b", "10.2.0.1", "unnamed", ""))
	}
	w.Clusters[0].Slices = append(w.Clusters[0].Slices, mirrored("a", "10.9.0.1", "http")) // it does not leave its cluster
	w.Clusters[0].Slices[4].Name += "2"
	return w
}

func cluster(id, cidr string) Cluster {
	return Cluster{
		ID: id, ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix(cidr)},
		Namespaces: []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: web.Namespace}}},
	}
}

func source(ports ...corev1.ServicePort) corev1.Service {
	return corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: "10.100.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, Ports: ports},
	}
}

func sourceSlice(address string, ports ...string) discoveryv1.EndpointSlice {
	return discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: web.Namespace, Name: "web-1", Labels: map[string]string{labelSliceService: web.Name}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: slicePorts(ports...), Endpoints: []discoveryv1.Endpoint{{Addresses: []string{address}}},
	}
}

func slicePorts(names ...string) []discoveryv1.EndpointPort {
	var result []discoveryv1.EndpointPort
	for _, name := range names {
		result = append(result, discoveryv1.EndpointPort{Name: new(name), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))})
	}
	return result
}

func mirrored(source, address string, ports ...string) discoveryv1.EndpointSlice {
	s := sourceSlice(address, ports...)
	s.Name = derivedWeb + "-" + source + "-1"
	s.Labels = map[string]string{
		labelSliceService: derivedWeb, labelSliceManagedBy: ours, labelServiceName: web.Name, labelSourceCluster: source,
	}
	return s
}

func derived(ip string) corev1.Service {
	return corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: derivedWeb, Labels: map[string]string{
			labelManagedBy: ours, labelServiceName: web.Name, labelImported: "true", "team": "x",
		}},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: ip, ClusterIPs: []string{ip}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			SessionAffinity: corev1.ServiceAffinityNone, InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
			Ports: []corev1.ServicePort{
				{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}, {Name: "unnamed", Protocol: corev1.ProtocolTCP, Port: 90},
			},
		},
	}
}

func imported(ip string) mcsv1beta1.ServiceImport {
	return mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: web.Namespace, Name: web.Name, Labels: map[string]string{labelManagedBy: ours, "team": "x"},
			Annotations: map[string]string{annotationDerived: derivedWeb},
		},
		Spec: mcsv1beta1.ServiceImportSpec{
			Type: mcsv1beta1.ClusterSetIP, IPs: []string{ip}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			SessionAffinity: corev1.ServiceAffinityNone, InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
			Ports: []mcsv1beta1.ServicePort{
				{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}, {Protocol: corev1.ProtocolTCP, Port: 90},
			},
		},
		Status: mcsv1beta1.ServiceImportStatus{
			Clusters:             []mcsv1beta1.ClusterStatus{{Cluster: "a"}, {Cluster: "b"}},
			EndpointSliceObjects: mcsv1beta1.EndpointSliceObjectsPresent,
			Conditions:           []metav1.Condition{{Type: "Ready", Status: "True", Reason: "Ready"}},
		},
	}
}
