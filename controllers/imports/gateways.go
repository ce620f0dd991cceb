// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/ports"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/reach"
	"github.com/tombolo-mcs/tombolo/pkg/liveness"
	"github.com/tombolo-mcs/tombolo/pkg/merge"
	"github.com/tombolo-mcs/tombolo/pkg/preference"
	"github.com/tombolo-mcs/tombolo/pkg/render"
	"github.com/tombolo-mcs/tombolo/pkg/route"
)

// choosePaths sets how this cluster reaches each remote exporter, and why it cannot reach some of them, in the order of the exports.
func (v *view) choosePaths() {
	v.path, v.headless, v.obstacles = map[clusterset.ClusterID]route.Path{}, map[clusterset.ClusterID]clusterset.Export{}, nil
	local := route.Cluster{Network: v.sources.Hub.LocalNetwork, Gateway: v.sources.Gateways != nil}
	importType := sync.OnceValue(v.importType)
	for _, export := range v.sources.Hub.Exports {
		path, err := v.choosePath(local, export)
		if path != route.Direct && export.Type != importType() {
			path, err = route.None, fmt.Errorf("cluster %s exports the service as %s, but it is imported as %s: gateways need the same type. Export it as %s",
				export.Cluster, export.Type, importType(), importType())
		}
		if path != route.Direct && export.Type == mcsv1beta1.Headless && importType() == mcsv1beta1.Headless {
			v.headless[export.Cluster] = export
		}
		v.path[export.Cluster] = path
		if err != nil {
			v.obstacles = append(v.obstacles, err)
		}
	}
}

// choosePath returns how this cluster reaches an exporter, and why it cannot reach it.
func (v *view) choosePath(local route.Cluster, export clusterset.Export) (route.Path, error) {
	source := v.sources.Hub.Exporters[export.Cluster]
	source.Gateway = source.Gateway || v.hasGatewaySlice(export.Cluster) // the hub may have lost its record
	path, err := route.Choose(local, source, export)
	if path == route.Direct && v.awaitsAddresses(export) {
		source.Publish = hubv1alpha1.PublishAvailability
		if instead, err := route.Choose(local, source, export); err == nil {
			path = instead
		}
	}
	return path, err
}

// awaitsAddresses reports whether an exporter of which this cluster has slices has available endpoints, and no addresses of them on the hub
// that this cluster may use: its agent has not published them again since it came to this network, or has deleted them because it leaves,
// and the change of its Member arrives later (W2).
func (v view) awaitsAddresses(export clusterset.Export) bool {
	hasAddresses := slices.ContainsFunc(v.sources.Hub.Slices, func(s clusterset.Slice) bool { return s.Cluster == export.Cluster })
	isImported := slices.ContainsFunc(v.mirrored, func(s *discoveryv1.EndpointSlice) bool { return sourceOf(s) == export.Cluster })
	return !hasAddresses && isImported && slices.Max(append(slices.Collect(maps.Values(export.Available)), 0)) > 0
}

// hasGatewaySlice reports whether the import has a slice of gateways for a source cluster.
func (v view) hasGatewaySlice(source clusterset.ClusterID) bool {
	return slices.ContainsFunc(v.mirrored, func(s *discoveryv1.EndpointSlice) bool { return isGatewaySlice(s) && sourceOf(s) == source })
}

func isGatewaySlice(slice *discoveryv1.EndpointSlice) bool {
	return slice.Labels[clusterset.LabelGateway] != ""
}

// wantedPorts returns the owners of the listening ports that an import needs: of the exports that it reaches through gateways, and of
// missing exports that it keeps.
func (v view) wantedPorts() []ports.Owner {
	result := v.virtualPorts()
	for _, export := range v.sources.Hub.Exports {
		if v.path[export.Cluster] == route.Gateway && export.Type != mcsv1beta1.Headless {
			for _, port := range route.Ports(export) {
				result = append(result, ports.Owner{Service: export.Key, Cluster: export.Cluster, Port: port.Port})
			}
		}
	}
	for _, slice := range v.mirrored {
		if isGatewaySlice(slice) && v.missing[sourceOf(slice)].Export {
			result = slices.AppendSeq(result, maps.Keys(portsOf(slice)))
		}
	}
	return result
}

// gatewaySlices returns the slices of gateways for the exports that this cluster reaches through them.
func gatewaySlices(v view) []clusterset.Slice {
	var result []clusterset.Slice
	for _, export := range v.sources.Hub.Exports {
		if v.path[export.Cluster] != route.Gateway {
			continue
		}
		if export.Type == mcsv1beta1.Headless {
			result = append(result, route.VirtualSlices(export, v.localFamilies, v.virtualAddresses(export.Cluster))...)
			continue
		}
		export.Available = v.listening(export)
		result = append(result, route.Slices(export, v.localFamilies, v.gateways[export.Cluster], v.listen(export.Cluster, ""))...)
	}
	return result
}

// widened returns the slices of a decision with more gateways for those that alone serve their ports: there is no other source to which
// this one would have to be in proportion, and a gateway that ends must not interrupt it.
func widened(v view, d decision) []clusterset.Slice {
	if d.merged.Type == mcsv1beta1.Headless || !slices.ContainsFunc(d.slices, func(s clusterset.Slice) bool { return s.Listen != nil }) {
		return d.slices
	}
	serving := servers(d)
	result := slices.Clone(d.slices)
	for i, slice := range result {
		others := slices.ContainsFunc(slice.Ports, func(port clusterset.EndpointPort) bool {
			return len(serving[preference.Port{Name: d.merged.PortNames[slice.Cluster][port.Name], Family: slice.AddressType}]) > 1
		})
		if slice.Listen != nil && len(slice.Ports) > 0 && !others {
			result[i].Endpoints = gatewaysOf(v, slice.Cluster, slice.AddressType, preference.AvailabilityOf(slice.Endpoints))
		}
	}
	return result
}

// servers returns which clusters have available endpoints for each port of the merged service, in the slices of a decision.
func servers(d decision) map[preference.Port]map[clusterset.ClusterID]bool {
	serving := map[preference.Port]map[clusterset.ClusterID]bool{}
	add := func(name string, family discoveryv1.AddressType, source clusterset.ClusterID) {
		port := preference.Port{Name: name, Family: family}
		if serving[port] == nil {
			serving[port] = map[clusterset.ClusterID]bool{}
		}
		serving[port][source] = true
	}
	for _, slice := range d.slices {
		available := preference.AvailabilityOf(slice.Endpoints) > preference.Unavailable
		for _, port := range slice.Ports {
			if name, merged := d.merged.PortNames[slice.Cluster][port.Name]; merged && available {
				add(name, slice.AddressType, slice.Cluster)
			}
		}
	}
	for _, slice := range d.kept {
		available := preference.AvailabilityOfMirrored(slice.Endpoints) > preference.Unavailable
		for _, name := range mergedPorts(d.merged, slice.Ports) {
			if available {
				add(name, slice.AddressType, sourceOf(slice))
			}
		}
	}
	return serving
}

// losesPort reports whether existing slices have available endpoints for a port of the merged service, and those of a decision have none.
func losesPort(v view, d decision) bool {
	serving := servers(d)
	return slices.ContainsFunc(v.mirrored, func(s *discoveryv1.EndpointSlice) bool {
		return preference.AvailabilityOfMirrored(s.Endpoints) > preference.Unavailable &&
			slices.ContainsFunc(mergedPorts(d.merged, s.Ports), func(name string) bool {
				return len(serving[preference.Port{Name: name, Family: s.AddressType}]) == 0
			})
	})
}

// gatewaysOf returns all gateways that a slice for a source can have. They terminate if the available endpoints of the source do.
func gatewaysOf(v view, source clusterset.ClusterID, family discoveryv1.AddressType, availability preference.Availability) []clusterset.Endpoint {
	result := route.Endpoints(v.sources.Key, source, family, v.gateways[source], clusterset.MaxAvailable)
	if availability == preference.Terminating {
		return route.Terminating(result)
	}
	return result
}

// keptGateway returns a slice of gateways whose export is missing: its ports are those of withheld, its endpoints the gateways that
// this cluster has now.
func keptGateway(v view, withheld *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	result := *withheld
	result.Endpoints = nil
	if len(withheld.Ports) > 0 { // a source without available endpoints has no ports
		source := sourceOf(withheld)
		result.Endpoints = render.Endpoints(gatewaysOf(v, source, withheld.AddressType, preference.AvailabilityOfMirrored(withheld.Endpoints)))
	}
	return &result
}

// usesGateway reports whether the import reaches endpoints through gateways.
func (v view) usesGateway() bool {
	return slices.Contains(slices.Collect(maps.Values(v.path)), route.Gateway) || slices.ContainsFunc(v.mirrored, func(s *discoveryv1.EndpointSlice) bool {
		return isGatewaySlice(s) && v.missing[sourceOf(s)].Export
	})
}

// leftOutPorts returns the ports that gateways do not serve, and what to do: those with another protocol than TCP, and those for which
// no listening port is free (G2, G10).
func leftOutPorts(v view, m merge.Merged) []error {
	wanted := v.wantedPorts()
	var result []error
	for _, export := range v.sources.Hub.Exports {
		if v.path[export.Cluster] != route.Gateway {
			continue
		}
		for _, port := range export.Ports {
			_, merged := m.PortNames[export.Cluster][port.Name]
			lacks := func(owner ports.Owner) bool {
				return owner.Cluster == export.Cluster && owner.Port == port.Port && v.ports[owner] == 0
			}
			switch {
			case !merged:
			case port.Protocol != corev1.ProtocolTCP:
				result = append(result, fmt.Errorf("port %s of cluster %s is left out: gateways support only TCP", port.ID(), export.Cluster))
			case slices.ContainsFunc(wanted, lacks):
				result = append(result, fmt.Errorf("port %s of cluster %s is left out: the gateways' %d listening ports are all in use, or that cluster already uses its share of the last quarter. Import fewer services through gateways",
					port.ID(), export.Cluster, ports.Last-ports.First+1))
			}
		}
	}
	return result
}

// importsOfGateways enqueues the imports with slices of gateways if an EndpointSlice of this cluster's gateways changes.
func (r *Reconciler) importsOfGateways() handler.TypedEventHandler[*discoveryv1.EndpointSlice, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, slice *discoveryv1.EndpointSlice) []reconcile.Request {
		if service, ok := caches.SourceService(slice); !ok || service != r.Sources.GatewayService() {
			return nil
		}
		return r.throughGateways(ctx, reach.EveryCluster)
	})
}

// throughGateways returns the imports with slices of gateways for a source cluster.
func (r *Reconciler) throughGateways(ctx context.Context, source clusterset.ClusterID) []reconcile.Request {
	list := &discoveryv1.EndpointSliceList{}
	if err := r.Member.List(ctx, list, client.MatchingLabels{clusterset.LabelGateway: "true"}, client.UnsafeDisableDeepCopy); err != nil {
		log.FromContext(ctx).Error(err, "cannot find the imports that use gateways")
	}
	imports := sets.New[reconcile.Request]()
	for i := range list.Items {
		slice := &list.Items[i]
		if service, ok := caches.MirroredService(slice); ok && (source == reach.EveryCluster || sourceOf(slice) == source) {
			imports.Insert(reconcile.Request{NamespacedName: service})
		}
	}
	return imports.UnsortedList()
}

// chooseGateways sets the gateways to use for each source cluster that this cluster reaches through gateways. A cluster that no gateway
// reaches is silent (G8).
func (v *view) chooseGateways(known *reach.Reach) {
	v.gateways = map[clusterset.ClusterID][]clusterset.Slice{}
	if v.sources.Gateways == nil {
		return
	}
	for id := range v.states {
		if v.path[id] == route.Direct || v.path[id] != route.Gateway && !v.hasGatewaySlice(id) {
			continue
		}
		usable, reached := known.Usable(v.sources.Gateways.Slices, id)
		v.gateways[id] = usable
		if !reached && v.states[id] == liveness.Live {
			v.states[id] = liveness.Silent
		}
	}
}

// gatewayService enqueues all services if the Service of this cluster's gateways is created or deleted.
func (r *Reconciler) gatewayService() handler.TypedEventHandler[*corev1.Service, reconcile.Request] {
	refresh := func(service *corev1.Service) {
		if client.ObjectKeyFromObject(service) == r.Sources.GatewayService() {
			r.Sources.Hub.Refresh()
		}
	}
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	return handler.TypedFuncs[*corev1.Service, reconcile.Request]{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[*corev1.Service], _ queue) { refresh(e.Object) },
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[*corev1.Service], _ queue) { refresh(e.Object) },
	}
}
