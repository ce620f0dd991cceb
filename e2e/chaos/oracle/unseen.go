// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Behind returns the objects of a world that no event has shown as they are, and those that events have shown and that
// are no more. While there are any, an epoch cannot end.
func (h *History) Behind(w World) []string {
	var found []string
	present := map[string]bool{}
	note := func(cluster string, object metav1.Object) {
		name := nameOf(cluster, object)
		present[name] = true
		if seen := h.objects[name]; seen == nil || seen.GetResourceVersion() != object.GetResourceVersion() {
			found = append(found, name)
		}
	}
	for _, c := range w.Clusters {
		for i := range c.Services {
			note(c.ID, &c.Services[i])
		}
		for i := range c.Slices {
			note(c.ID, &c.Slices[i])
		}
		for i := range c.Imports {
			note(c.ID, &c.Imports[i])
		}
		for i := range c.Exports {
			note(c.ID, &c.Exports[i])
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
