// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TypeAlias is the condition of an alias: whether it has the endpoints of its import (L1). Other programs write the status of Services
// too, so it has a domain.
const TypeAlias = "tombolo-mcs.io/Alias"

// The reasons of TypeAlias.
const (
	// ReasonAliased: all ports of the alias are ports of the import.
	ReasonAliased = "Aliased"
	// ReasonPortsNotMatched: some ports of the alias are no ports of the import. If none is, the condition is False.
	ReasonPortsNotMatched = "PortsNotMatched"
	// ReasonEndpointsLeftOut: the alias cannot use the endpoints of some clusters.
	ReasonEndpointsLeftOut = "EndpointsLeftOut"
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
	// Unusable are the clusters whose endpoints the alias cannot use.
	Unusable []clusterset.ClusterID
}

// Alias returns the condition of an alias that has an import. An alias without ports, which is headless, has all endpoints.
func Alias(a Aliased) metav1.Condition {
	status, reason := metav1.ConditionTrue, ReasonAliased
	serves := "the Service has the endpoints of ServiceImport " + a.Import
	if len(a.Matched) > 0 {
		serves += " at the ports " + strings.Join(a.Matched, ", ")
	}
	var lacks []string
	if len(a.Unusable) > 0 {
		reason = ReasonEndpointsLeftOut
		lacks = append(lacks, fmt.Sprintf("the endpoints of %s are left out, because they are reached through gateways: only a Service with a cluster IP can be an alias "+
			"of such an import with a cluster IP, and only a headless one of a headless import", listClusters(a.Unusable)))
	}
	if len(a.Unmatched) > 0 {
		reason = ReasonPortsNotMatched
		lacks = append([]string{fmt.Sprintf("the import has no port like %s: give the ports of the Service the names and protocols of those of the import",
			strings.Join(a.Unmatched, ", "))}, lacks...)
	}
	if len(a.Unmatched) > 0 && len(a.Matched) == 0 {
		status = metav1.ConditionFalse
		serves = "the Service has no endpoints of ServiceImport " + a.Import
	}
	return condition(TypeAlias, status, reason, strings.Join(append([]string{serves}, lacks...), "; "))
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
