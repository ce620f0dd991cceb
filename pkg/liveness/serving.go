// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/merge"
)

// Policy says what becomes of the endpoints of a silent member.
type Policy string

// What becomes of the endpoints of a silent member.
const (
	// Withdraw leaves them out where live members can serve instead.
	Withdraw Policy = "withdraw"
	// Keep uses them as if their member were alive.
	Keep Policy = "keep"
)

// Policies say it for each type of service.
type Policies map[mcsv1beta1.ServiceImportType]Policy

// DefaultPolicies withdraws endpoints from behind a shared address, where one serves as well as another, and keeps
// those of headless services, where each has a name of its own.
func DefaultPolicies() Policies {
	return Policies{mcsv1beta1.ClusterSetIP: Withdraw, mcsv1beta1.Headless: Keep}
}

// Source is a slice of a member and what is known of the member.
type Source struct {
	clusterset.Slice
	State State
	// Mirrored says that the import has this slice already.
	Mirrored bool
}

// lane is what traffic needs an endpoint for: a port of the merged service in one address family. A slice without
// ports has one lane, without a name.
type lane struct {
	port   string
	family discoveryv1.AddressType
}

// Serving returns the slices whose endpoints the import uses, in their order. Ports and families of a silent member
// are left out where live members have ready endpoints for them; they are the last resort where they have not. Of a
// member that has not been heard of since we started, what is there stays and what is not does not come.
func Serving(m merge.Merged, policies Policies, sources []Source) []clusterset.Slice {
	served := map[lane]bool{}
	for _, source := range sources {
		if source.State == Live && slices.ContainsFunc(source.Endpoints, clusterset.Endpoint.IsReady) {
			for _, l := range lanes(m, source.Slice) {
				served[l] = true
			}
		}
	}
	var result []clusterset.Slice
	for _, source := range sources {
		trusted := source.State == Live || source.State == Unknown && source.Mirrored
		if trusted || policies[m.Type] != Withdraw {
			result = append(result, source.Slice)
			continue
		}
		if kept, ok := without(m, source.Slice, served); ok {
			result = append(result, kept)
		}
	}
	return result
}

// lanes returns what traffic reaches a slice for: the merged ports that its cluster serves with it.
func lanes(m merge.Merged, s clusterset.Slice) []lane {
	if len(s.Ports) == 0 {
		return []lane{{family: s.AddressType}}
	}
	var result []lane
	for _, port := range s.Ports {
		if name, ok := m.PortNames[s.Cluster][port.Name]; ok {
			result = append(result, lane{"/" + name, s.AddressType})
		}
	}
	return result
}

// without returns the slice less the ports that are served by others, and false where nothing of it is left.
func without(m merge.Merged, s clusterset.Slice, served map[lane]bool) (clusterset.Slice, bool) {
	if len(s.Ports) == 0 {
		return s, !served[lane{family: s.AddressType}]
	}
	s.Ports = slices.DeleteFunc(slices.Clone(s.Ports), func(port clusterset.EndpointPort) bool {
		return served[lane{"/" + m.PortNames[s.Cluster][port.Name], s.AddressType}]
	})
	return s, len(s.Ports) > 0
}
