// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// An object may be written fewWrites times a minute, and perChange times more for each change of the service in the epoch: a change
// in one cluster becomes a write of the record, of what is imported, and of the conditions of each exporter.
const (
	fewWrites = 6
	perChange = 4
)

// writes counts, within an epoch, how often objects were written and how often their services were changed.
type writes struct {
	// changes are those of a service, in any cluster; under the empty key those of all services.
	changes map[Key]int
	// times are those at which an object was written.
	times  map[string][]time.Time
	places map[string]place
}

func newWrites() writes {
	return writes{map[Key]int{}, map[string][]time.Time{}, map[string]place{}}
}

func (w *writes) note(e Event, p place) {
	name := nameOf(e.Cluster, e.Object)
	w.times[name], w.places[name] = append(w.times[name], e.At), p
}

// findings returns the objects that were written more often than their services' changes explain, sorted. What was touched by hand
// is written by another user.
func (w *writes) findings(byHand func(place) bool) []Finding {
	var found []Finding
	for _, name := range slices.Sorted(maps.Keys(w.times)) {
		p := w.places[name]
		changes := w.changes[p.key] + w.changes[Key{Namespace: p.key.Namespace}] + w.changes[Key{}]
		if most := mostInAMinute(w.times[name]); most > fewWrites+perChange*changes && !byHand(p) {
			found = append(found, Finding{
				FewWrites, p.cluster, p.key,
				fmt.Sprintf("%s was written %d times within a minute, and the service was changed %d times", name, most, changes),
			})
		}
	}
	return found
}

// mostInAMinute returns how many of the times, which are in order, lie within one minute.
func mostInAMinute(times []time.Time) int {
	most, first := 0, 0
	for i, last := range times {
		for last.Sub(times[first]) > time.Minute {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// isWritten reports whether Tombolo writes an object, or its status.
func isWritten(object metav1.Object) bool {
	_, isExport := object.(*mcsv1beta1.ServiceExport)
	return isExport || isOurs(object) || isRecord(object)
}

// isRecord reports whether an object is on the hub.
func isRecord(object metav1.Object) bool {
	switch object.(type) {
	case *hubv1alpha1.PublishedService, *hubv1alpha1.PublishedEndpoints:
		return true
	}
	return false
}

// nameOf identifies an object in all clusters.
func nameOf(cluster string, object metav1.Object) string {
	return fmt.Sprintf("%s %T %s/%s", cluster, object, object.GetNamespace(), object.GetName())
}

// What is what a user does to the clusters.
type What string

// What can be done.
const (
	// Source: the Service, its slices or its ServiceExport are changed, or the member's records of it on the hub.
	Source What = "source"
	// Hand: the import is touched by hand: ServiceImport, derived Service or mirrored slices.
	Hand What = "hand"
	// HandImport: the ServiceImport is deleted by hand, and nothing else of the import; with Hand, so is the derived Service, and
	// its addresses are lost.
	HandImport What = "hand on the ServiceImport"
	// Silence: the agent stops, and is down for so long that it shows. Key is empty.
	Silence What = "silence"
	// Loss: the hub loses records of the member. Key is empty.
	Loss What = "loss"
)

// Act is something that is done to a cluster. It is noted before it is done, so that its effects come after it.
type Act struct {
	Cluster string
	Key     Key
	What    What
}

// Event is what a watch of a cluster has shown.
type Event struct {
	Cluster string
	// Object is a *Service, *EndpointSlice, *ServiceImport or *ServiceExport; on the hub a *PublishedService or *PublishedEndpoints.
	Object metav1.Object
	// At is when it was shown.
	At time.Time
	// Gone says that the object has been deleted; it is as it was last.
	Gone bool
}

// Behind returns the objects of a world that no event has shown as they are, and those that events have shown and that
// are no more. While there are any, an epoch cannot end.
func (h *History) Behind(w World) []string {
	var found []string
	present := map[string]bool{}
	for _, c := range w.Clusters {
		for _, object := range c.objects() {
			name := nameOf(c.ID, object)
			present[name] = true
			if seen := h.objects[name]; seen == nil || seen.GetResourceVersion() != object.GetResourceVersion() {
				found = append(found, name)
			}
		}
	}
	for name, object := range h.objects {
		if !present[name] && !isRecord(object) {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// age is what an export's age on the hub depends on.
type age struct{ export, record types.UID }

// beginAges notes the records of all exports, and returns those exports that had another record before.
func (h *History) beginAges(w World) []Finding {
	var found []Finding
	before := h.ages
	h.ages = map[place]age{}
	for _, c := range w.Clusters {
		for _, e := range c.Exports {
			p := place{c.ID, keyOf(&e)}
			record := w.record(c.ID, p.key)
			if record == nil {
				continue
			}
			h.ages[p] = age{e.UID, record.UID}
			if was, ok := before[p]; ok && was.export == e.UID && was.record != record.UID && !h.acts[Act{c.ID, Key{}, Loss}] {
				found = append(found, Finding{AgeKept, c.ID, p.key, "the export has another record on the hub, and was never withdrawn"})
			}
		}
	}
	return found
}
