// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: G14
func TestProxyProtocol(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]ProxyProtocol{
		`True/HeaderSent: Gateways begin each connection to port 8443 with a PROXY protocol header, version 2. Clients in this cluster, and probes of the kubelet, send none: they need another port.`:                                                                     {Ports: []int32{8443}, HasGateways: true},
		`False/DirectClients: Gateways begin each connection to ports 80, 8443 with a PROXY protocol header, version 2. But clients in b, c connect to the pods without a gateway, and without a header. Export a port of its own for clients that come through gateways.`: {Ports: []int32{80, 8443}, HasGateways: true, Direct: []clusterset.ClusterID{"b", "c"}},
		`False/NoGateways: No client sends the header: this cluster has no gateways. Run join --gateway, or remove the annotation tombolo-mcs.io/proxy-protocol.`:                                                                                                          {Ports: []int32{80}},
		`False/PortsUnknown: The annotation tombolo-mcs.io/proxy-protocol is not right: "x" is wrong. Write numbers or names of TCP ports, separated by commas.`:                                                                                                           {Wrong: []string{`"x" is wrong`}, HasGateways: true},
		`False/PortsUnknown: The annotation tombolo-mcs.io/proxy-protocol is not right: "x" is wrong. Write numbers or names of TCP ports, separated by commas. Gateways begin each connection to port 80 with a PROXY protocol header, version 2.`:                        {Ports: []int32{80}, Wrong: []string{`"x" is wrong`}, HasGateways: true, Direct: []clusterset.ClusterID{"b"}},
	} {
		got := p.Condition()
		check.Equal(t, "condition", want, fmt.Sprintf("%s/%s: %s", got.Status, got.Reason, got.Message))
		check.Equal(t, "type", TypeProxyProtocol, got.Type)
	}
}
