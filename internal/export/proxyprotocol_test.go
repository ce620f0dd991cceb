// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package export

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Both functions agree for each port, whatever the annotation is.
//
// spec: G14
func TestProxyPorts(t *testing.T) {
	t.Parallel()
	ports := []clusterset.Port{
		{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP},
		{Name: "proxy", Port: 8443, Protocol: corev1.ProtocolTCP},
		{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP},
		{Name: "dns-tcp", Port: 53, Protocol: corev1.ProtocolTCP},
	}
	wrong := func(item string) string {
		return fmt.Sprintf("%q is no number or name of a TCP port of the Service", item)
	}
	for text, test := range map[string]struct {
		numbers []int32
		wrong   []string
	}{
		"8443":                {[]int32{8443}, nil},
		"proxy":               {[]int32{8443}, nil},
		" 8443 , http":        {[]int32{80, 8443}, nil},
		"8443,proxy,8443":     {[]int32{8443}, nil},
		"53":                  {[]int32{53}, nil}, // the TCP port
		"dns":                 {nil, []string{wrong("dns")}},
		"8080,80":             {[]int32{80}, []string{wrong("8080")}},
		"":                    {nil, []string{wrong("")}},
		"80,":                 {[]int32{80}, []string{wrong("")}},
		"080, +80, 80.0, 80;": {nil, []string{wrong("080"), wrong("+80"), wrong("80.0"), wrong("80;")}},
	} {
		export := &metav1.ObjectMeta{Annotations: map[string]string{clusterset.AnnotationProxyProtocol: text}}
		numbers, reasons := ProxyPorts(export, ports)
		check.Equal(t, fmt.Sprintf("%q: ports", text), test.numbers, numbers)
		check.Equal(t, fmt.Sprintf("%q: wrong", text), test.wrong, reasons)
		for _, p := range ports {
			if p.Protocol == corev1.ProtocolTCP {
				check.Equal(t, fmt.Sprintf("%q: port %d", text, p.Port), slices.Contains(numbers, p.Port), HasProxyHeader(export, clusterset.Port{Name: p.Name, Port: p.Port}))
			}
		}
	}
	numbers, reasons := ProxyPorts(&metav1.ObjectMeta{}, ports)
	check.Equal(t, "without the annotation", 0, len(numbers)+len(reasons))
	long := &metav1.ObjectMeta{Annotations: map[string]string{clusterset.AnnotationProxyProtocol: strings.Repeat("9,", 1<<16)}}
	_, reasons = ProxyPorts(long, ports)
	check.Equal(t, "of a long annotation", maxProxyPorts, len(reasons))
}
