// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// annotationClusterUID on a Member is the UID of its cluster. It is used until the first heartbeat has the UID.
const annotationClusterUID = "tombolo-mcs.io/cluster-uid"

// labelPartOf marks the objects that join creates in the cluster, so that leave deletes them.
const labelPartOf, partOf = "app.kubernetes.io/part-of", "tombolo"

// property returns a ClusterProperty, nil if it or its kind does not exist.
func property(ctx context.Context, c *cluster, name string) (*aboutv1beta1.ClusterProperty, error) {
	result := &aboutv1beta1.ClusterProperty{}
	err := c.client.Get(ctx, client.ObjectKey{Name: name}, result)
	if isAbsentKind(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get ClusterProperty %s of %s: %w", name, c.what, err)
	}
	return result, nil
}

// checkIdentity sets the cluster ID and the clusterset from the existing ClusterProperties, else from the flags (K1, K2).
func (j *joinCommand) checkIdentity(ctx context.Context) error {
	own, err := property(ctx, j.member, aboutv1beta1.ClusterIDProperty)
	if err != nil {
		return err
	}
	wanted := j.joinOptions.id
	if own != nil && wanted == "" {
		wanted = own.Spec.Value
	}
	id, err := clusterset.ParseClusterID(wanted)
	switch {
	case err != nil:
		j.r.failf("%v", err)
	case own != nil && own.Spec.Value != wanted:
		j.r.failf("this cluster calls itself %q (ClusterProperty %s), not %q: leave out --cluster-id; or, to rename it, let it leave, delete that ClusterProperty, and join again",
			own.Spec.Value, own.Name, wanted)
	default:
		j.id = id
		j.r.okf("cluster ID %q", id)
	}
	return j.checkClusterSet(ctx, own)
}

func (j *joinCommand) checkClusterSet(ctx context.Context, own *aboutv1beta1.ClusterProperty) error {
	set, err := property(ctx, j.member, aboutv1beta1.ClusterSetProperty)
	if err != nil {
		return err
	}
	name := j.clusterSet
	switch {
	case name == "" && set != nil:
		name = set.Spec.Value
	case name == "":
		name = defaultClusterSet
	}
	if set != nil && set.Spec.Value != name {
		j.r.failf("this cluster is a member of clusterset %q (ClusterProperty %s), not %q: leave that first, or correct --clusterset", set.Spec.Value, set.Name, name)
	}
	if j.id == "" {
		return nil
	}
	for _, p := range []struct {
		existing    *aboutv1beta1.ClusterProperty
		name, value string
	}{
		{own, aboutv1beta1.ClusterIDProperty, string(j.id)},
		{set, aboutv1beta1.ClusterSetProperty, name},
	} {
		if p.existing != nil {
			continue // an existing one is not changed
		}
		object, err := newProperty(p.name, p.value)
		if err != nil {
			return err
		}
		j.properties = append(j.properties, object)
	}
	return nil
}

func newProperty(name, value string) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&aboutv1beta1.ClusterProperty{
		TypeMeta:   metav1.TypeMeta{APIVersion: aboutv1beta1.GroupVersion.String(), Kind: "ClusterProperty"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{labelPartOf: partOf}},
		Spec:       aboutv1beta1.ClusterPropertySpec{Value: value},
	})
	if err != nil {
		return nil, fmt.Errorf("ClusterProperty %s: %w", name, err)
	}
	object := &unstructured.Unstructured{Object: content}
	unstructured.RemoveNestedField(object.Object, "metadata", "creationTimestamp")
	return object, nil
}
