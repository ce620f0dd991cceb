// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/preference"
	"github.com/tombolo-mcs/tombolo/internal/proxy"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// addStatus adds the stage of the status of the ServiceImport.
func (p *Plan) addStatus(v view) {
	current := v.ServiceImport
	status := render.ImportStatus(p.decision.merged)
	existing, desired := current.Status.Conditions, p.conditions(v)
	if p.decision.state == withdrawn {
		status = current.Status
	} else {
		for _, optional := range []string{conditions.TypeDeletionPending, conditions.TypeSourceUnusable, conditions.TypePreferred} {
			if !slices.ContainsFunc(desired, func(c metav1.Condition) bool { return c.Type == optional }) {
				meta.RemoveStatusCondition(&existing, optional) // it copies
			}
		}
	}
	status.Conditions = conditions.Set(existing, desired, current.Generation, metav1.NewTime(v.Now).Rfc3339Copy()) // as API servers store times
	changes := plan.ServiceImportStatus(status, current)
	if isAdded, _ := p.add(v.Observed, plan.Any(changes)); isAdded {
		p.Events = append(p.Events, leftOut(p.decision, current, changes[0].Object)...)
	}
}

// conditions returns the desired conditions of an import.
func (p *Plan) conditions(v view) []metav1.Condition {
	d, derived := p.decision, v.derived(p.decision)
	result := []metav1.Condition{ready(d, derived, p.Refused)}
	if d.state == withdrawn {
		return result
	}
	if unconfirmed := v.unconfirmedExporters(); len(unconfirmed) > 0 {
		result = append(result, conditions.DeletionPending(unconfirmed))
	}
	if obstacles := slices.Concat(dropped(d, derived), unusable(v, d)); len(obstacles) > 0 {
		result = append(result, conditions.SourceUnusable(obstacles))
	}
	if v.Routing.applies(d.merged) {
		result = append(result, v.Routing.condition(d))
	}
	return result
}

// unusable returns why this cluster cannot use the endpoints of some exporters, or some of their ports.
func unusable(v view, d decision) []error {
	return slices.Concat(v.obstacles, leftOutPorts(v, d.merged), leftOutHostnames(v))
}

// dropped returns why traffic to the import does not reach all of its endpoints because of internalTrafficPolicy Local: endpoints of other
// clusters are on no node of this one, and those behind gateways are on the nodes of the gateways.
func dropped(d decision, derived *corev1.Service) []error {
	if derived == nil || d.merged.Type == mcsv1beta1.Headless || d.merged.InternalTrafficPolicy != corev1.ServiceInternalTrafficPolicyLocal {
		return nil
	}
	all := slices.Concat(render.Slices(d.merged, d.site, d.slices), d.kept)
	isUsed := func(s *discoveryv1.EndpointSlice) bool {
		return preference.AvailabilityOfMirrored(s.Endpoints) > preference.Unavailable && len(s.Ports) > 0
	}
	all = slices.DeleteFunc(all, func(s *discoveryv1.EndpointSlice) bool { return !isUsed(s) })
	ports := proxy.Ports(derived, all)
	if len(proxy.Unserved(ports)) > 0 {
		if text := conditions.UnservedByPolicy(ports, proxy.Internal); text != "" {
			return []error{errors.New(text + " in the Service of the exporter that is the oldest, or export pods of this cluster too")}
		}
		return nil
	}
	var elsewhere, gateways []clusterset.ClusterID
	for _, s := range all {
		switch {
		case IsGatewaySlice(s):
			gateways = append(gateways, SourceOf(s))
		case !slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return e.NodeName != nil }):
			elsewhere = append(elsewhere, SourceOf(s))
		}
	}
	return conditions.LocalTraffic(elsewhere, gateways)
}

// unconfirmedExporters returns the other clusters whose heartbeats have not confirmed that missing records are deleted, sorted. It
// returns none before the hub has been read.
func (v view) unconfirmedExporters() []clusterset.ClusterID {
	if !v.Sources.Hub.Synced() {
		return nil
	}
	return slices.Sorted(maps.Keys(v.missing))
}

// ready returns the Ready condition of the import (spec C6).
func ready(d decision, derived *corev1.Service, refused []Refused) metav1.Condition {
	switch {
	case len(refused) > 0:
		return conditions.ImportPending(refusalsOf(refused))
	case derived == nil || !render.Supported(d.merged, d.site):
		return conditions.FamilyNotSupported(d.merged.IPFamilies, d.site.IPFamilies)
	}
	zones := conditions.ZonesMissing(d.merged.TrafficDistribution, render.WithoutZone(d.merged, d.site, d.slices, d.kept))
	return conditions.ImportReady(render.SettingsLeftOut(d.merged, d.site), render.MetadataLeftOut(d.merged, d.site), zones)
}
