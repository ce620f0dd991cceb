// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
	"github.com/tombolo-mcs/tombolo/pkg/render"
)

var key = clusterset.ServiceKey{Namespace: "shop", Name: "web"}

// exportOf returns an export with one port, the older the smaller the minute.
func exportOf(id clusterset.ClusterID, minute int, port clusterset.Port) clusterset.Export {
	return clusterset.Export{
		Cluster: id, Key: key, Age: time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC), Type: mcsv1beta1.ClusterSetIP,
		Ports: []clusterset.Port{port}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		Affinity: clusterset.Affinity{Mode: corev1.ServiceAffinityNone},
	}
}

// importOf returns the import as this package would have written it for these exporters.
func importOf(port mcsv1beta1.ServicePort, exporters ...string) *mcsv1beta1.ServiceImport {
	result := &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: key.Namespace, Name: key.Name,
			Labels:      map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy, "team": "blue"},
			Annotations: map[string]string{clusterset.AnnotationDerivedService: clusterset.ShortDerivedName("web")},
		},
		Spec: mcsv1beta1.ServiceImportSpec{
			Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{port}, IPs: []string{"10.100.0.7"},
			IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, SessionAffinity: corev1.ServiceAffinityNone,
		},
	}
	for _, id := range exporters {
		result.Status.Clusters = append(result.Status.Clusters, mcsv1beta1.ClusterStatus{Cluster: id})
	}
	return result
}

func mirrorOf(id string) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
		Namespace: key.Namespace, Name: "derived-43254079-" + id + "-0",
		Labels: map[string]string{mcsv1beta1.LabelSourceCluster: id, discoveryv1.LabelServiceName: "derived-43254079"},
	}}
}

var (
	http      = clusterset.Port{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}
	otherHTTP = clusterset.Port{Name: "http", Protocol: corev1.ProtocolTCP, Port: 8080}
	admin     = clusterset.Port{Name: "admin", Protocol: corev1.ProtocolTCP, Port: 9090}
	held80    = mcsv1beta1.ServicePort{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}
)

// TestUnknownIsNotEmpty: what an import says of a cluster stays for as long as nobody knows whether it still holds.
//
// spec: E3, R6
func TestUnknownIsNotEmpty(t *testing.T) {
	own := exportOf("own", 5, otherHTTP)
	for name, test := range map[string]struct {
		exports   []clusterset.Export
		slices    []clusterset.Slice
		own       *clusterset.Export
		imported  *mcsv1beta1.ServiceImport
		mirrored  []*discoveryv1.EndpointSlice
		knowledge map[clusterset.ClusterID]hub.Knowledge
		withdrawn map[sliceKey]bool

		exported bool
		exporter []clusterset.ClusterID
		ports    []clusterset.Port
		serves   map[string]string // the own cluster
		covered  []string          // mirrored slices that may be changed
	}{
		"a complete source that exports nothing has withdrawn": {
			imported: importOf(held80, "a"), mirrored: []*discoveryv1.EndpointSlice{mirrorOf("a")},
			knowledge: map[clusterset.ClusterID]hub.Knowledge{"a": hub.Complete},
			covered:   []string{"a"},
		},
		"so has one that is no member any more": {
			imported: importOf(held80, "a"), mirrored: []*discoveryv1.EndpointSlice{mirrorOf("a")},
			knowledge: map[clusterset.ClusterID]hub.Knowledge{"a": hub.Gone},
			covered:   []string{"a"},
		},
		"an unknown source is held with all that the import says": {
			imported: importOf(held80, "a"), mirrored: []*discoveryv1.EndpointSlice{mirrorOf("a")},
			knowledge: map[clusterset.ClusterID]hub.Knowledge{"a": hub.Unknown},
			exported:  true, exporter: []clusterset.ClusterID{"a"}, ports: []clusterset.Port{http},
		},
		"what is known beside it is added, and does not displace it": {
			own: &own, imported: importOf(held80, "a", "own"),
			mirrored:  []*discoveryv1.EndpointSlice{mirrorOf("a"), mirrorOf("own")},
			knowledge: map[clusterset.ClusterID]hub.Knowledge{"a": hub.Unknown, "own": hub.Complete},
			exported:  true, exporter: []clusterset.ClusterID{"a", "own"}, ports: []clusterset.Port{http},
			serves: map[string]string{}, covered: []string{"own"},
		},
		"a known withdrawal beside it takes effect": {
			imported:  importOf(held80, "a", "b"),
			mirrored:  []*discoveryv1.EndpointSlice{mirrorOf("a"), mirrorOf("b")},
			knowledge: map[clusterset.ClusterID]hub.Knowledge{"a": hub.Unknown, "b": hub.Complete},
			exported:  true, exporter: []clusterset.ClusterID{"a"}, ports: []clusterset.Port{http}, covered: []string{"b"},
		},
		"the record of an unknown source counts, and so do its slices that are there": {
			exports: []clusterset.Export{exportOf("a", 1, admin)}, slices: []clusterset.Slice{{Cluster: "a", ID: "0"}},
			imported: importOf(held80, "a"), mirrored: []*discoveryv1.EndpointSlice{mirrorOf("a")},
			knowledge: map[clusterset.ClusterID]hub.Knowledge{"a": hub.Unknown},
			exported:  true, exporter: []clusterset.ClusterID{"a"}, ports: []clusterset.Port{admin}, covered: []string{"a"},
		},
		"its slices that are not there stay": {
			exports: []clusterset.Export{exportOf("a", 1, admin)}, imported: importOf(held80, "a"),
			mirrored:  []*discoveryv1.EndpointSlice{mirrorOf("a")},
			knowledge: map[clusterset.ClusterID]hub.Knowledge{"a": hub.Unknown},
			exported:  true, exporter: []clusterset.ClusterID{"a"}, ports: []clusterset.Port{admin},
		},
		"but for one that was seen to be deleted": {
			exports: []clusterset.Export{exportOf("a", 1, admin)}, imported: importOf(held80, "a", "b"),
			mirrored:  []*discoveryv1.EndpointSlice{mirrorOf("a"), mirrorOf("b")},
			knowledge: map[clusterset.ClusterID]hub.Knowledge{"a": hub.Unknown, "b": hub.Unknown},
			withdrawn: map[sliceKey]bool{{"a", "0"}: true, {"b", "1"}: true},
			exported:  true, exporter: []clusterset.ClusterID{"a", "b"}, ports: []clusterset.Port{http, admin}, covered: []string{"a"},
		},
		"slices alone are held too": {
			own: &own, mirrored: []*discoveryv1.EndpointSlice{mirrorOf("a")},
			knowledge: map[clusterset.ClusterID]hub.Knowledge{"a": hub.Unknown},
			exported:  true, exporter: []clusterset.ClusterID{"own"}, ports: []clusterset.Port{otherHTTP},
			serves: map[string]string{"http": "http"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := view{
				place: admitted, known: sources.Sources{Key: key, Own: test.own, Hub: hub.Service{Exports: test.exports, Slices: test.slices}},
				ownFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, knowledge: test.knowledge, withdrawn: test.withdrawn,
				serviceImport: test.imported, mirrored: test.mirrored,
			}
			before := test.imported.DeepCopy()
			d := decide(v)
			if d.exported != test.exported {
				t.Fatalf("exported is %v, want %v", d.exported, test.exported)
			}
			if diff := cmp.Diff(test.exporter, d.merged.Clusters); diff != "" {
				t.Errorf("exporters (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.ports, d.merged.Ports); diff != "" {
				t.Errorf("ports (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.serves, d.merged.PortNames["own"]); diff != "" {
				t.Errorf("ports that the own cluster serves (-want +got):\n%s", diff)
			}
			var covered []string
			for _, s := range d.concerned(test.mirrored) {
				covered = append(covered, string(sourceOf(s)))
			}
			if diff := cmp.Diff(test.covered, covered); diff != "" {
				t.Errorf("slices that may be changed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(before, test.imported); diff != "" {
				t.Errorf("the argument was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// TestEstablishedRendersTheSame: an import taken back as an export gives the same import again.
func TestEstablishedRendersTheSame(t *testing.T) {
	timeout := int32(600)
	full := importOf(held80, "a")
	full.Annotations["docs"] = "https://example.com"
	full.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	full.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &timeout}}
	full.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
	full.Spec.TrafficDistribution = new("PreferClose")
	full.Spec.Ports[0].AppProtocol = new("http")
	headless := importOf(held80, "a")
	headless.Spec = mcsv1beta1.ServiceImportSpec{
		Type: mcsv1beta1.Headless, Ports: []mcsv1beta1.ServicePort{}, IPFamilies: []corev1.IPFamily{corev1.IPv6Protocol},
		InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
	}
	for name, want := range map[string]*mcsv1beta1.ServiceImport{"with everything": full, "headless": headless} {
		t.Run(name, func(t *testing.T) {
			d := decide(view{
				place: admitted, known: sources.Sources{Key: key}, ownFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
				knowledge: map[clusterset.ClusterID]hub.Knowledge{"a": hub.Unknown}, serviceImport: want,
			})
			got := render.ServiceImport(d.merged, d.site, want.Spec.IPs)
			if diff := cmp.Diff(want.Spec, got.Spec); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
			if !maps.Equal(want.Labels, got.Labels) || !maps.Equal(want.Annotations, got.Annotations) {
				t.Errorf("labels %v, annotations %v; want %v, %v", got.Labels, got.Annotations, want.Labels, want.Annotations)
			}
		})
	}
}

// Where the derived Service has a selector, Kubernetes finds the cluster's own pods, and none is there twice. What a held
// exporter selected stays, too.
//
// spec: D8
func TestOwnSlicesBesideASelector(t *testing.T) {
	selection := &clusterset.Selection{Labels: map[string]string{"app": "web"}}
	own := exportOf("own", 2, http)
	other := exportOf("a", 1, http)
	other.Selection = selection
	v := view{
		place: admitted, ownFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
		known: sources.Sources{Key: key, Own: &own, Hub: hub.Service{
			Exports: []clusterset.Export{other}, Slices: []clusterset.Slice{{Cluster: "a", ID: "1", AddressType: "IPv4"}},
		}},
		ownSlices: []clusterset.Slice{{Cluster: "own", ID: "1", AddressType: "IPv4"}},
	}
	clustersOf := func(d decision) (ids []clusterset.ClusterID) {
		for _, slice := range d.slices {
			ids = append(ids, slice.Cluster)
		}
		return ids
	}
	if diff := cmp.Diff([]clusterset.ClusterID{"a"}, clustersOf(decide(v))); diff != "" {
		t.Errorf("slices of (-want +got):\n%s", diff)
	}
	v.known.Hub.Exports[0].Selection = nil
	if diff := cmp.Diff([]clusterset.ClusterID{"a", "own"}, clustersOf(decide(v))); diff != "" {
		t.Errorf("slices of, without a selector (-want +got):\n%s", diff)
	}
	v.known.Hub = hub.Service{}
	v.serviceImport, v.selection = importOf(held80, "a"), selection
	v.knowledge = map[clusterset.ClusterID]hub.Knowledge{"a": hub.Unknown}
	if got := decide(v).merged.Selection; got != selection {
		t.Errorf("while the oldest is held, the selection is %v, want %v", got, selection)
	}
}

// TestAddressesOutliveTheirService: name, families and addresses of an import come from what there is of it.
//
// spec: D2, I5
func TestAddressesOutliveTheirService(t *testing.T) {
	dual := []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
	derived := func(name string, clusterIP string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, Labels: map[string]string{
				clusterset.LabelManagedBy: clusterset.ManagedBy, mcsv1beta1.LabelServiceName: key.Name,
			}},
			Spec: corev1.ServiceSpec{ClusterIP: clusterIP, ClusterIPs: []string{clusterIP}, IPFamilies: dual},
		}
	}
	long := clusterset.LongDerivedName(key.Name)
	for name, test := range map[string]struct {
		imported *mcsv1beta1.ServiceImport
		named    []*corev1.Service
		want     render.Site
	}{
		"nothing there": {
			want: render.Site{DerivedName: "derived-43254079"},
		},
		"the Service was deleted": {
			imported: importOf(held80, "a"),
			want: render.Site{
				DerivedName: "derived-43254079", IPs: []string{"10.100.0.7"},
				Established: []corev1.IPFamily{corev1.IPv4Protocol},
			},
		},
		"the import was deleted": {
			named: []*corev1.Service{derived(long, "fd00::1")},
			want:  render.Site{DerivedName: long, IPs: []string{"fd00::1"}, Established: dual},
		},
		"it was headless": {
			named: []*corev1.Service{derived("derived-43254079", corev1.ClusterIPNone)},
			want:  render.Site{DerivedName: "derived-43254079"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.IPFamilies = slices.Clone(dual)
			v := view{
				place: admitted, ownFamilies: dual, serviceImport: test.imported, named: test.named,
				known: sources.Sources{Key: key, Hub: hub.Service{Exports: []clusterset.Export{exportOf("a", 1, http)}}},
			}
			if diff := cmp.Diff(test.want, decide(v).site); diff != "" {
				t.Errorf("site (-want +got):\n%s", diff)
			}
		})
	}
}
