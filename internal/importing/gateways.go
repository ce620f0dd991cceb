// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/internal/preference"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/internal/render"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// choosePaths sets how this cluster reaches each remote exporter, and why it cannot reach some of them, in the order of the exports.
func (v *view) choosePaths() {
	v.path, v.headless, v.obstacles = map[clusterset.ClusterID]reach.Path{}, map[clusterset.ClusterID]clusterset.Export{}, nil
	local := reach.Cluster{Network: v.Sources.Hub.LocalNetwork, Gateway: v.Sources.Gateways != nil}
	importType, imported := sync.OnceValue(v.importType), v.importedFrom()
	for _, export := range v.Sources.Hub.Exports {
		path, err := v.choosePath(local, export, imported)
		if path != reach.Direct && export.Type != importType() {
			path, err = reach.None, fmt.Errorf("cluster %s exports the service as %s, but it is imported as %s: gateways need the same type. Export it as %s",
				export.Cluster, export.Type, importType(), importType())
		}
		if path != reach.Direct && export.Type == mcsv1beta1.Headless && importType() == mcsv1beta1.Headless {
			v.headless[export.Cluster] = export
		}
		v.path[export.Cluster] = path
		if err != nil {
			v.obstacles = append(v.obstacles, err)
		}
	}
}

// choosePath returns how this cluster reaches an exporter, and why it cannot reach it.
func (v *view) choosePath(local reach.Cluster, export clusterset.Export, imported importedFrom) (reach.Path, error) {
	source := v.Sources.Hub.Exporters[export.Cluster]
	source.Gateway = source.Gateway || imported.byGateways.Has(export.Cluster) // the hub may have lost its record
	path, err := reach.ChoosePath(local, source, export)
	if path == reach.Direct && imported.awaitsAddresses(export) {
		source.Publish = hubv1alpha1.PublishAvailability
		if instead, err := reach.ChoosePath(local, source, export); err == nil {
			path = instead
		}
	}
	return path, err
}

// importedFrom are the clusters with addresses on the hub that this cluster may use, those with mirrored slices, and those with slices of
// gateways.
type importedFrom struct {
	withAddresses, mirrored, byGateways sets.Set[clusterset.ClusterID]
}

func (v view) importedFrom() importedFrom {
	result := importedFrom{sets.New[clusterset.ClusterID](), sets.New[clusterset.ClusterID](), sets.New[clusterset.ClusterID]()}
	for _, slice := range v.Sources.Hub.Slices {
		result.withAddresses.Insert(slice.Cluster)
	}
	for _, slice := range v.Mirrored {
		result.mirrored.Insert(SourceOf(slice))
		if IsGatewaySlice(slice) {
			result.byGateways.Insert(SourceOf(slice))
		}
	}
	return result
}

// awaitsAddresses reports whether an exporter of which this cluster has slices has available endpoints, and no addresses of them on the hub
// that this cluster may use: its agent has not published them again since it came to this network, or has deleted them because it leaves,
// and the change of its Member arrives later (W2).
func (i importedFrom) awaitsAddresses(export clusterset.Export) bool {
	return !i.withAddresses.Has(export.Cluster) && i.mirrored.Has(export.Cluster) &&
		slices.Max(append(slices.Collect(maps.Values(export.Available)), 0)) > 0
}

// wantedPorts returns the owners of the listening ports that an import needs: of the exports that it reaches through gateways, and of
// missing exports that it keeps.
func (v view) wantedPorts() []ports.Owner {
	result := v.virtualPorts()
	for _, export := range v.Sources.Hub.Exports {
		if v.path[export.Cluster] == reach.Gateway && export.Type != mcsv1beta1.Headless {
			for _, port := range reach.Ports(export) {
				result = append(result, ports.Owner{Service: export.Key, Cluster: export.Cluster, Port: port.Port})
			}
		}
	}
	for _, slice := range v.Mirrored {
		if IsGatewaySlice(slice) && v.missing[SourceOf(slice)].Export {
			result = slices.AppendSeq(result, maps.Keys(portsOf(slice)))
		}
	}
	return result
}

// gatewaySlices returns the slices of gateways for the exports that this cluster reaches through them.
func gatewaySlices(v view) []clusterset.Slice {
	var result []clusterset.Slice
	for _, export := range v.Sources.Hub.Exports {
		if v.path[export.Cluster] != reach.Gateway {
			continue
		}
		if export.Type == mcsv1beta1.Headless {
			result = append(result, reach.VirtualSlices(export, v.Families, v.virtualAddresses(export.Cluster))...)
			continue
		}
		result = append(result, reach.Slices(export, v.Families, v.via(export.Cluster, ""))...)
	}
	return result
}

// via returns what leads to a hostname of a source cluster; to its service if the hostname is empty.
func (v view) via(source clusterset.ClusterID, hostname string) reach.Via {
	return reach.Via{Gateways: v.gateways[source], Listen: v.listen(source, hostname), Closed: v.closed.Has}
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
			result[i].Endpoints = gatewaysOf(v, slice.Cluster, slice.AddressType, preference.AvailabilityOf(slice.Endpoints), numbers(slice.Ports))
			if available := len(slice.Endpoints); available < len(result[i].Endpoints) {
				result[i].Available = available
			}
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
				add(name, slice.AddressType, SourceOf(slice))
			}
		}
	}
	return serving
}

// numbers returns the numbers of ports.
func numbers(listed []clusterset.EndpointPort) []int32 {
	var result []int32
	for _, port := range listed {
		result = append(result, port.Port)
	}
	return result
}

// gatewaysOf returns all gateways that a slice with some listening ports for a source can have. They terminate if the available endpoints of
// the source do.
func gatewaysOf(
	v view, source clusterset.ClusterID, family discoveryv1.AddressType, availability preference.Availability, listening []int32,
) []clusterset.Endpoint {
	result := v.via(source, "").Endpoints(v.Sources.Key, source, family, clusterset.MaxAvailable, listening...)
	if availability == preference.Terminating {
		return reach.Terminating(result)
	}
	return result
}

// keptGateway returns a slice of gateways whose export is missing: its ports are those of withheld, its endpoints the gateways that
// this cluster has now.
func keptGateway(v view, withheld *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	result := *withheld
	result.Endpoints = nil
	if len(withheld.Ports) > 0 { // a source without available endpoints has no ports
		source := SourceOf(withheld)
		result.Endpoints = render.Endpoints(gatewaysOf(v, source, withheld.AddressType, preference.AvailabilityOfMirrored(withheld.Endpoints), numbersOf(withheld.Ports)))
	}
	return &result
}

// usesGateway reports whether the import reaches endpoints through gateways.
func (v view) usesGateway() bool {
	return slices.Contains(slices.Collect(maps.Values(v.path)), reach.Gateway) || slices.ContainsFunc(v.Mirrored, func(s *discoveryv1.EndpointSlice) bool {
		return IsGatewaySlice(s) && v.missing[SourceOf(s)].Export
	})
}

// leftOutPorts returns the ports that gateways do not serve, and what to do: those with another protocol than TCP, those for which no
// listening port is free, and those on which no gateway listens although it had the time (G2, G8, G10).
func leftOutPorts(v view, m merge.Merged) []error {
	lacking, closed := sets.New[ports.Owner](), sets.New[ports.Owner]()
	for _, owner := range v.wantedPorts() {
		ofAnyHostname := ports.Owner{Cluster: owner.Cluster, Port: owner.Port}
		if v.Numbers.Ports[owner] == 0 {
			lacking.Insert(ofAnyHostname)
		}
		if v.unopened.Has(owner) && !v.opening.Has(owner) {
			closed.Insert(ofAnyHostname)
		}
	}
	var result []error
	for _, export := range v.Sources.Hub.Exports {
		if v.path[export.Cluster] != reach.Gateway {
			continue
		}
		for _, port := range export.Ports {
			_, merged := m.PortNames[export.Cluster][port.Name]
			owner := ports.Owner{Cluster: export.Cluster, Port: port.Port}
			switch {
			case !merged:
			case port.Protocol != corev1.ProtocolTCP:
				result = append(result, fmt.Errorf("port %s of cluster %s is left out: gateways support only TCP", port.ID(), export.Cluster))
			case lacking.Has(owner):
				result = append(result, fmt.Errorf("port %s of cluster %s is left out: the gateways' %d listening ports are all in use, or that cluster already uses its share of the last quarter. Import fewer services through gateways",
					port.ID(), export.Cluster, ports.Last-ports.First+1))
			case closed.Has(owner):
				result = append(result, fmt.Errorf("port %s of cluster %s is left out: no gateway of this cluster listens for it. Check in the logs of the gateways whether they reach their API server and can open the port",
					port.ID(), export.Cluster))
			}
		}
	}
	return result
}

// chooseGateways sets the gateways to use for each source cluster that this cluster reaches through gateways. A cluster that no gateway
// reaches is silent (G8).
func (v *view) chooseGateways() {
	v.gateways = map[clusterset.ClusterID][]clusterset.Slice{}
	if v.Sources.Gateways == nil {
		return
	}
	imported := v.importedFrom()
	for id := range v.states {
		if v.path[id] == reach.Direct || v.path[id] != reach.Gateway && !imported.byGateways.Has(id) {
			continue
		}
		usable, reached := v.Reach.Usable(v.Sources.Gateways.Slices, id)
		v.gateways[id] = usable
		if !reached && v.states[id] == liveness.Live {
			v.states[id] = liveness.Silent
		}
	}
}
