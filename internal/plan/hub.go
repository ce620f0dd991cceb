// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/api/equality"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// PublishedService returns the changes from the existing to the desired record of a service; either may be nil.
func PublishedService(desired, existing *hubv1alpha1.PublishedService) []Change[*hubv1alpha1.PublishedService] {
	overlay := func(o, d *hubv1alpha1.PublishedService) { o.Spec = d.Spec }
	return compare(listOf(desired), listOf(existing), overlay, equal, neverReplace)
}

// PublishedEndpoints returns the changes from the existing to the desired records of a service's endpoints. A different trigger time
// alone is no change, because it is used for metrics only.
func PublishedEndpoints(desired, existing []*hubv1alpha1.PublishedEndpoints) []Change[*hubv1alpha1.PublishedEndpoints] {
	overlay := func(o, d *hubv1alpha1.PublishedEndpoints) { o.Spec = d.Spec }
	same := func(o, overlaid *hubv1alpha1.PublishedEndpoints) bool {
		spec := overlaid.Spec
		spec.TriggerTime = o.Spec.TriggerTime
		return equality.Semantic.DeepEqual(o.Spec, spec)
	}
	return compare(desired, existing, overlay, same, neverReplace)
}

// Heartbeat returns the change from the existing to the desired Heartbeat; existing may be nil.
func Heartbeat(desired, existing *hubv1alpha1.Heartbeat) []Change[*hubv1alpha1.Heartbeat] {
	overlay := func(o, d *hubv1alpha1.Heartbeat) { o.Spec = d.Spec }
	return compare(listOf(desired), listOf(existing), overlay, equal, neverReplace)
}

// PublishedGateway returns the changes from the existing to the desired record of this member's gateways; either may be nil.
func PublishedGateway(desired, existing *hubv1alpha1.PublishedGateway) []Change[*hubv1alpha1.PublishedGateway] {
	overlay := func(o, d *hubv1alpha1.PublishedGateway) { o.Spec = d.Spec }
	return compare(listOf(desired), listOf(existing), overlay, equal, neverReplace)
}
