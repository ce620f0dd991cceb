// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var key = clusterset.ServiceKey{Namespace: "shop", Name: "web"}

// exportOf returns an export with one port. Exports of smaller minutes are older.
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

// derivedWeb returns the derived Service of the import.
func derivedWeb() []*corev1.Service {
	return []*corev1.Service{{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "derived-43254079", Labels: map[string]string{
			clusterset.LabelManagedBy: clusterset.ManagedBy, mcsv1beta1.LabelServiceName: key.Name, clusterset.LabelServiceImported: "true",
		}},
		Spec: corev1.ServiceSpec{
			ClusterIP: "10.100.0.7", ClusterIPs: []string{"10.100.0.7"}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80}},
		},
	}}
}

// TestUnknownIsNotEmpty: fields of an import stay while it is not known whether the export that they are from still exists.
//
// spec: E3, R6
func TestUnknownIsNotEmpty(t *testing.T) {
	all := map[clusterset.ClusterID]sources.Missing{"a": {Export: true, Slices: []string{"0"}}}
	own := exportOf("own", 5, otherHTTP)
	for name, test := range map[string]struct {
		exports  []clusterset.Export
		slices   []clusterset.Slice
		own      *clusterset.Export
		imported *mcsv1beta1.ServiceImport
		derived  []*corev1.Service
		synced   bool
		mirrored []*discoveryv1.EndpointSlice
		missing  map[clusterset.ClusterID]sources.Missing

		verdict  exportState
		exporter []clusterset.ClusterID
		ports    []clusterset.Port
		serves   map[string]string // by the local cluster
		covered  []string          // mirrored slices that may be changed
	}{
		"a source of which nothing is missing has withdrawn": {
			imported: importOf(held80, "a"), mirrored: []*discoveryv1.EndpointSlice{mirrorOf("a")},
			verdict: withdrawn, covered: []string{"a"},
		},
		"an unknown source is held with all that the import says": {
			imported: importOf(held80, "a"), mirrored: []*discoveryv1.EndpointSlice{mirrorOf("a")},
			missing: all,
			verdict: exported, exporter: []clusterset.ClusterID{"a"}, ports: []clusterset.Port{http},
		},
		"what is known beside it is added, and does not displace it": {
			own: &own, imported: importOf(held80, "a", "own"),
			mirrored: []*discoveryv1.EndpointSlice{mirrorOf("a"), mirrorOf("own")},
			missing:  all,
			verdict:  exported, exporter: []clusterset.ClusterID{"a", "own"}, ports: []clusterset.Port{http},
			serves: map[string]string{}, covered: []string{"own"},
		},
		"a known withdrawal beside it takes effect": {
			imported: importOf(held80, "a", "b"),
			mirrored: []*discoveryv1.EndpointSlice{mirrorOf("a"), mirrorOf("b")},
			missing:  all,
			verdict:  exported, exporter: []clusterset.ClusterID{"a"}, ports: []clusterset.Port{http}, covered: []string{"b"},
		},
		"a record counts, and so do the slices that are there": {
			exports: []clusterset.Export{exportOf("a", 1, admin)}, slices: []clusterset.Slice{{Cluster: "a", ID: "0"}},
			imported: importOf(held80, "a"), mirrored: []*discoveryv1.EndpointSlice{mirrorOf("a")},
			verdict: exported, exporter: []clusterset.ClusterID{"a"}, ports: []clusterset.Port{admin}, covered: []string{"a"},
		},
		"its slices that are missing stay": {
			exports: []clusterset.Export{exportOf("a", 1, admin)}, imported: importOf(held80, "a"),
			mirrored: []*discoveryv1.EndpointSlice{mirrorOf("a")},
			missing:  map[clusterset.ClusterID]sources.Missing{"a": {Slices: []string{"0"}}},
			verdict:  exported, exporter: []clusterset.ClusterID{"a"}, ports: []clusterset.Port{admin},
		},
		"slices alone are held too": {
			own: &own, mirrored: []*discoveryv1.EndpointSlice{mirrorOf("a")},
			missing: all,
			verdict: exported, exporter: []clusterset.ClusterID{"a", "own"}, ports: []clusterset.Port{otherHTTP},
			serves: map[string]string{"http": "http"},
		},
		"slices alone, of which no import can be made": {
			mirrored: []*discoveryv1.EndpointSlice{mirrorOf("a")}, missing: all, verdict: undecided,
		},
		"an import that is deleted is restored from its Service": {
			mirrored: []*discoveryv1.EndpointSlice{mirrorOf("a")}, derived: derivedWeb(), missing: all,
			verdict: exported, exporter: []clusterset.ClusterID{"a"}, ports: []clusterset.Port{http},
		},
		"and from its Service alone, without its exporters": {
			derived: derivedWeb(), missing: map[clusterset.ClusterID]sources.Missing{"a": {Export: true}, "b": {Export: true}},
			verdict: exported, ports: []clusterset.Port{http},
		},
		"also if the hub has not been read": {
			derived: derivedWeb(), verdict: exported, ports: []clusterset.Port{http},
		},
		"also when it has been restored, without exporters": {
			imported: importOf(held80), derived: derivedWeb(), verdict: exported, ports: []clusterset.Port{http},
		},
		"but not if nothing is missing on the hub": {
			derived: derivedWeb(), synced: true, verdict: withdrawn,
		},
	} {
		t.Run(name, func(t *testing.T) {
			v := view{
				Observed: Observed{
					Namespace: NamespaceAllowed, Sources: sources.Sources{Key: key, Local: test.own, Hub: sources.Hub{Exports: test.exports, Slices: test.slices, Listed: test.synced}},
					Families: []corev1.IPFamily{corev1.IPv4Protocol}, Existing: Existing{ServiceImport: test.imported, Services: test.derived, Mirrored: test.mirrored},
				},
				missing: test.missing,
			}
			if test.synced {
				v.Sources.Hub.LocalMember = &hubv1alpha1.Member{}
			}
			before := test.imported.DeepCopy()
			d := decide(v)
			check.Equal(t, "verdict", test.verdict, d.state)
			check.Equal(t, "exporters", test.exporter, d.merged.Clusters)
			check.Equal(t, "ports", test.ports, d.merged.Ports)
			check.Equal(t, "ports that the own cluster serves", test.serves, d.merged.PortNames["own"])
			var covered []string
			for _, s := range test.mirrored {
				if !slices.ContainsFunc(d.kept, func(k *discoveryv1.EndpointSlice) bool { return k.Name == s.Name }) && d.state != undecided {
					covered = append(covered, string(SourceOf(s)))
				}
			}
			check.Equal(t, "slices that may be changed", test.covered, covered)
			check.Equal(t, "the argument was changed", before, test.imported)
		})
	}
}

// TestServiceImportIsDeletedLast: while the cache shows a derived Service or a slice, the ServiceImport stays. So the cache of a
// withdrawn import never shows a derived Service that names no exporter, in whatever order the watches deliver the deletions.
//
// spec: E3, I2
func TestServiceImportIsDeletedLast(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mirrored []*discoveryv1.EndpointSlice
		derived  []*corev1.Service
		want     [3]int
	}{
		"all is there":      {[]*discoveryv1.EndpointSlice{mirrorOf("a")}, derivedWeb(), [3]int{1, 1, 0}},
		"the slice is gone": {nil, derivedWeb(), [3]int{0, 1, 0}},
		"the Service is":    {[]*discoveryv1.EndpointSlice{mirrorOf("a")}, nil, [3]int{1, 0, 0}},
		"both are gone":     {nil, nil, [3]int{0, 0, 1}},
	} {
		o := Observed{
			Namespace: NamespaceDenied, Sources: sources.Sources{Key: key},
			Existing: Existing{ServiceImport: importOf(held80, "a"), Services: test.derived, Mirrored: test.mirrored},
		}
		var got [3]int
		for _, change := range slices.Concat(PlanOf(o).Stages...) {
			switch change.Object.(type) {
			case *discoveryv1.EndpointSlice:
				got[0]++
			case *corev1.Service:
				got[1]++
			case *mcsv1beta1.ServiceImport:
				got[2]++
			}
		}
		check.Equal(t, name+": deleted slices, Services and ServiceImports", test.want, got)
	}
}

// TestEstablishedRendersTheSame: an import that is converted to an export renders to the same import.
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
				Observed: Observed{
					Namespace: NamespaceAllowed, Sources: sources.Sources{Key: key}, Families: []corev1.IPFamily{corev1.IPv4Protocol},
					Existing: Existing{ServiceImport: want},
				},
				missing: map[clusterset.ClusterID]sources.Missing{"a": {Export: true}},
			})
			got := render.ServiceImport(d.merged, d.site, want.Spec.IPs)
			check.Equal(t, "spec", want.Spec, got.Spec)
			if !maps.Equal(want.Labels, got.Labels) || !maps.Equal(want.Annotations, got.Annotations) {
				t.Errorf("labels %v, annotations %v; want %v, %v", got.Labels, got.Annotations, want.Labels, want.Annotations)
			}
		})
	}
}

// If the derived Service has a selector, Kubernetes creates the slices of the local pods, and no pod is in two slices. The
// selection of a missing exporter stays, too.
//
// spec: D8
func TestOwnSlicesBesideASelector(t *testing.T) {
	selection := &clusterset.Selection{Labels: map[string]string{"app": "web"}}
	own := exportOf("own", 2, http)
	other := exportOf("a", 1, http)
	other.Selection = selection
	v := view{Observed: Observed{
		Namespace: NamespaceAllowed, Families: []corev1.IPFamily{corev1.IPv4Protocol},
		Sources: sources.Sources{Key: key, Local: &own, Hub: sources.Hub{
			Exports: []clusterset.Export{other}, Slices: []clusterset.Slice{{Cluster: "a", ID: "1", AddressType: "IPv4"}},
		}},
		LocalSlices: []clusterset.Slice{{Cluster: "own", ID: "1", AddressType: "IPv4"}},
	}}
	clustersOf := func(d decision) (ids []clusterset.ClusterID) {
		for _, slice := range d.slices {
			ids = append(ids, slice.Cluster)
		}
		return ids
	}
	check.Equal(t, "slices of", []clusterset.ClusterID{"a"}, clustersOf(decide(v)))
	v.Sources.Hub.Exports[0].Selection = nil
	check.Equal(t, "slices of, without a selector", []clusterset.ClusterID{"a", "own"}, clustersOf(decide(v)))
	v.Sources.Hub = sources.Hub{}
	v.ServiceImport, v.Selection = importOf(held80, "a"), selection
	v.missing = map[clusterset.ClusterID]sources.Missing{"a": {Export: true}}
	check.Equal(t, "selection while the oldest is held", selection, decide(v).merged.Selection)
}

// TestAddressesAfterServiceDeletion: name, families and addresses of an import come from the existing objects.
//
// spec: D2, I5
func TestAddressesAfterServiceDeletion(t *testing.T) {
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
				ExistingFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			},
		},
		"the import was deleted": {
			named: []*corev1.Service{derived(long, "fd00::1")},
			want:  render.Site{DerivedName: long, IPs: []string{"fd00::1"}, ExistingFamilies: dual},
		},
		"another user made the Service an ExternalName": {
			imported: importOf(held80, "a"),
			named: []*corev1.Service{func() *corev1.Service {
				s := derived("derived-43254079", "")
				s.Spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org"}
				return s
			}()},
			want: render.Site{
				DerivedName: "derived-43254079", IPs: []string{"10.100.0.7"},
				ExistingFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			},
		},
		"it was headless": {
			named: []*corev1.Service{derived("derived-43254079", corev1.ClusterIPNone)},
			want:  render.Site{DerivedName: "derived-43254079"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.want.IPFamilies = slices.Clone(dual)
			v := view{Observed: Observed{
				Namespace: NamespaceAllowed, Families: dual, Existing: Existing{ServiceImport: test.imported, Services: test.named},
				Sources: sources.Sources{Key: key, Hub: sources.Hub{
					Exports: []clusterset.Export{exportOf("a", 1, http)}, Listed: true, LocalMember: &hubv1alpha1.Member{},
				}},
			}}
			check.Equal(t, "site", test.want, decide(v).site)
		})
	}
}

// TestSilentMemberLeavesKeptSlices: while its member is silent, a slice with a missing source serves only the ports that no other
// member serves. It keeps the other ports, and serves them again when no other member does.
//
// spec: D9
func TestSilentMemberLeavesKeptSlices(t *testing.T) {
	number := func(n int32) *int32 { return &n }
	port := func(name string, n int32) discoveryv1.EndpointPort {
		return discoveryv1.EndpointPort{Name: new(name), Port: number(n)}
	}
	full := mirrorOf("a")
	full.AddressType = discoveryv1.AddressTypeIPv4
	full.Ports = []discoveryv1.EndpointPort{port("http", 8080), port("admin", 9090)}
	other := exportOf("b", 2, http)
	v := view{
		Observed: Observed{
			Namespace: NamespaceAllowed, Families: []corev1.IPFamily{corev1.IPv4Protocol}, Policies: liveness.DefaultPolicies(),
			Existing: Existing{ServiceImport: importOf(held80, "a", "b"), Mirrored: []*discoveryv1.EndpointSlice{full}},
			Sources: sources.Sources{Key: key, Hub: sources.Hub{Exports: []clusterset.Export{other}, Slices: []clusterset.Slice{{
				Cluster: "b", ID: "1", AddressType: discoveryv1.AddressTypeIPv4, Ports: []clusterset.EndpointPort{{Name: "http"}},
				Endpoints: []clusterset.Endpoint{{Ready: clusterset.True}},
			}}}},
		},
		missing: map[clusterset.ClusterID]sources.Missing{"a": {Export: true, Slices: []string{"0"}}},
		states:  map[clusterset.ClusterID]liveness.State{"a": liveness.Silent, "b": liveness.Live},
	}
	v.ServiceImport.Spec.Ports = append(v.ServiceImport.Spec.Ports, mcsv1beta1.ServicePort{Name: "admin", Port: 90, Protocol: corev1.ProtocolTCP})
	want := func(step string, ports ...discoveryv1.EndpointPort) {
		t.Helper()
		kept := decide(v).kept
		check.Equal(t, step, ports, kept[0].Ports)
		v.Mirrored = kept
	}
	want("b serves http", port("admin", 9090))
	want("and still does", port("admin", 9090))
	v.Sources.Hub.Slices[0].Endpoints[0].Ready = clusterset.False
	want("b is not ready", port("admin", 9090), port("http", 8080))
	if len(v.Mirrored[0].Annotations) > 0 {
		t.Errorf("annotations are left: %v", v.Mirrored[0].Annotations)
	}
	v.Sources.Hub.Slices[0].Endpoints[0].Ready, v.states["a"] = clusterset.True, liveness.Live
	want("a is alive", port("admin", 9090), port("http", 8080))
	if len(full.Ports) != 2 || len(full.Annotations) > 0 {
		t.Errorf("the argument was changed: %v", full)
	}
}
