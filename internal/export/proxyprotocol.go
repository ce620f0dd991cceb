// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// HasProxyHeader reports whether gateways begin connections to a TCP port of a Service with a PROXY protocol header, because the annotation of
// its ServiceExport has the port's number or name (G14).
func HasProxyHeader(export metav1.Object, port clusterset.Port) bool {
	return slices.ContainsFunc(proxyPorts(export), func(item string) bool { return isPort(item, port.Name, port.Port) })
}

// ProxyPorts returns the numbers of the ports that HasProxyHeader has, sorted, and what is wrong with the other items of the annotation (G14).
func ProxyPorts(export metav1.Object, ports []clusterset.Port) (numbers []int32, wrong []string) {
	for _, item := range proxyPorts(export) {
		at := slices.IndexFunc(ports, func(p clusterset.Port) bool {
			return p.Protocol == corev1.ProtocolTCP && isPort(item, p.Name, p.Port)
		})
		if at < 0 {
			wrong = append(wrong, fmt.Sprintf("%.70q is no number or name of a TCP port of the Service", item))
			continue
		}
		numbers = append(numbers, ports[at].Port)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), wrong
}

// maxProxyPorts is the number of items of the annotation that are read: a Service has no more ports on the hub.
const maxProxyPorts = 100

// proxyPorts returns the items of the annotation, without spaces.
func proxyPorts(export metav1.Object) []string {
	text, ok := export.GetAnnotations()[clusterset.AnnotationProxyProtocol]
	if !ok {
		return nil
	}
	items := strings.SplitN(text, ",", maxProxyPorts)
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
	}
	return items
}

func isPort(item, name string, number int32) bool {
	return item != "" && (item == name || item == strconv.Itoa(int(number)))
}
