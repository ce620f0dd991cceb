// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity reads who a cluster is: its ClusterProperties, its UID, and the sender of its heartbeats on the hub.
package identity

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/manifests"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// AnnotationClusterUID on a Member is the UID of its cluster. It is used until the first heartbeat has the UID.
const AnnotationClusterUID = "tombolo-mcs.io/cluster-uid"

// LabelPartOf marks the objects that join creates in the cluster, so that leave deletes them.
const LabelPartOf = "app.kubernetes.io/part-of"

// PartOf is the value of LabelPartOf.
const PartOf = "tombolo"

// Property returns a ClusterProperty, nil if it or its kind does not exist.
func Property(ctx context.Context, c *connection.Cluster, name string) (*aboutv1beta1.ClusterProperty, error) {
	result := &aboutv1beta1.ClusterProperty{}
	err := c.Client.Get(ctx, client.ObjectKey{Name: name}, result)
	if connection.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get ClusterProperty %s of %s: %w", name, c.What, err)
	}
	return result, nil
}

// NewProperty returns a ClusterProperty that join creates.
func NewProperty(name, value string) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&aboutv1beta1.ClusterProperty{
		TypeMeta:   metav1.TypeMeta{APIVersion: aboutv1beta1.GroupVersion.String(), Kind: "ClusterProperty"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{LabelPartOf: PartOf}},
		Spec:       aboutv1beta1.ClusterPropertySpec{Value: value},
	})
	if err != nil {
		return nil, fmt.Errorf("ClusterProperty %s: %w", name, err)
	}
	object := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	return object, nil
}

// ClusterUID returns the UID of the kube-system namespace, which identifies a cluster.
func ClusterUID(ctx context.Context, c *connection.Cluster) (string, error) {
	system := &corev1.Namespace{}
	if err := c.Client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", fmt.Errorf("get namespace kube-system of %s: %w", c.What, err)
	}
	return string(system.UID), nil
}

// Heartbeat returns the Heartbeat of a member on the hub, nil if there is none.
func Heartbeat(ctx context.Context, onHub *connection.Cluster, id clusterset.ClusterID) (*hubv1alpha1.Heartbeat, error) {
	beat := &hubv1alpha1.Heartbeat{}
	err := onHub.Client.Get(ctx, client.ObjectKey{Namespace: id.HubNamespace(), Name: hubv1alpha1.HeartbeatName}, beat)
	if connection.IsAbsent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the heartbeat of %s on the hub: %w", id, err)
	}
	return beat, nil
}

// IsLastSender returns the Lease of the agents of a member, which is on the hub if they run there, and whether its process has sent a
// heartbeat on the hub. The Lease is nil if there is none; then that is not known.
func IsLastSender(ctx context.Context, onHub, member *connection.Cluster, beat *hubv1alpha1.Heartbeat) (*survey.AgentLease, bool, error) {
	now, err := apiserver.Time(ctx, onHub.Config)
	if err != nil {
		return nil, false, err
	}
	for _, at := range []struct {
		cluster   *connection.Cluster
		namespace string
	}{{member, manifests.AgentNamespace}, {onHub, beat.Namespace}} {
		local, err := apiserver.Time(ctx, at.cluster.Config)
		if err != nil {
			return nil, false, err
		}
		lease, err := survey.ReadAgentLease(ctx, at.cluster.Client, at.namespace, func() time.Time { return local })
		if apierrors.IsForbidden(err) && at.cluster == onHub { // by an invitation
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		if lease != nil {
			isLast := lease.IsLast(beat, now.Sub(hub.RenewedAt(beat)))
			return lease, isLast, nil
		}
	}
	return nil, false, nil
}
