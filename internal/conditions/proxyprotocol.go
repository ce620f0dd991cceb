// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TypeProxyProtocol is the type of the condition of an export whose annotation asks gateways for a PROXY protocol header. It says whether all
// clients of these ports send one (G14).
const TypeProxyProtocol = "ProxyProtocol"

// The reasons of TypeProxyProtocol.
const (
	// ReasonHeaderSent: gateways send the header.
	ReasonHeaderSent = "HeaderSent"
	// ReasonPortsUnknown: the annotation has ports that the Service has not.
	ReasonPortsUnknown = "PortsUnknown"
	// ReasonNoGateways: the cluster has no gateway that could send it.
	ReasonNoGateways = "NoGateways"
	// ReasonDirectClients: clusters of the same network connect to the pods without it.
	ReasonDirectClients = "DirectClients"
)

// ProxyProtocol is what is known about the ports of an export with a PROXY protocol header.
type ProxyProtocol struct {
	// Ports are those to which gateways send the header, and Wrong says what is wrong with the other items of the annotation.
	Ports []int32
	Wrong []string
	// HasGateways is set if this cluster has gateways.
	HasGateways bool
	// Direct are the other clusters that connect to the pods without a gateway, sorted.
	Direct []clusterset.ClusterID
}

// Condition returns the export's condition ProxyProtocol (G14).
func (p ProxyProtocol) Condition() metav1.Condition {
	switch {
	case len(p.Wrong) > 0:
		text := fmt.Sprintf("The annotation %s is not right: %s. Write numbers or names of TCP ports, separated by commas.", clusterset.AnnotationProxyProtocol, firstFew(p.Wrong))
		return condition(TypeProxyProtocol, metav1.ConditionFalse, ReasonPortsUnknown, text+p.sent(" "))
	case !p.HasGateways:
		return condition(TypeProxyProtocol, metav1.ConditionFalse, ReasonNoGateways,
			"No client sends the header: this cluster has no gateways. Run join --gateway, or remove the annotation "+clusterset.AnnotationProxyProtocol+".")
	case len(p.Direct) > 0:
		return condition(TypeProxyProtocol, metav1.ConditionFalse, ReasonDirectClients, fmt.Sprintf(
			"%s But clients in %s connect to the pods without a gateway, and without a header. Export a port of its own for clients that come through gateways.", p.sent(""), listClusters(p.Direct)))
	}
	return condition(TypeProxyProtocol, metav1.ConditionTrue, ReasonHeaderSent,
		p.sent("")+" Clients in this cluster, and probes of the kubelet, send none: they need another port.")
}

// sent returns the sentence about the ports with a header, after a prefix; empty if there is none.
func (p ProxyProtocol) sent(prefix string) string {
	if len(p.Ports) == 0 || !p.HasGateways {
		return ""
	}
	numbers := make([]string, len(p.Ports))
	for i, number := range p.Ports {
		numbers[i] = strconv.Itoa(int(number))
	}
	word := "port"
	if len(numbers) > 1 {
		word = "ports"
	}
	return fmt.Sprintf("%sGateways begin each connection to %s %s with a PROXY protocol header, version 2.", prefix, word, strings.Join(numbers, ", "))
}
