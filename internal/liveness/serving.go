// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Policy is how the endpoints of a silent member are used.
type Policy string

// The policies.
const (
	// Withdraw leaves them out if live members can serve instead.
	Withdraw Policy = "withdraw"
	// Keep uses them as if the member were live.
	Keep Policy = "keep"
)

// Policies are the policies by type of service.
type Policies map[mcsv1beta1.ServiceImportType]Policy

// DefaultPolicies withdraws endpoints of ClusterSetIP services, whose endpoints are interchangeable, and keeps those of headless
// services, whose endpoints have their own DNS names.
func DefaultPolicies() Policies {
	return Policies{mcsv1beta1.ClusterSetIP: Withdraw, mcsv1beta1.Headless: Keep}
}

// Source is a slice of a member, with the state of the member.
type Source struct {
	clusterset.Slice
	State State
	// Mirrored are the merged names of the ports in the existing mirrored slice; nil if there is no such slice.
	Mirrored []string
}

// Kept is a mirrored slice whose source is missing on the hub, but not known to be deleted.
type Kept struct {
	State  State
	Family discoveryv1.AddressType
	// Ports are the merged names of all its ports.
	Ports []string
}

// portFamily is a port of the merged service, by its merged name, in one address family. A slice without ports serves a port without
// a name.
type portFamily struct {
	port   string
	family discoveryv1.AddressType
}

// Served are the ports and families for which live members have ready endpoints.
type Served map[portFamily]bool

// ServedBy returns the ports and families for which live members among the sources have ready endpoints.
func ServedBy(m merge.Merged, sources []Source) Served {
	result := Served{}
	for _, source := range sources {
		if source.State == Live && slices.ContainsFunc(source.Endpoints, clusterset.Endpoint.IsReady) {
			for _, p := range portFamilies(m, source.Slice) {
				result[p] = true
			}
		}
	}
	return result
}

// Serving returns the slices whose endpoints the import uses, in their order. Ports and families of a silent member are left out if
// live members have ready endpoints for them. If a member's state is unknown, its mirrored ports stay, and its other ports are left
// out if a live member, or another member of unknown state with mirrored ports, has ready endpoints for them: these ports may have
// been withheld before the agent started.
func Serving(m merge.Merged, policies Policies, sources []Source) []clusterset.Slice {
	served, unknown := ServedBy(m, sources), mirroredUnknown(m, sources)
	var result []clusterset.Slice
	for _, source := range sources {
		if source.State == Live || policies[m.Type] != Withdraw {
			result = append(result, source.Slice)
			continue
		}
		if used, ok := withoutServed(source, func(name string) bool {
			p := portFamily{name, source.AddressType}
			return served[p] || source.State == Unknown && unknown.hasOther(p, source.Cluster)
		}, m.PortNames[source.Cluster]); ok || source.Listen != nil { // a gateway's slice records its listening ports
			result = append(result, used)
		}
	}
	return result
}

// KeptPorts returns the ports of a kept slice that an import continues to use: those of a silent member only if no live member
// serves them.
func KeptPorts(policy Policy, served Served, kept Kept) []string {
	if kept.State != Silent || policy != Withdraw {
		return kept.Ports
	}
	return slices.DeleteFunc(slices.Clone(kept.Ports), func(port string) bool { return served[portFamily{"/" + port, kept.Family}] })
}

// portFamilies returns the merged ports and families that a slice serves.
func portFamilies(m merge.Merged, s clusterset.Slice) []portFamily {
	if len(s.Ports) == 0 {
		return []portFamily{{family: s.AddressType}}
	}
	var result []portFamily
	for _, port := range s.Ports {
		if name, ok := m.PortNames[s.Cluster][port.Name]; ok {
			result = append(result, portFamily{"/" + name, s.AddressType})
		}
	}
	return result
}

// servers are the clusters that have ready endpoints for a port and family.
type servers map[portFamily]map[clusterset.ClusterID]bool

func (s servers) hasOther(p portFamily, cluster clusterset.ClusterID) bool {
	return len(s[p]) > 1 || len(s[p]) == 1 && !s[p][cluster]
}

// mirroredUnknown returns the members of unknown state that have ready endpoints at mirrored ports.
func mirroredUnknown(m merge.Merged, sources []Source) servers {
	result := servers{}
	for _, source := range sources {
		if source.State != Unknown || source.Mirrored == nil || !slices.ContainsFunc(source.Endpoints, clusterset.Endpoint.IsReady) {
			continue
		}
		for _, p := range portFamilies(m, source.Slice) {
			if p.port != "" && !slices.Contains(source.Mirrored, p.port[1:]) {
				continue
			}
			if result[p] == nil {
				result[p] = map[clusterset.ClusterID]bool{}
			}
			result[p][source.Cluster] = true
		}
	}
	return result
}

// withoutServed returns the slice without the ports that others serve and that need not be kept, and false if no port is left. names
// are the merged names of the cluster's ports.
func withoutServed(source Source, servedByOthers func(port string) bool, names map[string]string) (clusterset.Slice, bool) {
	s := source.Slice
	if len(s.Ports) == 0 {
		return s, !servedByOthers("") || source.State == Unknown && source.Mirrored != nil
	}
	s.Ports = slices.DeleteFunc(slices.Clone(s.Ports), func(port clusterset.EndpointPort) bool {
		name := names[port.Name]
		isKept := source.State == Unknown && slices.Contains(source.Mirrored, name)
		return servedByOthers("/"+name) && !isKept
	})
	return s, len(s.Ports) > 0
}
