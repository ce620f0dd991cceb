// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/preference"
	"github.com/tombolo-mcs/tombolo/internal/render"
)

// Rounds is the largest number of plans that are made for one import before it is gathered again.
const Rounds = 10

// Plan is what is to be done for one import, and what is reported. It is a value that can be printed.
type Plan struct {
	// Reserve are the numbers to reserve first; nil if all are reserved.
	Reserve *Reservation
	// Retain are the addresses to retain before the stages, because the import is deleted.
	Retain []string
	// Stages are the changes. A stage is applied after all changes of the stages before it have ended as planned.
	Stages []Stage
	// IsLast is set if nothing differs any more after the stages.
	IsLast bool
	// Refused are the changes that are not tried, because they were refused.
	Refused []Refused
	// Events are sent after the stages.
	Events []Event
	// After is the time after which the import is planned again without an event; 0 if there is none. No event reports the end of a
	// quarantine, that a gateway does not listen in time, nor that a preferred source has been available for long enough.
	After time.Duration
	// AwaitsPorts is set if a slice waits until gateways listen on its ports.
	AwaitsPorts bool
	// Waiting are the levels of the import's policy that may serve again after a time.
	Waiting []preference.Return
	// IsImported is set if a cluster exports the service, and IsObstructed if an unmanaged ServiceImport has its name.
	IsImported, IsObstructed bool

	decision decision
}

// Stage are changes that do not need each other.
type Stage []plan.Change[plan.Object]

// Reservation are the numbers that an import needs: virtual IPs, or if VirtualIPs is nil, the listening ports of owners. The other numbers of
// that type are released.
type Reservation struct {
	VirtualIPs *VirtualIPRequest
	Ports      []ports.Owner
}

// PlanOf returns what is to be done for an import.
func PlanOf(o Observed) Plan {
	paths := view{}
	if o.Namespace == NamespaceAllowed {
		paths = pathsOf(o)
	}
	if r := o.reservation(paths); r != nil {
		return Plan{Reserve: r}
	}
	if o.Namespace == NamespaceNotFound {
		return Plan{IsLast: true, Retain: o.Last, Events: []Event{o.refusedEvent(nil)}}
	}
	labels, refused := o.restoredLabels()
	if len(labels) > 0 {
		return Plan{Stages: []Stage{labels}}
	}
	v := view{Observed: o}
	if o.Namespace == NamespaceAllowed {
		v = viewOf(o)
	}
	d := decide(v)
	p := Plan{decision: d, Refused: refused, After: v.portsAfter, AwaitsPorts: len(v.opening) > 0, Waiting: d.choice.Waiting, IsImported: d.state == exported}
	switch d.state {
	case exported:
		if wait := d.choice.Wait; p.After == 0 || wait > 0 && wait < p.After {
			p.After = wait
		}
		p.build(v)
	case withdrawn:
		p.withdraw(v)
	case undecided:
		p.IsLast = true
	}
	if p.IsLast {
		p.Events = append(p.Events, o.refusedEvent(p.Refused))
	}
	return p
}

// reservation returns what is to be reserved; nil if nothing is. A cluster without gateways reserves nothing.
func (o Observed) reservation(paths view) *Reservation {
	var request VirtualIPRequest
	var wanted []ports.Owner
	if o.Namespace == NamespaceAllowed {
		request = paths.wantedVirtualIPs()
		wanted = paths.wantedPorts()
	}
	n := o.Numbers
	isAnswered := n.VirtualIPsFor != nil && n.VirtualIPsFor.equal(request)
	if !isAnswered && (n.HoldsVirtualIPs || !request.isEmpty()) {
		return &Reservation{VirtualIPs: &request}
	}
	isAsked := n.PortsFor != nil && sets.New(n.PortsFor...).Equal(sets.New(wanted...))
	if !isAsked && !sets.KeySet(n.Ports).Equal(sets.New(wanted...)) {
		return &Reservation{Ports: wanted}
	}
	return nil
}

// restoredLabels returns the changes that restore lost labels, and which of them were refused.
func (o Observed) restoredLabels() (Stage, []Refused) {
	imports, services := o.labelChanges()
	return o.possible(slices.Concat(plan.Any(imports), plan.Any(services)))
}

// add adds a stage of the changes that may succeed. It reports whether there are any, and what was refused.
func (p *Plan) add(o Observed, changes []plan.Change[plan.Object]) (isAdded bool, refused []Refused) {
	stage, refused := o.possible(changes)
	if len(stage) > 0 {
		p.Stages = append(p.Stages, stage)
	}
	p.Refused = append(p.Refused, refused...)
	return len(stage) > 0, refused
}

// build plans the objects of an import: the derived Service, its slices, and then the ServiceImport, which is complete when it is created.
func (p *Plan) build(v view) {
	if v.isObstructed() {
		p.IsObstructed, p.IsLast = true, true
		p.Events = append(p.Events, obstructed(v.ServiceImport))
		return
	}
	o, d := v.Observed, p.decision
	derived := plan.Service(withAdded(o, render.Service(d.merged, d.site)), v.derivedServices())
	virtual, _ := divide(plan.Services(allWithAdded(o, d.virtual.services), v.VirtualServices))
	_, refused := p.add(o, plan.Any(derived))
	if len(p.Stages) > 0 {
		p.Events = append(p.Events, replaced(v, derived)...)
	}
	p.add(o, plan.Any(virtual))
	if len(p.Stages) > 0 { // the API server assigns addresses, on which the slices and the ServiceImport depend
		p.Stages = []Stage{slices.Concat(p.Stages...)}
		return
	}
	virtualSlices, surplusSlices := divide(plan.EndpointSlices(allWithAdded(o, d.virtual.slices), v.VirtualSlices))
	p.add(o, plan.Any(virtualSlices))
	if !isForeign(refused) { // an unmanaged Service must not get mirrored slices
		p.addSlices(v)
	}
	p.add(o, plan.Any(surplusSlices))
	_, surplus := divide(plan.Services(allWithAdded(o, d.virtual.services), v.VirtualServices))
	p.add(o, plan.Any(surplus))
	p.addImport(v)
}

// isForeign reports whether an unmanaged object has a name.
func isForeign(refused []Refused) bool {
	return slices.ContainsFunc(refused, func(r Refused) bool { return r.Kind == Unmanaged })
}

// addSlices adds the stages of the mirrored slices: first those that add endpoints, then those that remove some. If a policy says which
// sources serve and a slice is refused, the slices that it would replace serve on.
func (p *Plan) addSlices(v view) {
	d := p.decision
	desired := slices.Concat(render.Slices(d.merged, d.site, d.slices), d.kept)
	first, last := plan.AddedThenRemoved(allWithAdded(v.Observed, desired), v.Mirrored)
	if _, refused := p.add(v.Observed, plan.Any(first)); len(refused) > 0 && v.Routing.applies(d.merged) {
		last = slices.DeleteFunc(last, func(c plan.Change[*discoveryv1.EndpointSlice]) bool {
			return slices.Contains(d.merged.Clusters, SourceOf(c.Object))
		})
	}
	p.add(v.Observed, plan.Any(last))
}

// addImport adds the stages of the ServiceImport and its status.
func (p *Plan) addImport(v view) {
	o, d := v.Observed, p.decision
	changes := plan.ServiceImport(withAdded(o, render.ServiceImport(d.merged, d.site, p.addresses(v))), v.ServiceImport)
	if isAdded, _ := p.add(o, plan.Any(changes)); isAdded { // the generation of the ServiceImport is part of its status
		return
	}
	p.IsLast = true
	if v.ServiceImport != nil {
		p.addStatus(v)
	}
}

// addresses returns the addresses of the ServiceImport: those of the derived Service. While an API server refuses the derived Service, the
// recorded addresses stay, so that it is created with them later.
func (p *Plan) addresses(v view) []string {
	service := v.derived(p.decision)
	switch {
	case p.decision.merged.Type != mcsv1beta1.ClusterSetIP:
		return nil
	case service != nil:
		return service.Spec.ClusterIPs
	case isForeign(p.Refused) || len(p.Refused) == 0:
		return nil
	}
	return p.decision.site.IPs
}

// derived returns the existing derived Service, as far as it is the one of a decision; nil if there is none.
func (v view) derived(d decision) *corev1.Service {
	for _, s := range v.derivedServices() {
		isHeadless := s.Spec.ClusterIP == corev1.ClusterIPNone
		if s.Name == d.site.DerivedName && isHeadless == (d.merged.Type == mcsv1beta1.Headless) {
			return s
		}
	}
	return nil
}

// withdraw plans the deletion of an import that no cluster exports. The ServiceImport names the exporters, so it is deleted when the gathered
// state has nothing else: a derived Service without a ServiceImport would be taken for that of an import that a user has deleted, and
// restored. The watch events of the other deletions enqueue the service again.
func (p *Plan) withdraw(v view) {
	if i := v.managedImport(); i != nil && i.Spec.Type == mcsv1beta1.ClusterSetIP && len(v.derivedServices()) > 0 {
		p.Retain = i.Spec.IPs
	}
	endpoints := plan.EndpointSlices(nil, slices.Concat(v.Mirrored, v.VirtualSlices))
	services := plan.Services(nil, slices.Concat(v.derivedServices(), v.VirtualServices))
	p.add(v.Observed, plan.Any(endpoints))
	p.add(v.Observed, plan.Any(services))
	if len(endpoints)+len(services) == 0 {
		p.add(v.Observed, plan.Any(plan.ServiceImport(nil, v.managedImport())))
	}
	p.IsLast = true
	if len(p.Refused) > 0 && v.managedImport() != nil {
		p.addStatus(v)
	}
}
