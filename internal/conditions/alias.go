// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/internal/proxy"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TypeAlias is the condition of an alias: whether it has the endpoints of its import (L1). Other programs write the status of Services
// too, so it has a domain.
const TypeAlias = "tombolo-mcs.io/Alias"

// The reasons of TypeAlias.
const (
	// ReasonAliased: all ports of the alias are ports of the import, and have endpoints of it in all IP families of the Service.
	ReasonAliased = "Aliased"
	// ReasonPortsNotMatched: some ports of the alias are no ports of the import. If none is, the condition is False.
	ReasonPortsNotMatched = "PortsNotMatched"
	// ReasonEndpointsLeftOut: the alias cannot use the endpoints of some clusters. If it has no others, the condition is False.
	ReasonEndpointsLeftOut = "EndpointsLeftOut"
	// ReasonTrafficPolicyLocal: a traffic policy of the Service is Local, so endpoints on other nodes and in other clusters do not get this
	// traffic. If no endpoint of the import is on a node of this cluster, the condition is False.
	ReasonTrafficPolicyLocal = "TrafficPolicyLocal"
	// ReasonNoEndpoints: some ports have no available endpoint of the import. If none has, the condition is False.
	ReasonNoEndpoints = "NoEndpoints"
	// ReasonZonesMissing: the trafficDistribution of the Service has no effect, because ready endpoints have no zone.
	ReasonZonesMissing = "ZonesMissing"
	// ReasonNoImport: there is no such import in the namespace.
	ReasonNoImport = "NoImport"
	// ReasonAliasRefused: the annotation, or the type of the Service, does not allow an import.
	ReasonAliasRefused = "Refused"
	// ReasonNotWritten: the API server refuses the EndpointSlices of the alias.
	ReasonNotWritten = "NotWritten"
)

// Aliased is what an alias has of its import.
type Aliased struct {
	Import string
	// Matched are the ports of the alias that are ports of the import, and Unmatched the others.
	Matched, Unmatched []string
	// ByGateway and OtherFamily are the clusters whose endpoints the alias cannot use.
	ByGateway, OtherFamily []clusterset.ClusterID
	// ZonesMissing says why the trafficDistribution of the alias has no effect; empty if it has one, or there is none.
	ZonesMissing string
	// Ports says which endpoints of the import the matched ports have.
	Ports []proxy.Port
}

// remark is a sentence about what an alias lacks, with its reason.
type remark struct{ reason, text string }

// Alias returns the condition of an alias that has an import. An alias without ports, which is headless, has all endpoints.
// It is True only if endpoints of the import get each kind of traffic that the Service accepts.
func Alias(a Aliased) metav1.Condition {
	serves := "the Service has the endpoints of ServiceImport " + a.Import
	if len(a.Matched) > 0 {
		serves += " at the ports " + strings.Join(a.Matched, ", ")
	}
	status, reason := metav1.ConditionTrue, ReasonAliased
	unserved := proxy.Unserved(a.Ports)
	if !slices.ContainsFunc(a.Ports, func(p proxy.Port) bool { return p.Available > 0 }) {
		serves, unserved = "the Service has no endpoints of ServiceImport "+a.Import, []proxy.Traffic{proxy.Internal}
	}
	remarks := a.remarks()
	if len(unserved) > 0 {
		status = metav1.ConditionFalse
		remarks = slices.Concat(a.causes(unserved), remarks)
	}
	texts := []string{serves}
	for _, r := range remarks {
		if reason == ReasonAliased {
			reason = r.reason
		}
		if !slices.Contains(texts, r.text) {
			texts = append(texts, r.text)
		}
	}
	return condition(TypeAlias, status, reason, strings.Join(texts, "; "))
}

// causes returns why no endpoint gets some kinds of traffic, most important first.
func (a Aliased) causes(unserved []proxy.Traffic) []remark {
	if len(a.Matched) == 0 && len(a.Unmatched) > 0 {
		return []remark{a.unmatched()}
	}
	var result []remark
	for _, traffic := range unserved {
		if text := UnservedByPolicy(a.Ports, traffic); text != "" {
			result = append(result, remark{ReasonTrafficPolicyLocal, text})
		}
	}
	switch {
	case len(result) > 0:
		return result
	case len(a.ByGateway) > 0:
		return []remark{a.byGateway()}
	case len(a.OtherFamily) > 0:
		return []remark{a.otherFamily()}
	}
	return []remark{{ReasonNoEndpoints, "no endpoint of the import is available"}}
}

// remarks returns all that the alias lacks, most important first.
func (a Aliased) remarks() []remark {
	var result []remark
	if len(a.Unmatched) > 0 {
		result = append(result, a.unmatched())
	}
	if len(a.ByGateway) > 0 {
		result = append(result, a.byGateway())
	}
	if len(a.OtherFamily) > 0 {
		result = append(result, a.otherFamily())
	}
	unserved := proxy.Unserved(a.Ports)
	for _, traffic := range []proxy.Traffic{proxy.Internal, proxy.External} {
		isLocal := slices.ContainsFunc(a.Ports, func(p proxy.Port) bool { return p.Traffic == traffic && p.Local })
		if isLocal && !slices.Contains(unserved, traffic) {
			result = append(result, remark{ReasonTrafficPolicyLocal, fmt.Sprintf("%s is Local, so %s reaches only the endpoints on the node at which it arrives", policyOf(traffic), describeTraffic(traffic))})
		}
	}
	if a.ZonesMissing != "" {
		result = append(result, remark{ReasonZonesMissing, strings.TrimSuffix(a.ZonesMissing, ".")})
	}
	if without := withoutEndpoints(a.Ports); len(without) > 0 && !slices.Contains(unserved, proxy.Internal) {
		result = append(result, remark{ReasonNoEndpoints, "no endpoint of the import is available at " + strings.Join(without, ", ")})
	}
	return result
}

func (a Aliased) unmatched() remark {
	return remark{ReasonPortsNotMatched, fmt.Sprintf("the import has no port like %s: give the ports of the Service the names and protocols of those of the import",
		strings.Join(a.Unmatched, ", "))}
}

func (a Aliased) byGateway() remark {
	return remark{ReasonEndpointsLeftOut, fmt.Sprintf("the endpoints of %s are left out, because they are reached through gateways: only a Service with a cluster IP can be an alias "+
		"of such an import with a cluster IP, and only a headless one of a headless import", listClusters(a.ByGateway))}
}

func (a Aliased) otherFamily() remark {
	return remark{ReasonEndpointsLeftOut, fmt.Sprintf("the endpoints of %s are left out, because they have no addresses in the IP families of the Service: "+
		"give the Service the families of the import (spec.ipFamilyPolicy)", listClusters(a.OtherFamily))}
}

// UnservedByPolicy returns the sentence about a kind of traffic that no endpoint gets because of its traffic policy; empty if the policy is not
// the reason.
func UnservedByPolicy(ports []proxy.Port, traffic proxy.Traffic) string {
	if !slices.ContainsFunc(ports, func(p proxy.Port) bool { return p.Traffic == traffic && p.Local && p.Available > 0 }) {
		return ""
	}
	return fmt.Sprintf("%s is Local, and none of the endpoints is on a node of this cluster, so %s is dropped: set %s to Cluster",
		policyOf(traffic), describeTraffic(traffic), policyOf(traffic))
}

func policyOf(traffic proxy.Traffic) string {
	if traffic == proxy.External {
		return "externalTrafficPolicy"
	}
	return "internalTrafficPolicy"
}

func describeTraffic(traffic proxy.Traffic) string {
	if traffic == proxy.External {
		return "traffic from outside the cluster"
	}
	return "traffic to the cluster IP"
}

// withoutEndpoints returns the ports that have no available endpoint, with the IP family if they have one in another family.
func withoutEndpoints(ports []proxy.Port) []string {
	type port struct{ name, protocol string }
	served := map[port]bool{}
	for _, p := range ports {
		if p.Available > 0 {
			served[port{p.Name, string(p.Protocol)}] = true
		}
	}
	var result []string
	for _, p := range ports {
		if p.Available > 0 {
			continue
		}
		text := "all ports"
		if p.Protocol != "" {
			text = fmt.Sprintf("%s/%s", cmp.Or(p.Name, "unnamed"), p.Protocol)
		}
		if served[port{p.Name, string(p.Protocol)}] {
			text += " over " + string(p.Family)
		}
		if !slices.Contains(result, text) {
			result = append(result, text)
		}
	}
	return result
}

// AliasWithoutImport returns the condition of an alias of an import that does not exist.
func AliasWithoutImport(name string) metav1.Condition {
	return notAliased(ReasonNoImport, fmt.Sprintf("this namespace has no ServiceImport %s that is managed by Tombolo: no cluster exports the service, or not to this cluster", name))
}

// AliasRefused returns the condition of an alias that can have no import.
func AliasRefused(reason error) metav1.Condition {
	return notAliased(ReasonAliasRefused, reason.Error())
}

// AliasNotWritten returns the condition of an alias whose EndpointSlices the API server refuses.
func AliasNotWritten(reason error) metav1.Condition {
	return notAliased(ReasonNotWritten, "some EndpointSlices of the alias cannot be written: "+reason.Error())
}

func notAliased(reason, message string) metav1.Condition {
	return condition(TypeAlias, metav1.ConditionFalse, reason, message)
}
