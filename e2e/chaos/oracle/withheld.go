// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"maps"
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// checkWithheld finds ports at which an endpoint of a silent member has come back.
func (h *History) checkWithheld(p place, source string, slice *discoveryv1.EndpointSlice, before metav1.Object) {
	if !h.silent[source] || h.touched(p.key) || h.anySilence() {
		return
	}
	was := map[string]bool{}
	if old, ok := before.(*discoveryv1.EndpointSlice); ok {
		was = served(old)
	}
	for _, text := range slices.Sorted(maps.Keys(served(slice))) {
		if !was[text] && !h.servedElsewhere(origin{p, source}, slice, text) {
			h.reportf(Withheld, p, "endpoint %s of %s is back, and %s is silent", text, source, source)
		}
	}
}

// servedElsewhere reports whether a cluster has an endpoint at a port in another slice of the same exporter.
func (h *History) servedElsewhere(o origin, besides *discoveryv1.EndpointSlice, text string) bool {
	for name, object := range h.objects {
		s, ok := object.(*discoveryv1.EndpointSlice)
		if ok && s.Name != besides.Name && isMirrored(*s) && keyOf(s) == o.key && s.Labels[labelSourceCluster] == o.source &&
			name == nameOf(o.cluster, s) && served(s)[text] {
			return true
		}
	}
	return false
}

// anySilence reports whether any agent has stopped or come back.
func (h *History) anySilence() bool {
	for act := range h.acts {
		if act.What == Silence {
			return true
		}
	}
	return false
}
