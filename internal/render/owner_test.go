// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// The listening ports of a virtual IP lead to its hostname, unless the labels are not those with which it was created.
// spec: G2, G9
func TestVirtualIP(t *testing.T) {
	t.Parallel()
	ip := clusterset.VirtualIP{Service: clusterset.ServiceKey{Namespace: "shop", Name: "db"}, Cluster: "berlin", Hostname: "db-0"}
	if got, ok := VirtualIPOf(VirtualService(ip, nil, nil, nil)); !ok || got != ip {
		t.Errorf("the Service is that of %+v, %t", got, ok)
	}
	slice := func() *discoveryv1.EndpointSlice {
		return VirtualEndpoints(ip, []clusterset.Slice{{AddressType: "IPv4", Listen: map[int32]int32{80: 10000}}})[0]
	}
	listen, err := ListeningPorts(slice())
	if owner := (ports.Owner{Service: ip.Service, Cluster: "berlin", Port: 80, Hostname: "db-0"}); err != nil || len(listen) != 1 || listen[owner] != 10000 {
		t.Errorf("listening ports %v, %v", listen, err)
	}
	for label, value := range map[string]string{
		clusterset.LabelHostname: "db-1", clusterset.LabelVirtualIPOf: "web", discoveryv1.LabelServiceName: "web", clusterset.LabelGateway: "",
		"multicluster.kubernetes.io/source-cluster": "paris", discoveryv1.LabelManagedBy: "me",
	} {
		edited := slice()
		edited.Labels[label] = value
		if listen, err := ListeningPorts(edited); err == nil {
			t.Errorf("with label %s=%s: listening ports %v", label, value, listen)
		}
	}
}
