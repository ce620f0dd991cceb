// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"errors"

	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/ports"
)

// ListeningPorts returns the listening ports that a mirrored slice of gateways or a slice of a virtual IP records, by what they lead to
// (G2, G9). It returns an error if the slice is not as an agent writes it.
func ListeningPorts(slice *discoveryv1.EndpointSlice) (map[ports.Owner]int32, error) {
	owner, err := ownerOf(slice)
	if err != nil {
		return nil, err
	}
	listen, err := clusterset.ParseListen(slice.Annotations[clusterset.AnnotationGatewayPorts])
	if err != nil {
		return nil, err
	}
	result := map[ports.Owner]int32{}
	for port, number := range listen {
		owner.Port = port
		result[owner] = number
	}
	return result, nil
}

// ownerOf returns what the listening ports of a slice lead to, without the port.
func ownerOf(slice *discoveryv1.EndpointSlice) (ports.Owner, error) {
	if ip, ok := VirtualIP(slice); ok && slice.Labels[clusterset.LabelGateway] != "" {
		return ports.Owner{Service: ip.Service, Cluster: ip.Cluster, Hostname: ip.Hostname}, nil
	}
	service, mirrored := MirroredService(slice)
	if !mirrored || slice.Labels[clusterset.LabelGateway] == "" {
		return ports.Owner{}, errors.New("its labels are not those of a slice of gateways")
	}
	cluster, err := clusterset.ParseClusterID(slice.Labels[mcsv1beta1.LabelSourceCluster])
	return ports.Owner{Service: service, Cluster: cluster}, err
}
