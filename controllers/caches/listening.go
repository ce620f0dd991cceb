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

// ListeningPorts returns the listening ports that a mirrored slice of gateways records, by what they lead to (G2). It returns an error if
// the slice is not as an agent writes it.
func ListeningPorts(slice *discoveryv1.EndpointSlice) (map[ports.Owner]int32, error) {
	service, mirrored := MirroredService(slice)
	if !mirrored || slice.Labels[clusterset.LabelGateway] == "" {
		return nil, errors.New("its labels are not those of a mirrored slice of gateways")
	}
	cluster, err := clusterset.ParseClusterID(slice.Labels[mcsv1beta1.LabelSourceCluster])
	if err != nil {
		return nil, err
	}
	listen, err := clusterset.ParseListen(slice.Annotations[clusterset.AnnotationGatewayPorts])
	if err != nil {
		return nil, err
	}
	result := map[ports.Owner]int32{}
	for port, number := range listen {
		result[ports.Owner{Service: service, Cluster: cluster, Port: port}] = number
	}
	return result, nil
}
