// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	return isOurs(object) || isExport(object) || isRecord(object)
}

// isRecord reports whether an object lies on the hub.
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
