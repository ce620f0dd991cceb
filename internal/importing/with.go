// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Outcome is what became of a plan.
type Outcome struct {
	// Numbers are those that the allocators have reserved; nil if none were requested.
	Numbers *Numbers
	// Stored are the changes that API servers have stored, and Refused those that were refused.
	Stored  []Stored
	Refused []Refused
	// AddressesLost is set if the addresses of the derived Service cannot be granted.
	AddressesLost bool
}

// Stored is a change with the object that the API server has stored; nil for a deletion.
type Stored struct {
	Change plan.Change[plan.Object]
	Object plan.Object
}

// IsKept reports whether the stored object has what the change sets.
func (s Stored) IsKept() bool { return s.Object == nil || plan.IsKept(s.Change, s.Object) }

// IsAsPlanned reports whether every change of a stage was stored, and is kept.
func (o Outcome) IsAsPlanned() bool {
	return len(o.Refused) == 0 && !slices.ContainsFunc(o.Stored, func(s Stored) bool { return !s.IsKept() })
}

// With returns the observation after the outcome of a plan. It does not change the observation.
func (o Observed) With(p Plan, outcome Outcome) Observed {
	if outcome.Numbers != nil {
		o.Numbers = *outcome.Numbers
	}
	o.AddressesLost = o.AddressesLost || outcome.AddressesLost
	o.Refused = slices.Concat(o.Refused, outcome.Refused)
	for _, refused := range outcome.Refused {
		if refused.Change.Object.GetName() == p.decision.site.DerivedName && refused.Kind == Invalid {
			o.Unsupported = withSettings(o.Unsupported, render.RefusedSettings(p.decision.merged, p.decision.site, refused.Fields))
		}
	}
	o.Existing, o.Added = o.with(outcome.Stored), o.addedBy(outcome.Stored)
	for _, stored := range outcome.Stored {
		if stored.IsKept() {
			continue
		}
		if service, ok := stored.Object.(*corev1.Service); ok && service.Name == p.decision.site.DerivedName {
			if dropped := render.DroppedSettings(p.decision.merged, p.decision.site, service); len(dropped) > 0 {
				o.Unsupported = withSettings(o.Unsupported, dropped)
				continue
			}
		}
		o.Refused = append(o.Refused, Refused{
			Change: next(stored), Kind: Changed, Err: plan.ErrChanged,
			Reason: "the API server has stored other values than the agent has sent, because a policy or a webhook of this cluster changes them",
		})
	}
	return o
}

// next returns the change that would be planned again after an object was stored with other values.
func next(stored Stored) plan.Change[plan.Object] {
	change := stored.Change
	if change.Verb == plan.Create {
		change.Verb = plan.Update
	}
	return change
}

// addedBy returns what admission policies have added to existing objects after changes were stored.
func (o Observed) addedBy(all []Stored) map[Name]plan.Metadata {
	result := map[Name]plan.Metadata{}
	maps.Copy(result, o.Added)
	for _, stored := range all {
		if stored.Object == nil {
			continue
		}
		delete(result, NameOf(stored.Object))
		if added := plan.AddedTo(plan.MetadataOf(stored.Change.Object), plan.MetadataOf(stored.Object)); !added.IsEmpty() {
			result[NameOf(stored.Object)] = added
		}
	}
	return result
}

// with returns the existing objects after changes were stored.
func (e Existing) with(all []Stored) Existing {
	var services, virtualServices []change[*corev1.Service]
	var mirrored, virtualSlices []change[*discoveryv1.EndpointSlice]
	for _, stored := range all {
		_, isVirtual := render.VirtualIPOf(stored.Change.Object)
		switch object := stored.Change.Object.(type) {
		case *mcsv1beta1.ServiceImport:
			e.ServiceImport = after(stored, object)
		case *corev1.Service:
			if isVirtual {
				virtualServices = append(virtualServices, change[*corev1.Service]{object.Name, after(stored, object)})
			} else {
				services = append(services, change[*corev1.Service]{object.Name, after(stored, object)})
			}
		case *discoveryv1.EndpointSlice:
			if isVirtual {
				virtualSlices = append(virtualSlices, change[*discoveryv1.EndpointSlice]{object.Name, after(stored, object)})
			} else {
				mirrored = append(mirrored, change[*discoveryv1.EndpointSlice]{object.Name, after(stored, object)})
			}
		}
	}
	e.Services, e.VirtualServices = replace(e.Services, services), replace(e.VirtualServices, virtualServices)
	e.Mirrored, e.VirtualSlices = replace(e.Mirrored, mirrored), replace(e.VirtualSlices, virtualSlices)
	return e
}

// change is what exists under a name after a change; nil if nothing does.
type change[T any] struct {
	name   string
	object T
}

// after returns the object that exists after a change of it: the stored one. After a deletion there is none, unless the object waits for
// finalizers.
func after[T interface {
	plan.Object
	comparable
	DeepCopy() T
}](stored Stored, changed T) T {
	var none T
	if stored.Change.Verb != plan.Delete {
		return stored.Object.(T)
	}
	if len(changed.GetFinalizers()) == 0 {
		return none
	}
	waiting := changed.DeepCopy()
	waiting.SetDeletionTimestamp(&metav1.Time{})
	return waiting
}

// replace returns a list after changes of objects in it. The last change of a name counts.
func replace[T interface {
	plan.Object
	comparable
}](list []T, changes []change[T]) []T {
	if len(changes) == 0 {
		return list
	}
	var none T
	last := map[string]T{}
	for _, c := range changes {
		last[c.name] = c.object
	}
	result := slices.DeleteFunc(slices.Clone(list), func(o T) bool {
		_, isChanged := last[o.GetName()]
		return isChanged
	})
	for _, name := range slices.Sorted(maps.Keys(last)) {
		if last[name] != none {
			result = append(result, last[name])
		}
	}
	return result
}

// withSettings returns a copy of a set of settings with some more.
func withSettings(set map[clusterset.Setting]bool, more []clusterset.Setting) map[clusterset.Setting]bool {
	if len(more) == 0 {
		return set
	}
	result := map[clusterset.Setting]bool{}
	maps.Copy(result, set)
	for _, setting := range more {
		result[setting] = true
	}
	return result
}
