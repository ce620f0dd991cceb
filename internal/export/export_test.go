// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var created = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// serviceExport returns a ServiceExport whose own labels and annotations must not be exported.
func serviceExport(changes ...func(*mcsv1beta1.ServiceExport)) *mcsv1beta1.ServiceExport {
	result := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: "web",
		CreationTimestamp: metav1.NewTime(created.In(time.FixedZone("", 3600))),
		Labels:            map[string]string{"of": "the-export"},
		Annotations:       map[string]string{"of": "the export"},
	}}
	for _, change := range changes {
		change(result)
	}
	return result
}

// service returns a Service as the API server completes it.
func service(changes ...func(*corev1.Service)) *corev1.Service {
	result := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web",
			CreationTimestamp: metav1.NewTime(created.Add(-time.Hour)),
			Labels:            map[string]string{"service.kubernetes.io/headless": "", "of": "the-service"},
			Annotations:       map[string]string{"of": "the service"},
		},
		Spec: corev1.ServiceSpec{
			Type:                  corev1.ServiceTypeClusterIP,
			ClusterIP:             "10.0.0.1",
			ClusterIPs:            []string{"10.0.0.1"},
			Selector:              map[string]string{"app": "web"},
			Ports:                 []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(8080)}},
			IPFamilies:            []corev1.IPFamily{corev1.IPv4Protocol},
			IPFamilyPolicy:        new(corev1.IPFamilyPolicySingleStack),
			SessionAffinity:       corev1.ServiceAffinityNone,
			InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
		},
	}
	for _, change := range changes {
		change(result)
	}
	return result
}

func of(kind corev1.ServiceType) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Type = kind }
}

func headless(s *corev1.Service) {
	s.Spec.ClusterIP, s.Spec.ClusterIPs = corev1.ClusterIPNone, []string{corev1.ClusterIPNone}
}

func sticky(config *corev1.SessionAffinityConfig) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = corev1.ServiceAffinityClientIP, config
	}
}

// exported returns the Export of the Service above, after the changes.
func exported(changes ...func(*clusterset.Export)) clusterset.Export {
	result := clusterset.Export{
		Cluster:               "berlin",
		Key:                   clusterset.ServiceKey{Namespace: "shop", Name: "web"},
		Age:                   created,
		Type:                  mcsv1beta1.ClusterSetIP,
		Ports:                 []clusterset.Port{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
		IPFamilies:            []corev1.IPFamily{corev1.IPv4Protocol},
		Affinity:              clusterset.Affinity{Mode: corev1.ServiceAffinityNone},
		InternalTrafficPolicy: corev1.ServiceInternalTrafficPolicyCluster,
	}
	for _, change := range changes {
		change(&result)
	}
	return result
}

// spec: E4, E7, R8
func TestDecide(t *testing.T) {
	t.Parallel()
	timeout := func(seconds *int32) *corev1.SessionAffinityConfig {
		return &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: seconds}}
	}
	affinity := func(seconds int32) func(*clusterset.Export) {
		return func(e *clusterset.Export) {
			e.Affinity = clusterset.Affinity{Mode: corev1.ServiceAffinityClientIP, TimeoutSeconds: seconds}
		}
	}
	asHeadless := func(e *clusterset.Export) { e.Type, e.Affinity = mcsv1beta1.Headless, clusterset.Affinity{} }
	cases := map[string]struct {
		export  *mcsv1beta1.ServiceExport
		service *corev1.Service
		want    clusterset.Export
	}{
		"ClusterIP":    {serviceExport(), service(), exported()},
		"NodePort":     {serviceExport(), service(of(corev1.ServiceTypeNodePort)), exported()},
		"LoadBalancer": {serviceExport(), service(of(corev1.ServiceTypeLoadBalancer)), exported()},
		"headless":     {serviceExport(), service(headless), exported(asHeadless)},
		"headless, which has no affinity": {
			serviceExport(), service(headless, sticky(timeout(new(int32(60))))), exported(asHeadless),
		},
		"headless without ports": {
			serviceExport(),
			service(headless, func(s *corev1.Service) { s.Spec.Ports = nil }),
			exported(asHeadless, func(e *clusterset.Export) { e.Ports = []clusterset.Port{} }),
		},
		"dual-stack, IPv6 first": {
			serviceExport(),
			service(func(s *corev1.Service) { s.Spec.IPFamilies = []corev1.IPFamily{"IPv6", "IPv4"} }),
			exported(func(e *clusterset.Export) { e.IPFamilies = []corev1.IPFamily{"IPv6", "IPv4"} }),
		},
		"session affinity":                   {serviceExport(), service(sticky(timeout(new(int32(60))))), exported(affinity(60))},
		"session affinity, no configuration": {serviceExport(), service(sticky(nil)), exported(affinity(0))},
		"session affinity, empty configuration": {
			serviceExport(), service(sticky(&corev1.SessionAffinityConfig{})), exported(affinity(0)),
		},
		"session affinity, no timeout": {serviceExport(), service(sticky(timeout(nil))), exported(affinity(0))},
		"traffic policies": {
			serviceExport(),
			service(func(s *corev1.Service) {
				s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
				s.Spec.TrafficDistribution = new("PreferClose")
			}),
			exported(func(e *clusterset.Export) {
				e.InternalTrafficPolicy, e.TrafficDistribution = corev1.ServiceInternalTrafficPolicyLocal, "PreferClose"
			}),
		},
		"no traffic policies": {
			serviceExport(),
			service(func(s *corev1.Service) { s.Spec.InternalTrafficPolicy = nil }),
			exported(func(e *clusterset.Export) { e.InternalTrafficPolicy = "" }),
		},
		"several ports, in their order": {
			serviceExport(),
			service(func(s *corev1.Service) {
				s.Spec.Ports = []corev1.ServicePort{
					{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53, NodePort: 30053},
					{Name: "api", Protocol: corev1.ProtocolTCP, Port: 443, AppProtocol: new("kubernetes.io/h2c"), TargetPort: intstr.FromString("api")},
				}
			}),
			exported(func(e *clusterset.Export) {
				e.Ports = []clusterset.Port{
					{Name: "dns", Protocol: corev1.ProtocolUDP, Port: 53},
					{Name: "api", Protocol: corev1.ProtocolTCP, Port: 443, AppProtocol: "kubernetes.io/h2c"},
				}
			}),
		},
		"exported metadata, without reserved keys": {
			serviceExport(func(e *mcsv1beta1.ServiceExport) {
				e.Spec.ExportedLabels = map[string]string{"team": "a", "kubernetes.io/service-name": "x"}
				e.Spec.ExportedAnnotations = map[string]string{"note": "b", "hub.tombolo-mcs.io/x": "x"}
			}),
			service(),
			exported(func(e *clusterset.Export) {
				e.Labels, e.Annotations = map[string]string{"team": "a"}, map[string]string{"note": "b"}
			}),
		},
		"nothing but reserved keys": {
			serviceExport(func(e *mcsv1beta1.ServiceExport) {
				e.Spec.ExportedLabels = map[string]string{"kubernetes.io/service-name": "x"}
				e.Spec.ExportedAnnotations = map[string]string{}
			}),
			service(), exported(),
		},
		"a Service that another tool manages": {
			serviceExport(), service(func(s *corev1.Service) { s.Labels["app.kubernetes.io/managed-by"] = "Helm" }), exported(),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			beforeExport, beforeService := tc.export.DeepCopy(), tc.service.DeepCopy()
			got, rejection := export.Decide("berlin", tc.export, tc.service)
			if rejection != nil {
				t.Fatalf("rejected: %v", rejection)
			}
			check.Equal(t, "export", tc.want, got)
			if got.Age.Location() != time.UTC {
				t.Errorf("age in %v", got.Age.Location())
			}
			got.IPFamilies[0] = "changed"
			delete(got.Labels, "team")
			delete(got.Annotations, "note")
			check.Equal(t, "the input is changed or shared", beforeExport, tc.export)
			check.Equal(t, "the input is changed or shared", beforeService, tc.service)
		})
	}
}

// spec: C1, E5, E6, E9
func TestRejections(t *testing.T) {
	t.Parallel()
	external := service(of(corev1.ServiceTypeExternalName), func(s *corev1.Service) { s.Spec.ClusterIP = "" })
	derived := service(func(s *corev1.Service) {
		s.Labels = map[string]string{
			"app.kubernetes.io/managed-by":            "tombolo-mcs.io",
			"multicluster.kubernetes.io/service-name": "shop-front",
		}
	})
	in := func(namespace string) *mcsv1beta1.ServiceExport {
		return serviceExport(func(e *mcsv1beta1.ServiceExport) { e.Namespace = namespace })
	}
	reserved := func(namespace string) export.Rejection {
		message := "Services of namespace " + namespace + " are never exported. Move the Service to another namespace."
		return export.Rejection{Reason: "NamespaceReserved", Message: message}
	}
	cases := map[string]struct {
		export  *mcsv1beta1.ServiceExport
		service *corev1.Service
		want    export.Rejection
	}{
		"no Service": {serviceExport(), nil, export.Rejection{
			Reason:  "NoService",
			Message: "There is no Service web in namespace shop. Create it, or delete this ServiceExport.",
		}},
		"ExternalName": {serviceExport(), external, export.Rejection{
			Reason: "InvalidServiceType",
			Message: "Service web is of type ExternalName, which cannot be exported. " +
				"Use ClusterIP, NodePort, LoadBalancer or a headless Service.",
		}},
		"derived from an import": {serviceExport(), derived, export.Rejection{
			Reason: "InvalidServiceType",
			Message: "Service web is itself derived from an import and cannot be exported again. " +
				"Export the original Service, named shop-front, where it runs.",
		}},
		"in a reserved namespace":                      {in("kube-system"), service(), reserved("kube-system")},
		"in a reserved namespace, where there is none": {in("kube-public"), nil, reserved("kube-public")},
		"in the agents' namespace":                     {in("tombolo-system"), service(), reserved("tombolo-system")},
		"in a member's namespace on the hub":           {in("member-c1"), service(), reserved("member-c1")},
		"the cluster's API server": {
			&mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}}, service(), export.Rejection{
				Reason:  "ServiceReserved",
				Message: "Service kubernetes of namespace default is this cluster's own API server and is never exported. Delete this ServiceExport.",
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, rejection := export.Decide("berlin", tc.export, tc.service)
			check.Equal(t, "rejection", &tc.want, rejection)
			check.Equal(t, "an export beside the rejection", clusterset.Export{}, got)
		})
	}
}

// The age is that of the ServiceExport, so that it does not change if the Service is created again.
// spec: E6, R3
func TestRepairedExportKeepsAge(t *testing.T) {
	t.Parallel()
	later := service(func(s *corev1.Service) { s.CreationTimestamp = metav1.NewTime(created.Add(time.Hour)) })
	if _, rejection := export.Decide("berlin", serviceExport(), nil); rejection == nil {
		t.Error("nothing is missing without a Service")
	}
	got, rejection := export.Decide("berlin", serviceExport(), later)
	if diff := cmp.Diff(exported(), got); diff != "" || rejection != nil {
		t.Errorf("recreated (-want +got), rejection %v:\n%s", rejection, diff)
	}
}

// spec: D8
func TestSelection(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		service *corev1.Service
		want    *clusterset.Selection
	}{
		"with a selector": {service(), &clusterset.Selection{
			Labels:      map[string]string{"app": "web"},
			TargetPorts: map[clusterset.PortID]intstr.IntOrString{{Protocol: "TCP", Port: 80}: intstr.FromInt32(8080)},
		}},
		"without":  {service(func(s *corev1.Service) { s.Spec.Selector = nil }), nil},
		"headless": {service(headless), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "selection", tc.want, export.Selection(tc.service))
		})
	}
}

// TestReserved: the reserved keys that a ServiceExport names are known, so that its condition can say that they are left out.
//
// spec: E7
func TestReserved(t *testing.T) {
	t.Parallel()
	named := &mcsv1beta1.ServiceExport{Spec: mcsv1beta1.ServiceExportSpec{
		ExportedLabels:      map[string]string{"team": "x", "app.kubernetes.io/name": "web", "tombolo-mcs.io/auto-export": "true"},
		ExportedAnnotations: map[string]string{"example.com/note": "x", "app.kubernetes.io/name": "web", "K8s.io/x": "y"},
	}}
	check.Equal(t, "reserved", []string{"K8s.io/x", "app.kubernetes.io/name", "tombolo-mcs.io/auto-export"}, export.Reserved(named))
	check.Equal(t, "none", 0, len(export.Reserved(&mcsv1beta1.ServiceExport{})))
}
