// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"iter"
	"slices"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// recordTable has the records of all services, by namespace and name. No service in it is without records.
type recordTable map[string]map[string]*records

// records are the records of one service. Both lists are sorted by cluster and name. A cluster has at most one PublishedService.
type records struct {
	services  []entry[*hubv1alpha1.PublishedService]
	endpoints []entry[*hubv1alpha1.PublishedEndpoints]
}

// entry is a record of a cluster.
type entry[R client.Object] struct {
	cluster clusterset.ClusterID
	record  R
}

// of returns the records of a service, to be read only.
func (t recordTable) of(key clusterset.ServiceKey) records {
	if r := t[key.Namespace][key.Name]; r != nil {
		return *r
	}
	return records{}
}

// edit changes the records of a service.
func (t recordTable) edit(key clusterset.ServiceKey, change func(*records)) {
	r := t[key.Namespace][key.Name]
	if r == nil {
		r = &records{}
	}
	change(r)
	if len(r.services)+len(r.endpoints) > 0 {
		if t[key.Namespace] == nil {
			t[key.Namespace] = map[string]*records{}
		}
		t[key.Namespace][key.Name] = r
		return
	}
	delete(t[key.Namespace], key.Name)
	if len(t[key.Namespace]) == 0 {
		delete(t, key.Namespace)
	}
}

// all returns the records of every service. It may be edited meanwhile.
func (t recordTable) all() iter.Seq2[clusterset.ServiceKey, records] {
	return func(yield func(clusterset.ServiceKey, records) bool) {
		for namespace, services := range t {
			for name, r := range services {
				if !yield(clusterset.ServiceKey{Namespace: namespace, Name: name}, *r) {
					return
				}
			}
		}
	}
}

// service returns the PublishedService of a cluster; nil if there is none.
func (r records) service(id clusterset.ClusterID) *hubv1alpha1.PublishedService {
	if i, found := slices.BinarySearchFunc(r.services, id, func(e entry[*hubv1alpha1.PublishedService], id clusterset.ClusterID) int {
		return cmp.Compare(e.cluster, id)
	}); found {
		return r.services[i].record
	}
	return nil
}

// endpointsOf returns the PublishedEndpoints of a cluster, sorted by name.
func (r records) endpointsOf(id clusterset.ClusterID) []*hubv1alpha1.PublishedEndpoints {
	var result []*hubv1alpha1.PublishedEndpoints
	for i, _ := find(r.endpoints, id, ""); i < len(r.endpoints) && r.endpoints[i].cluster == id; i++ {
		result = append(result, r.endpoints[i].record)
	}
	return result
}

// find returns the index at which a record is in a list or belongs, and whether it is there.
func find[R client.Object](all []entry[R], id clusterset.ClusterID, name string) (int, bool) {
	return slices.BinarySearchFunc(all, name, func(e entry[R], name string) int {
		return cmp.Or(cmp.Compare(e.cluster, id), cmp.Compare(e.record.GetName(), name))
	})
}

// with returns a list with a record, and whether it has replaced one.
func with[R client.Object](all []entry[R], id clusterset.ClusterID, r R) ([]entry[R], bool) {
	i, found := find(all, id, r.GetName())
	if found {
		all[i].record = r
		return all, true
	}
	return slices.Insert(all, i, entry[R]{id, r}), false
}

// without returns a list without a record.
func without[R client.Object](all []entry[R], id clusterset.ClusterID, name string) []entry[R] {
	if i, found := find(all, id, name); found {
		return slices.Delete(all, i, i+1)
	}
	return all
}

// compactService removes from a record what the store does not need, and shares strings that many records have. Others may read the lists of the
// record, so it changes copies of them.
func compactService(o *hubv1alpha1.PublishedService, key clusterset.ServiceKey) {
	compactMetadata(&o.TypeMeta, &o.ObjectMeta)
	spec := &o.Spec
	spec.Namespace, spec.Service = same(spec.Namespace, key.Namespace), same(spec.Service, key.Name)
	spec.Type, spec.SessionAffinity, spec.Ports, spec.IPFamilies = share(spec.Type), share(spec.SessionAffinity), slices.Clone(spec.Ports), slices.Clone(spec.IPFamilies)
	for i := range spec.Ports {
		p := &spec.Ports[i]
		p.Name, p.Protocol, p.AppProtocol = share(p.Name), share(p.Protocol), share(p.AppProtocol)
	}
	for i := range spec.IPFamilies {
		spec.IPFamilies[i] = share(spec.IPFamilies[i])
	}
}

// compactEndpoints is compactService for a slice. The copies have no spare capacity: decoding leaves some in the lists of addresses, which are
// most of the store.
func compactEndpoints(o *hubv1alpha1.PublishedEndpoints, key clusterset.ServiceKey) {
	compactMetadata(&o.TypeMeta, &o.ObjectMeta)
	spec := &o.Spec
	spec.Namespace, spec.Service = same(spec.Namespace, key.Namespace), same(spec.Service, key.Name)
	spec.AddressType, spec.Ports = share(spec.AddressType), slices.Clone(spec.Ports)
	for i := range spec.Ports {
		p := &spec.Ports[i]
		p.Name, p.Protocol, p.AppProtocol = share(p.Name), share(p.Protocol), share(p.AppProtocol)
	}
	groups := &spec.Groups
	if spec.InNetwork != nil {
		inNetwork := *spec.InNetwork
		spec.InNetwork, groups = &inNetwork, &inNetwork.Groups
	}
	*groups = slices.Clone(*groups)
	for i := range *groups {
		g := &(*groups)[i]
		g.Zone, g.Addresses, g.Hostnames = share(g.Zone), slices.Clone(g.Addresses), slices.Clone(g.Hostnames)
	}
}

func compactMetadata(kind *metav1.TypeMeta, o *metav1.ObjectMeta) {
	*kind = metav1.TypeMeta{}
	o.Namespace = share(o.Namespace)
}

// share returns an equal string that all callers share.
func share[S ~string](s S) S { return unique.Make(s).Value() }

// same returns the second string if both are equal, so that the first can be collected.
func same[S ~string](s S, known string) S {
	if string(s) == known {
		return S(known)
	}
	return s
}
