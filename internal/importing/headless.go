// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// virtualIPs are the desired Services and slices of the virtual IPs of an import (G9).
type virtualIPs struct {
	services []*corev1.Service
	slices   []*discoveryv1.EndpointSlice
}

// isHeadless reports whether the import reaches, or could reach, a source through virtual IPs.
func (v view) isHeadless(source clusterset.ClusterID) bool {
	_, ok := v.headless[source]
	return ok
}

// existingVirtualIPs returns the Services of the virtual IPs that the import has.
func (e Existing) existingVirtualIPs() map[clusterset.VirtualIP]*corev1.Service {
	result := map[clusterset.VirtualIP]*corev1.Service{}
	for _, service := range e.VirtualServices {
		if ip, ok := render.VirtualIPOf(service); ok {
			result[ip] = service
		}
	}
	return result
}

// wantedVirtualIPs requests the virtual IPs of the available hostnames, first those that exist, and the existing ones of hostnames that are
// not available at present: at most MaxHostnames of a source. The virtual IPs of missing exports count as used.
func (v view) wantedVirtualIPs() VirtualIPRequest {
	var used, unused []clusterset.VirtualIP
	existing, count := v.existingVirtualIPs(), map[clusterset.ClusterID]int{}
	var created []clusterset.VirtualIP
	for source, export := range v.headless {
		if v.path[source] != reach.Gateway {
			continue
		}
		for hostname := range export.Hostnames {
			ip := clusterset.VirtualIP{Service: export.Key, Cluster: export.Cluster, Hostname: hostname}
			if existing[ip] == nil {
				created = append(created, ip)
			} else {
				used = append(used, ip)
				delete(existing, ip)
			}
		}
		count[source] = len(export.Hostnames)
	}
	for ip := range existing {
		switch {
		case v.missing[ip.Cluster].Export:
			used = append(used, ip)
		case v.isHeadless(ip.Cluster):
			unused = append(unused, ip)
		}
	}
	for _, ips := range [][]clusterset.VirtualIP{used, created, unused} {
		slices.SortFunc(ips, func(a, b clusterset.VirtualIP) int {
			return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), clusterset.CompareHostnames(a.Hostname, b.Hostname))
		})
	}
	unused = slices.DeleteFunc(unused, func(ip clusterset.VirtualIP) bool {
		count[ip.Cluster]++
		return count[ip.Cluster] > clusterset.MaxHostnames
	})
	return VirtualIPRequest{Used: slices.Concat(used, created), Unused: unused}
}

// virtualAddresses returns the existing virtual IPs of a source cluster by hostname. It leaves out those without a listening port, and those
// on whose ports no gateway listens: they lead nowhere.
func (v view) virtualAddresses(source clusterset.ClusterID) map[string][]netip.Addr {
	result, existing := map[string][]netip.Addr{}, v.existingVirtualIPs()
	for _, ip := range v.Numbers.VirtualIPs {
		if service := existing[ip]; ip.Cluster == source && service != nil && v.leadsOn(ip) {
			for _, text := range service.Spec.ClusterIPs {
				if address, err := netip.ParseAddr(text); err == nil {
					result[ip.Hostname] = append(result[ip.Hostname], address)
				}
			}
		}
	}
	return result
}

// leadsOn reports whether a virtual IP has a listening port on which a gateway listens.
func (v view) leadsOn(ip clusterset.VirtualIP) bool {
	for owner := range v.Numbers.Ports {
		if owner.Cluster == ip.Cluster && owner.Hostname == ip.Hostname && !v.unopened.Has(owner) {
			return true
		}
	}
	return false
}

// virtualPorts returns the owners of the listening ports of the import's virtual IPs: of the ports on which endpoints listen, and of those
// that have a listening port.
func (v view) virtualPorts() []ports.Owner {
	recorded := map[ports.Owner]int32{}
	for _, slice := range v.VirtualSlices {
		maps.Copy(recorded, portsOf(slice))
	}
	var result []ports.Owner
	for _, ip := range v.Numbers.VirtualIPs {
		export := v.headless[ip.Cluster]
		switch {
		case v.missing[ip.Cluster].Export:
			for owner := range recorded {
				if owner.Cluster == ip.Cluster && owner.Hostname == ip.Hostname {
					result = append(result, owner)
				}
			}
		case v.path[ip.Cluster] == reach.Gateway:
			for _, port := range reach.Ports(export) {
				owner := ports.Owner{Service: ip.Service, Cluster: ip.Cluster, Hostname: ip.Hostname, Port: port.Port}
				if export.Hostnames[ip.Hostname][port.Port] != 0 || recorded[owner] != 0 {
					result = append(result, owner)
				}
			}
		}
	}
	return result
}

// listen returns the listening ports for a hostname of a source cluster, by the numbers of the Service ports.
func (v view) listen(source clusterset.ClusterID, hostname string) map[int32]int32 {
	result := map[int32]int32{}
	for owner, number := range v.Numbers.Ports {
		if owner.Cluster == source && owner.Hostname == hostname {
			result[owner.Port] = number
		}
	}
	return result
}

// desiredVirtualIPs returns the desired Services and slices of virtual IPs. Those of hostnames that are not available lead nowhere, but keep
// their address and their listening ports.
func (v view) desiredVirtualIPs() virtualIPs {
	result, existing := virtualIPs{}, v.existingVirtualIPs()
	for _, ip := range v.Numbers.VirtualIPs {
		export := v.headless[ip.Cluster]
		servicePorts, families := render.VirtualPorts(export, ip.Hostname), []corev1.IPFamily(nil)
		if service := existing[ip]; service != nil {
			families = service.Spec.IPFamilies
			if len(servicePorts) == 0 {
				servicePorts = service.Spec.Ports
			}
		}
		result.services = append(result.services, render.VirtualService(ip, servicePorts, v.Families, families))
		if v.path[ip.Cluster] == reach.Gateway {
			result.slices = append(result.slices, render.VirtualEndpoints(ip,
				reach.HostnameSlices(export, ip.Hostname, v.Families, v.via(ip.Cluster, ip.Hostname)))...)
		}
	}
	for _, slice := range v.VirtualSlices {
		if ip, ok := render.VirtualIPOf(slice); ok && v.missing[ip.Cluster].Export && slices.Contains(v.Numbers.VirtualIPs, ip) {
			result.slices = append(result.slices, keptGateway(v, slice))
		}
	}
	return result
}

// leftOutHostnames returns which hostnames this cluster does not serve, and what to do (G9).
func leftOutHostnames(v view) []error {
	var result []error
	for _, export := range v.Sources.Hub.Exports {
		if v.path[export.Cluster] != reach.Gateway || !v.isHeadless(export.Cluster) {
			continue
		}
		if n := export.HostnamesLeftOut; n > 0 {
			result = append(result, fmt.Errorf("%d hostnames of cluster %s are left out: it publishes at most %d of a headless service. Spread the pods over several services",
				n, export.Cluster, clusterset.MaxHostnames))
		}
		n := len(export.Hostnames)
		for _, ip := range v.Numbers.VirtualIPs {
			if _, available := export.Hostnames[ip.Hostname]; available && ip.Cluster == export.Cluster {
				n--
			}
		}
		if n > 0 {
			result = append(result, fmt.Errorf("%d hostnames of cluster %s are left out: the %d virtual IPs of this cluster are all in use, or that cluster already uses its share of the last quarter. Import fewer headless services through gateways",
				n, export.Cluster, MaxVirtualIPs))
		}
	}
	return result
}

// divide divides changes into those of desired objects, and the deletions of others.
func divide[T plan.Object](changes []plan.Change[T]) (desired, surplus []plan.Change[T]) {
	names := sets.New[string]()
	for _, change := range changes {
		if change.Verb != plan.Delete {
			names.Insert(change.Object.GetName())
		}
	}
	for _, change := range changes {
		if names.Has(change.Object.GetName()) {
			desired = append(desired, change)
		} else {
			surplus = append(surplus, change)
		}
	}
	return desired, surplus
}
