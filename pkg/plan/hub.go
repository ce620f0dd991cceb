// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/api/equality"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// PublishedService returns the changes that make a member's record of a service on the hub the desired one; either
// may be nil.
func PublishedService(desired, observed *hubv1alpha1.PublishedService) []Change[*hubv1alpha1.PublishedService] {
	overlay := func(o, d *hubv1alpha1.PublishedService) { o.Spec = d.Spec }
	return compare(present(desired), present(observed), overlay, equal, never)
}

// PublishedEndpoints returns the changes that make a member's records of a service's endpoints on the hub the desired
// ones. A new trigger time alone is no change: it only measures the others.
func PublishedEndpoints(desired, observed []*hubv1alpha1.PublishedEndpoints) []Change[*hubv1alpha1.PublishedEndpoints] {
	overlay := func(o, d *hubv1alpha1.PublishedEndpoints) { o.Spec = d.Spec }
	same := func(o, overlaid *hubv1alpha1.PublishedEndpoints) bool {
		spec := overlaid.Spec
		spec.TriggerTime = o.Spec.TriggerTime
		return equality.Semantic.DeepEqual(o.Spec, spec)
	}
	return compare(desired, observed, overlay, same, never)
}

// Heartbeat returns the write that makes a member's Heartbeat on the hub the desired one; observed may be nil.
func Heartbeat(desired, observed *hubv1alpha1.Heartbeat) []Change[*hubv1alpha1.Heartbeat] {
	overlay := func(o, d *hubv1alpha1.Heartbeat) { o.Spec = d.Spec }
	return compare(present(desired), present(observed), overlay, equal, never)
}
