// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"errors"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// VirtualIPOf returns the virtual IP that the labels of its Service or of one of its slices name, and false for other objects, and if the
// labels do not match the name of the Service.
func VirtualIPOf(object metav1.Object) (clusterset.VirtualIP, bool) {
	labels, name := object.GetLabels(), object.GetName()
	if _, isSlice := object.(*discoveryv1.EndpointSlice); isSlice {
		name = labels[discoveryv1.LabelServiceName]
	}
	service := clusterset.ServiceKey{Namespace: object.GetNamespace(), Name: labels[clusterset.LabelVirtualIPOf]}
	cluster, err := clusterset.ParseClusterID(labels[mcsv1beta1.LabelSourceCluster])
	ip := clusterset.VirtualIP{Service: service, Cluster: cluster, Hostname: labels[clusterset.LabelHostname]}
	isOurs := service.Name != "" && clusterset.ManagerOf(object) == clusterset.ManagedBy
	return ip, isOurs && err == nil && ip.Name() == name
}

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
	isOfGateways := slice.Labels[clusterset.LabelGateway] != "" && clusterset.ManagerOf(slice) == clusterset.ManagedBy
	if ip, ok := VirtualIPOf(slice); ok && isOfGateways {
		return ports.Owner{Service: ip.Service, Cluster: ip.Cluster, Hostname: ip.Hostname}, nil
	}
	name := slice.Labels[mcsv1beta1.LabelServiceName]
	if name == "" || !isOfGateways {
		return ports.Owner{}, errors.New("its labels are not those of a slice of gateways")
	}
	cluster, err := clusterset.ParseClusterID(slice.Labels[mcsv1beta1.LabelSourceCluster])
	return ports.Owner{Service: clusterset.ServiceKey{Namespace: slice.Namespace, Name: name}, Cluster: cluster}, err
}
