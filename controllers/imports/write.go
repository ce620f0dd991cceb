// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
	"github.com/tombolo-mcs/tombolo/pkg/preference"
	"github.com/tombolo-mcs/tombolo/pkg/proxy"
	"github.com/tombolo-mcs/tombolo/pkg/render"
)

// write writes the derived Service, its slices, and then the ServiceImport, which is complete when it is created.
func (r *Reconciler) write(ctx context.Context, v view, d decision) error {
	if v.isObstructed() {
		r.announceObstruction(v.serviceImport)
		return nil
	}
	derived, err := r.writeService(ctx, v, d)
	if err != nil {
		return err
	}
	isOurs := derived.foreignErr == nil // an unmanaged Service must not get mirrored slices
	v, d, err = r.writeVirtualIPs(ctx, v, d)
	switch {
	case apply.IsRefused(err): // the condition reports it; the other hostnames are served
		derived.foreignErr = errors.Join(derived.foreignErr, err)
	case err != nil:
		return err
	}
	d.site = derived.site
	if isOurs {
		switch err := r.writeSlices(ctx, v, d); {
		case errors.Is(err, apply.ErrUnmanaged): // the condition reports it; the other slices are written
			derived.foreignErr = errors.Join(derived.foreignErr, err)
		case err != nil:
			return err
		}
	}
	if err := r.deleteVirtualIPs(ctx, v, d); err != nil {
		return err
	}
	return r.writeImport(ctx, v, d, derived)
}

func (r *Reconciler) writeSlices(ctx context.Context, v view, d decision) error {
	desired := slices.Concat(render.Slices(d.merged, d.site, d.slices), d.kept)
	first, last := plan.AddedThenRemoved(desired, v.mirrored)
	written, err := apply.Do(ctx, r.Writer, first)
	switch isInTheWay := apply.IsUnmanaged(err) || apply.IsRefused(err); {
	case isInTheWay && v.routing.applies(d.merged): // what it would replace serves on
		last = slices.DeleteFunc(last, func(c plan.Change[*discoveryv1.EndpointSlice]) bool {
			return slices.Contains(d.merged.Clusters, sourceOf(c.Object))
		})
	case err != nil && !isInTheWay:
		return err
	}
	removed, lastErr := apply.Do(ctx, r.Writer, last)
	all := slices.Concat(v.sources.Hub.Slices, v.localSlices)
	changed := slices.Concat(written, removed)
	r.own.add(v.sources.Key, desired, changed)
	r.Metrics.observePropagation(r.Sources.Cluster, v.sources.Key, all, changed, r.Clock.Now())
	if err = apply.Join(err, lastErr); err == nil {
		r.Metrics.written(v.sources.Key, all)
	}
	return err
}

func (r *Reconciler) writeImport(ctx context.Context, v view, d decision, derived serviceResult) error {
	var ips []string
	if derived.service != nil && d.merged.Type == mcsv1beta1.ClusterSetIP {
		ips = derived.service.Spec.ClusterIPs
	}
	written, err := apply.Do(ctx, r.Writer, plan.ServiceImport(render.ServiceImport(d.merged, d.site, ips), v.serviceImport))
	if errors.Is(err, apply.ErrUnmanaged) && v.serviceImport == nil {
		return nil // another client has just created it: the watch event enqueues the service again
	}
	if err != nil {
		return err
	}
	current := v.serviceImport
	if len(written) > 0 {
		current = written[0]
	}
	status := render.ImportStatus(d.merged)
	existing := current.Status.Conditions
	if len(v.unconfirmedExporters()) == 0 {
		meta.RemoveStatusCondition(&existing, conditions.TypeDeletionPending) // it copies
	}
	if len(unusable(v, d))+len(dropped(d, derived)) == 0 {
		meta.RemoveStatusCondition(&existing, conditions.TypeSourceUnusable)
	}
	if !v.routing.applies(d.merged) {
		meta.RemoveStatusCondition(&existing, conditions.TypePreferred)
	}
	status.Conditions = conditions.Set(existing, importConditions(v, d, derived), current.Generation, r.now())
	updated, err := apply.Do(ctx, r.Writer, plan.ServiceImportStatus(status, current))
	if err != nil {
		return err
	}
	for _, after := range updated {
		r.announceLeftOut(d, current, after)
	}
	return derived.foreignErr
}

// importConditions returns the desired conditions of an import.
func importConditions(v view, d decision, derived serviceResult) []metav1.Condition {
	result := []metav1.Condition{ready(d, derived)}
	if unconfirmed := v.unconfirmedExporters(); len(unconfirmed) > 0 {
		result = append(result, conditions.DeletionPending(unconfirmed))
	}
	if obstacles := slices.Concat(dropped(d, derived), unusable(v, d)); len(obstacles) > 0 {
		result = append(result, conditions.SourceUnusable(obstacles))
	}
	if v.routing.applies(d.merged) {
		result = append(result, v.routing.condition(d))
	}
	return result
}

// unusable returns why this cluster cannot use the endpoints of some exporters, or some of their ports.
func unusable(v view, d decision) []error {
	return slices.Concat(v.obstacles, leftOutPorts(v, d.merged), leftOutHostnames(v))
}

// dropped returns why traffic to the import does not reach all of its endpoints because of internalTrafficPolicy Local: endpoints of other
// clusters are on no node of this one, and those behind gateways are on the nodes of the gateways.
func dropped(d decision, derived serviceResult) []error {
	if derived.service == nil || d.merged.Type == mcsv1beta1.Headless || d.merged.InternalTrafficPolicy != corev1.ServiceInternalTrafficPolicyLocal {
		return nil
	}
	all := slices.Concat(render.Slices(d.merged, derived.site, d.slices), d.kept)
	isUsed := func(s *discoveryv1.EndpointSlice) bool {
		return preference.AvailabilityOfMirrored(s.Endpoints) > preference.Unavailable && len(s.Ports) > 0
	}
	all = slices.DeleteFunc(all, func(s *discoveryv1.EndpointSlice) bool { return !isUsed(s) })
	ports := proxy.Ports(derived.service, all)
	if len(proxy.Unserved(ports)) > 0 {
		if text := conditions.UnservedByPolicy(ports, proxy.Internal); text != "" {
			return []error{errors.New(text + " in the Service of the exporter that is the oldest, or export pods of this cluster too")}
		}
		return nil
	}
	var elsewhere, gateways []clusterset.ClusterID
	for _, s := range all {
		switch {
		case isGatewaySlice(s):
			gateways = append(gateways, sourceOf(s))
		case !slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool { return e.NodeName != nil }):
			elsewhere = append(elsewhere, sourceOf(s))
		}
	}
	return conditions.LocalTraffic(elsewhere, gateways)
}

// unconfirmedExporters returns the other clusters whose heartbeats have not confirmed that missing records are deleted, sorted. It
// returns none before the hub has been read.
func (v view) unconfirmedExporters() []clusterset.ClusterID {
	if !v.sources.Hub.Synced() {
		return nil
	}
	return slices.Sorted(maps.Keys(v.missing))
}

// ready returns the Ready condition of the import (spec C6).
func ready(d decision, derived serviceResult) metav1.Condition {
	switch {
	case derived.foreignErr != nil:
		return conditions.ImportPending(refusalsOf(derived.foreignErr))
	case derived.service == nil || !render.Supported(d.merged, d.site):
		return conditions.FamilyNotSupported(d.merged.IPFamilies, d.site.IPFamilies)
	}
	zones := conditions.ZonesMissing(d.merged.TrafficDistribution, render.WithoutZone(d.merged, d.site, d.slices, d.kept))
	return conditions.ImportReady(render.SettingsLeftOut(d.merged, d.site), render.MetadataLeftOut(d.merged, d.site), zones)
}

// withdraw deletes an import that no cluster exports.
func (r *Reconciler) withdraw(ctx context.Context, v view) error {
	endpoints, derived, imported := v.deletions()
	if _, err := apply.Do(ctx, r.Writer, endpoints); err != nil {
		return err
	}
	if _, err := apply.Do(ctx, r.Writer, derived); err != nil {
		return err
	}
	_, err := apply.Do(ctx, r.Writer, imported)
	return err
}

// deletions returns the next deletions of an import that no cluster exports. The ServiceImport names the exporters, so it is deleted
// when the cache shows that nothing else is left: a derived Service without a ServiceImport would be taken for that of an import that
// a user has deleted, and restored. The watch events of the other deletions enqueue the service again.
func (v view) deletions() (
	endpoints []plan.Change[*discoveryv1.EndpointSlice], derived []plan.Change[*corev1.Service], imported []plan.Change[*mcsv1beta1.ServiceImport],
) {
	endpoints = plan.EndpointSlices(nil, slices.Concat(v.mirrored, v.virtualSlices))
	derived = plan.Services(nil, slices.Concat(v.derivedServices(), v.virtualServices))
	if len(endpoints)+len(derived) == 0 {
		imported = plan.ServiceImport(nil, v.managedImport())
	}
	return endpoints, derived, imported
}
