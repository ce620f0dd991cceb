// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/plan"
)

// apiServer stores what a plan changes.
type apiServer struct {
	// refuse returns why a change is refused; nil if it is not.
	refuse func(plan.Change[plan.Object]) *Refused
	// change is what a policy or a webhook does with each object before it is stored.
	change    func(plan.Object)
	addresses int
	writes    []plan.Change[plan.Object]
}

// isEmpty reports whether nothing is to be done.
func (p Plan) isEmpty() bool { return p.Reserve == nil && len(p.Stages) == 0 }

// settle does what the controller does until nothing differs, and returns the last plan.
func (s *apiServer) settle(t check.T, o *Observed) Plan {
	t.Helper()
	for range Rounds {
		p := PlanOf(*o)
		outcome := s.apply(*o, p)
		*o = o.With(p, outcome)
		if outcome.IsAsPlanned() && p.IsLast {
			return p
		}
	}
	t.Fatal("not settled; writes:", s.writes)
	return Plan{}
}

// apply reserves what is requested, and applies the stages as long as all changes are stored and kept.
func (s *apiServer) apply(o Observed, p Plan) Outcome {
	if p.Reserve != nil {
		return Outcome{Numbers: s.reserve(o, *p.Reserve)}
	}
	result := Outcome{}
	for _, stage := range p.Stages {
		for _, change := range stage {
			s.writes = append(s.writes, change)
			if s.refuse != nil {
				if refused := s.refuse(change); refused != nil {
					refused.Change = change
					result.Refused = append(result.Refused, *refused)
					continue
				}
			}
			result.Stored = append(result.Stored, Stored{change, s.store(change)})
		}
		if !result.IsAsPlanned() {
			break
		}
	}
	return result
}

// reserve grants everything.
func (*apiServer) reserve(o Observed, wanted Reservation) *Numbers {
	numbers := o.Numbers
	if wanted.VirtualIPs != nil {
		numbers.VirtualIPs, numbers.VirtualIPsFor = slices.Concat(wanted.VirtualIPs.Used, wanted.VirtualIPs.Unused), wanted.VirtualIPs
	}
	return &numbers
}

// store returns the stored object; nil after a deletion.
func (s *apiServer) store(change plan.Change[plan.Object]) plan.Object {
	if change.Verb == plan.Delete {
		return nil
	}
	stored := change.Object.DeepCopyObject().(plan.Object)
	if s.change != nil {
		s.change(stored)
	}
	if change.Verb == plan.UpdateStatus { // labels and spec are those of before
		status := change.Object.(*mcsv1beta1.ServiceImport).Status
		before := change.Existing.(*mcsv1beta1.ServiceImport).DeepCopy()
		before.Status = *status.DeepCopy()
		for i := range before.Status.Conditions { // in seconds
			before.Status.Conditions[i].LastTransitionTime = before.Status.Conditions[i].LastTransitionTime.Rfc3339Copy()
		}
		return before
	}
	if service, ok := stored.(*corev1.Service); ok && service.Spec.ClusterIP == "" {
		s.addresses++
		service.Spec.ClusterIP = fmt.Sprintf("10.96.0.%d", s.addresses)
		service.Spec.ClusterIPs = []string{service.Spec.ClusterIP}
	}
	return stored
}
