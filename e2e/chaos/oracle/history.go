// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// place is a service in a cluster.
type place struct {
	cluster string
	key     Key
}

// origin is a service in an importing cluster, and one of its exporters.
type origin struct {
	place

	source string
}

// History watches what happens between two times at which nothing moves, an epoch. Within an epoch it knows what was
// exported at its beginning, and what was done since.
type History struct {
	acts map[Act]bool
	// exporters are those of each service at the beginning of the epoch.
	exporters map[Key][]string
	exported  map[place]bool
	// offered are the addresses that each cluster's own slices had at any time of the epoch.
	offered map[place]map[string]bool
	// objects are all objects as they were last seen, by cluster, kind, namespace and name.
	objects map[string]metav1.Object
	// derived are the derived Services as they were last seen while their service was exported, over all epochs.
	derived map[place]*corev1.Service
	// appeared are the endpoints that came up; whether they should have is known at the end of the epoch.
	appeared []Finding
	sources  []place
	found    []Finding
	writes   writes
	// silent are the members that were silent at the beginning of the epoch.
	silent map[string]bool
	// ages are the records that exports had at the beginning of the epoch.
	ages map[place]age
}

// NewHistory returns a History of which nothing has happened.
func NewHistory() *History {
	h := &History{objects: map[string]metav1.Object{}, derived: map[place]*corev1.Service{}, writes: newWrites()}
	h.Begin(World{})
	return h
}

// Begin ends the epoch and begins another with the world as it is, and returns what was wrong in the one that ends. All
// events of it must have been seen.
func (h *History) Begin(w World) []Finding {
	found := h.found
	for i, f := range h.appeared {
		if p := h.sources[i]; !h.exported[p] || !h.offered[p][f.Text] {
			f.Text = fmt.Sprintf("endpoint %s of %s appears, and was not exported", f.Text, p.cluster)
			found = append(found, f)
		}
	}
	found = append(found, h.writes.findings(func(p place) bool { return h.done(p.cluster, p.key, Hand) })...)
	found = append(found, h.beginAges(w)...)
	h.acts, h.found, h.appeared, h.sources = map[Act]bool{}, nil, nil, nil
	h.writes, h.silent = newWrites(), map[string]bool{}
	for _, c := range w.Clusters {
		h.silent[c.ID] = c.Silent
	}
	h.exporters, h.exported, h.offered = map[Key][]string{}, map[place]bool{}, map[place]map[string]bool{}
	for _, key := range w.keys() {
		for _, e := range w.exports(key) {
			h.exporters[key] = append(h.exporters[key], e.cluster)
		}
		for _, c := range w.Clusters {
			h.exported[place{c.ID, key}] = c.export(key) != nil
			for _, s := range c.sources(key) {
				h.offer(place{c.ID, key}, &s)
			}
		}
	}
	return found
}

// Do records an act before it is done.
func (h *History) Do(act Act) {
	h.acts[act] = true
	h.writes.changes[act.Key]++
}

// MarkStable records that a service is exported by a cluster and imported everywhere, and that nothing more is done to it there: it is
// judged from now on like those that were exported when the epoch began.
func (h *History) MarkStable(cluster string, key Key) {
	delete(h.acts, Act{cluster, key, Source})
	if !slices.Contains(h.exporters[key], cluster) {
		h.exporters[key] = append(h.exporters[key], cluster)
	}
}

// Saw records what a watch has shown, in the order of the watch.
func (h *History) Saw(e Event) {
	name, p := nameOf(e.Cluster, e.Object), place{e.Cluster, keyOf(e.Object)}
	before := h.objects[name]
	if e.Gone {
		delete(h.objects, name)
	} else {
		h.objects[name] = e.Object
	}
	if isWritten(e.Object) && !e.Gone && (before == nil || before.GetResourceVersion() != e.Object.GetResourceVersion()) {
		h.writes.note(e, p)
	}
	if isRecord(e.Object) {
		return
	}
	if !isOurs(e.Object) || before != nil && !isOurs(before) {
		h.sawForeign(e, before)
		return
	}
	switch o := e.Object.(type) {
	case *mcsv1beta1.ServiceImport:
		h.sawImport(e, p, before)
	case *corev1.Service:
		if before != nil && before.GetUID() != o.UID { // a watch that was broken has missed that it went
			h.lostDerived(p)
		}
		h.sawDerived(e, p, o)
	case *discoveryv1.EndpointSlice:
		h.sawMirrored(e, p, before)
	}
}

// Offers records that a cluster has an export or a slice, or is about to: a watch that is broken may never show what was there for
// a moment. Other objects offer nothing.
func (h *History) Offers(cluster string, object metav1.Object) {
	p := place{cluster, keyOf(object)}
	switch o := object.(type) {
	case *mcsv1beta1.ServiceExport:
		h.exported[p] = true
	case *discoveryv1.EndpointSlice:
		if o.Labels[labelSliceService] != "" {
			h.offer(p, o)
		}
	}
}

// sawForeign notes what a cluster offers, and finds what a user changed who was not us.
func (h *History) sawForeign(e Event, before metav1.Object) {
	p := place{e.Cluster, keyOf(e.Object)}
	if !e.Gone {
		h.Offers(e.Cluster, e.Object)
	}
	if before == nil || e.Gone || !reflect.DeepEqual(content(before), content(e.Object)) {
		h.writes.changes[p.key]++
	}
	if before == nil || h.done(p.cluster, p.key, Source) || h.done(p.cluster, p.key, Hand) {
		return
	}
	if e.Gone {
		h.reportf(Unmanaged, p, "%s was deleted without an act", name(e.Object))
	} else if was, is := content(before), content(e.Object); !reflect.DeepEqual(was, is) {
		h.reportf(Unmanaged, p, "%s was changed without an act: %v, was %v", name(e.Object), is, was)
	}
}

func (h *History) sawImport(e Event, p place, before metav1.Object) {
	replaced := before != nil && before.GetUID() != e.Object.GetUID()
	if !e.Gone && !replaced || h.done(p.cluster, p.key, Hand) || h.acts[Act{p.cluster, p.key, HandImport}] {
		return
	}
	for _, exporter := range h.exporters[p.key] {
		if !h.done(exporter, p.key, Source) {
			h.reportf(ImportKept, p, "the ServiceImport is gone, and %s exports the service all the time", exporter)
			return
		}
	}
}

func (h *History) sawDerived(e Event, p place, s *corev1.Service) {
	if e.Gone {
		h.lostDerived(p)
		return
	}
	last := h.derived[p]
	h.derived[p] = s
	if last == nil {
		return
	}
	if last.Name != s.Name {
		h.reportf(Name, p, "the derived Service is called %s, and was called %s", s.Name, last.Name)
	}
	for i := range min(len(last.Spec.ClusterIPs), len(s.Spec.ClusterIPs)) {
		headless := last.Spec.ClusterIP == corev1.ClusterIPNone || s.Spec.ClusterIP == corev1.ClusterIPNone
		if headless || last.Spec.IPFamilies[i] != s.Spec.IPFamilies[i] {
			return
		}
		if last.Spec.ClusterIPs[i] != s.Spec.ClusterIPs[i] {
			h.reportf(Address, p, "the derived Service has %s, and had %s", s.Spec.ClusterIPs[i], last.Spec.ClusterIPs[i])
		}
	}
}

// lostDerived judges that a derived Service is gone.
func (h *History) lostDerived(p place) {
	switch {
	case h.done(p.cluster, p.key, Hand) && !h.acts[Act{p.cluster, p.key, HandImport}]:
	case !h.touched(p.key):
		h.reportf(ImportKept, p, "the derived Service is gone, and nothing was done to the service")
	case h.allTouched(p.key):
		delete(h.derived, p) // another life begins
	}
}

// sawMirrored compares the addresses that a cluster has of one exporter before and after the event.
func (h *History) sawMirrored(e Event, p place, before metav1.Object) {
	slice, _ := e.Object.(*discoveryv1.EndpointSlice)
	source := slice.Labels[labelSourceCluster]
	was, now := map[string]bool{}, map[string]bool{}
	for _, s := range h.slicesOf(origin{p, source}) {
		maps.Copy(now, addresses(s))
	}
	if old, ok := before.(*discoveryv1.EndpointSlice); ok {
		was = addresses(old)
	}
	mayGo := h.touched(p.key) || h.done(p.cluster, p.key, Hand) || h.acts[Act{source, Key{}, Silence}]
	for address := range was {
		if !now[address] && !mayGo {
			h.reportf(EndpointKept, p, "endpoint %s of %s is gone, and nothing was done to the service", address, source)
		}
	}
	if e.Gone || h.done(p.cluster, p.key, Hand) {
		return
	}
	h.checkWithheld(p, source, slice, before)
	for address := range addresses(slice) {
		if !was[address] {
			h.appeared = append(h.appeared, Finding{Unexported, p.cluster, p.key, address})
			h.sources = append(h.sources, place{source, p.key})
		}
	}
}

// slicesOf returns the slices that a cluster has of an exporter.
func (h *History) slicesOf(o origin) []*discoveryv1.EndpointSlice {
	var found []*discoveryv1.EndpointSlice
	for name, object := range h.objects {
		s, ok := object.(*discoveryv1.EndpointSlice)
		if ok && isMirrored(*s) && keyOf(s) == o.key && s.Labels[labelSourceCluster] == o.source && name == nameOf(o.cluster, s) {
			found = append(found, s)
		}
	}
	return found
}

// touched reports whether anything was done to a service, in any cluster that exported it or does.
func (h *History) touched(key Key) bool {
	for act := range h.acts {
		if act.What == Source && act.Key == key {
			return true
		}
	}
	return false
}

// allTouched reports whether something was done to a service in each cluster that exported it.
func (h *History) allTouched(key Key) bool {
	return !slices.ContainsFunc(h.exporters[key], func(id string) bool { return !h.done(id, key, Source) })
}

// done reports whether something was done to a service in a cluster.
func (h *History) done(cluster string, key Key, what What) bool {
	return h.acts[Act{cluster, key, what}]
}

func (h *History) offer(p place, s *discoveryv1.EndpointSlice) {
	if h.offered[p] == nil {
		h.offered[p] = map[string]bool{}
	}
	maps.Copy(h.offered[p], addresses(s))
}

func (h *History) reportf(rule Rule, p place, format string, args ...any) {
	h.found = append(h.found, Finding{rule, p.cluster, p.key, fmt.Sprintf(format, args...)})
}
