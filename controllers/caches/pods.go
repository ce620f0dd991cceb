// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"context"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/export"
)

// IndexAddress finds the pods with an address that have not finished.
const IndexAddress = "tombolo.address"

// PodAddresses is the function of IndexAddress: the addresses of a pod that has not finished. Another pod may have those of one that has.
func PodAddresses(object client.Object) []string {
	pod := object.(*corev1.Pod)
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	var result []string
	for _, ip := range pod.Status.PodIPs {
		if address, err := netip.ParseAddr(ip.IP); err == nil {
			result = append(result, address.Unmap().String())
		}
	}
	return result
}

// PodsAt returns the pods with an address that have not finished, from a cache with IndexAddress. They must not be changed.
func PodsAt(ctx context.Context, from client.Reader, address netip.Addr) ([]corev1.Pod, error) {
	var list corev1.PodList
	err := from.List(ctx, &list, client.MatchingFields{IndexAddress: address.String()}, client.UnsafeDisableDeepCopy)
	return list.Items, err
}

// CompactHostPod is a transform function of a cache: it keeps what ExportPods needs of a pod in the host network.
func CompactHostPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion},
		Spec:       corev1.PodSpec{HostNetwork: pod.Spec.HostNetwork, Containers: []corev1.Container{{Ports: declaredPorts(pod)}}},
		Status:     corev1.PodStatus{Phase: pod.Status.Phase, PodIPs: pod.Status.PodIPs},
	}, nil
}

// declaredPorts returns the ports of all containers of a pod, with their numbers and protocols only. Containers that start first may serve
// as long as the pod runs.
func declaredPorts(pod *corev1.Pod) (result []corev1.ContainerPort) {
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, port := range container.Ports {
			result = append(result, corev1.ContainerPort{ContainerPort: port.ContainerPort, Protocol: port.Protocol})
		}
	}
	return result
}

// ExportPods returns pods as the backend rules need them (W5).
func ExportPods(pods []corev1.Pod) []export.Pod {
	var result []export.Pod
	for i := range pods {
		pod := export.Pod{Namespace: pods[i].Namespace, HostNetwork: pods[i].Spec.HostNetwork}
		for _, port := range declaredPorts(&pods[i]) {
			pod.Ports = append(pod.Ports, export.PodPort{Protocol: port.Protocol, Port: port.ContainerPort})
		}
		result = append(result, pod)
	}
	return result
}
