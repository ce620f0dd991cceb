// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/identity"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/writing"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// Admit creates the member's namespace and objects on the hub, without the quota. Of an existing member, it changes only the settings of the
// Member that a flag sets: nothing else may delay a new token.
func (c *Candidate) Admit(ctx context.Context) error {
	objects, err := manifests.Member(c.MemberOptions())
	if err != nil {
		return err
	}
	isQuota := func(o *unstructured.Unstructured) bool { return o.GetKind() == "ResourceQuota" }
	c.quota = objects[slices.IndexFunc(objects, isQuota)]
	for _, object := range slices.DeleteFunc(objects, isQuota) {
		var outcome install.Outcome
		switch isMember := object.GetKind() == "Member"; {
		case isMember && c.Admitted != nil:
			outcome, err = c.updateMember(ctx, object)
		case isMember && c.UID != "":
			object.SetAnnotations(map[string]string{identity.AnnotationClusterUID: c.UID})
			fallthrough
		default:
			outcome, err = c.Hub.Install.Apply(ctx, object)
		}
		if c.Admitted != nil && apierrors.IsConflict(err) {
			c.Report.Notef("kept as it is: %v", err)
			continue
		}
		if err != nil {
			return err
		}
		if err := c.Report.Applied(outcome, object); err != nil {
			return err
		}
	}
	if c.Admitted == nil {
		return c.Limit(ctx)
	}
	return nil
}

// updateMember writes the settings of an existing Member that differ, also if kubectl or a GitOps tool has written them.
func (c *Candidate) updateMember(ctx context.Context, desired *unstructured.Unstructured) (install.Outcome, error) {
	wanted, edited := &hubv1alpha1.Member{}, c.Admitted.DeepCopy()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(desired.Object, wanted); err != nil {
		return "", fmt.Errorf("%s: %w", install.NameOf(desired), err)
	}
	wanted.Spec.Suspended = edited.Spec.Suspended
	edited.Spec = wanted.Spec
	if c.UID != "" && edited.Annotations[identity.AnnotationClusterUID] == "" {
		edited.Annotations = maps.Clone(edited.Annotations)
		if edited.Annotations == nil {
			edited.Annotations = map[string]string{}
		}
		edited.Annotations[identity.AnnotationClusterUID] = c.UID
	}
	outcome, err := c.Hub.Install.Patch(ctx, c.Admitted, edited)
	if err == nil && !equality.Semantic.DeepEqual(c.Admitted.Spec, edited.Spec) {
		c.noteOtherManagers()
	}
	return outcome, err
}

// noteOtherManagers says that another client applies the Member too, so that its next apply reverts what has changed here.
func (c *Candidate) noteOtherManagers() {
	for _, m := range c.Admitted.ManagedFields {
		if m.Manager != install.FieldManager && m.Subresource == "" && m.FieldsV1 != nil && bytes.Contains(m.FieldsV1.GetRawBytes(), []byte(`"f:spec"`)) {
			c.Report.Notef("%s has written this Member too: make the same change there, or its next apply reverts it", m.Manager)
		}
	}
}

// Limit applies the member's quota on the hub, with the limits of an existing one, and waits until it counts.
func (c *Candidate) Limit(ctx context.Context) error {
	if err := keepLimits(ctx, c.Hub, c.quota); err != nil {
		return err
	}
	if err := writing.ApplyAll(ctx, c.Hub, []*unstructured.Unstructured{c.quota}, c.Report); err != nil || c.Hub.Install.IsDryRun() {
		return err
	}
	return awaitQuota(ctx, c.Hub, c.quota)
}

// keepLimits sets the limits of a member's quota to those of the existing one, which the hub's administrator may have changed: the limits of
// the manifests are for new members, and for kinds that the existing quota does not have.
func keepLimits(ctx context.Context, hub *connection.Cluster, quota *unstructured.Unstructured) error {
	existing := &corev1.ResourceQuota{}
	err := hub.Client.Get(ctx, client.ObjectKeyFromObject(quota), existing)
	if connection.IsAbsent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get %s on the hub: %w", install.NameOf(quota), err)
	}
	for name, limit := range existing.Spec.Hard {
		if err := unstructured.SetNestedField(quota.Object, limit.String(), "spec", "hard", string(name)); err != nil {
			return fmt.Errorf("%s: %w", install.NameOf(quota), err)
		}
	}
	return nil
}

// MemberOptions returns the desired Member: from the flags, else as before.
func (c *Candidate) MemberOptions() manifests.MemberOptions {
	o := manifests.MemberOptions{
		ClusterID: c.ID, PodCIDRs: c.Own.Pods, NodeCIDRs: c.Own.Nodes, ServiceCIDRs: c.Own.Services,
		Namespaces: c.namespaces, ClaimedAges: c.ages, Properties: c.propertiesOf(),
	}
	network := c.DesiredNetwork()
	o.Network, o.Publish, o.GatewayCIDRs, o.GatewayNames = network.Network, network.Publish, network.GatewayCIDRs, network.GatewayNames
	if c.Admitted == nil {
		return o
	}
	if len(o.Namespaces) == 0 {
		for _, name := range c.Admitted.Spec.Namespaces {
			o.Namespaces = append(o.Namespaces, string(name))
		}
	}
	if o.ClaimedAges == "" {
		o.ClaimedAges = c.Admitted.Spec.ClaimedAges
	}
	return o
}

// quotaTimeout is the time after which a quota is created again. It doubles up to maxQuotaTimeout, for a slow controller.
const (
	quotaTimeout    = 3 * time.Second
	maxQuotaTimeout = 12 * time.Second
)

// awaitQuota waits until a member's quota has a status: before, the hub refuses its records. kube-controller-manager looks for
// new kinds every 30 s. It updates a quota that is older than the kinds after minutes, and a new one at once.
func awaitQuota(ctx context.Context, hub *connection.Cluster, object *unstructured.Unstructured) error {
	quota := &corev1.ResourceQuota{}
	made, pause := time.Now(), quotaTimeout
	err := connection.Poll(ctx, func(ctx context.Context) (bool, error) {
		switch err := hub.Client.Get(ctx, client.ObjectKeyFromObject(object), quota); {
		case apierrors.IsNotFound(err): // an earlier Apply has failed
		case err != nil:
			return false, connection.IgnoreTransient(err)
		case len(quota.Status.Used) == len(quota.Spec.Hard):
			return true, nil
		case time.Since(made) < pause:
			return false, nil
		}
		if _, err := hub.Install.Delete(ctx, object); err != nil {
			return false, connection.IgnoreTransient(err)
		}
		_, err := hub.Install.Apply(ctx, object)
		made, pause = time.Now(), min(2*pause, maxQuotaTimeout)
		return false, connection.IgnoreTransient(err)
	})
	if err != nil {
		return fmt.Errorf("%s does not count on the hub: does its kube-controller-manager run? %w", install.NameOf(object), err)
	}
	return nil
}

// propertiesOf returns the desired properties of the Member: those before, changed by the flags.
func (c *Candidate) propertiesOf() map[string]hubv1alpha1.PropertyValue {
	result := map[string]hubv1alpha1.PropertyValue{}
	if c.Admitted != nil {
		maps.Copy(result, c.Admitted.Spec.Properties)
	}
	for name, value := range c.properties {
		if result[name] = hubv1alpha1.PropertyValue(value); value == "" {
			delete(result, name)
		}
	}
	return result
}
