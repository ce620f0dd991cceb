// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

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
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// admit creates the member's namespace and objects on the hub, without the quota. Of an existing member, it changes only the settings of the
// Member that a flag sets: nothing else may delay a new token.
func (j *joinCommand) admit(ctx context.Context) error {
	objects, err := manifests.Member(j.memberOptions())
	if err != nil {
		return err
	}
	isQuota := func(o *unstructured.Unstructured) bool { return o.GetKind() == "ResourceQuota" }
	j.quota = objects[slices.IndexFunc(objects, isQuota)]
	for _, object := range slices.DeleteFunc(objects, isQuota) {
		var outcome install.Outcome
		switch isMember := object.GetKind() == "Member"; {
		case isMember && j.admitted != nil:
			outcome, err = j.updateMember(ctx, object)
		case isMember && j.uid != "":
			object.SetAnnotations(map[string]string{annotationClusterUID: j.uid})
			fallthrough
		default:
			outcome, err = j.hub.install.Apply(ctx, object)
		}
		if j.admitted != nil && apierrors.IsConflict(err) {
			j.r.notef("kept as it is: %v", err)
			continue
		}
		if err != nil {
			return err
		}
		if err := j.r.applied(outcome, object); err != nil {
			return err
		}
	}
	if j.admitted == nil {
		return j.limit(ctx)
	}
	return nil
}

// updateMember writes the settings of an existing Member that differ, also if kubectl or a GitOps tool has written them.
func (j *joinCommand) updateMember(ctx context.Context, desired *unstructured.Unstructured) (install.Outcome, error) {
	wanted, edited := &hubv1alpha1.Member{}, j.admitted.DeepCopy()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(desired.Object, wanted); err != nil {
		return "", fmt.Errorf("%s: %w", nameOf(desired), err)
	}
	wanted.Spec.Suspended = edited.Spec.Suspended
	edited.Spec = wanted.Spec
	if j.uid != "" && edited.Annotations[annotationClusterUID] == "" {
		edited.Annotations = maps.Clone(edited.Annotations)
		if edited.Annotations == nil {
			edited.Annotations = map[string]string{}
		}
		edited.Annotations[annotationClusterUID] = j.uid
	}
	outcome, err := j.hub.install.Patch(ctx, j.admitted, edited)
	if err == nil && !equality.Semantic.DeepEqual(j.admitted.Spec, edited.Spec) {
		j.noteOtherManagers()
	}
	return outcome, err
}

// noteOtherManagers says that another client applies the Member too, so that its next apply reverts what has changed here.
func (j *joinCommand) noteOtherManagers() {
	for _, m := range j.admitted.ManagedFields {
		if m.Manager != install.FieldManager && m.Subresource == "" && m.FieldsV1 != nil && bytes.Contains(m.FieldsV1.GetRawBytes(), []byte(`"f:spec"`)) {
			j.r.notef("%s has written this Member too: make the same change there, or its next apply reverts it", m.Manager)
		}
	}
}

// limit applies the member's quota on the hub, with the limits of an existing one, and waits until it counts.
func (j *joinCommand) limit(ctx context.Context) error {
	if err := keepLimits(ctx, j.hub, j.quota); err != nil {
		return err
	}
	if err := applyAll(ctx, j.hub, []*unstructured.Unstructured{j.quota}, j.r); err != nil || j.isDryRun() {
		return err
	}
	return awaitQuota(ctx, j.hub, j.quota)
}

// keepLimits sets the limits of a member's quota to those of the existing one, which the hub's administrator may have changed: the limits of
// the manifests are for new members, and for kinds that the existing quota does not have.
func keepLimits(ctx context.Context, hub *cluster, quota *unstructured.Unstructured) error {
	existing := &corev1.ResourceQuota{}
	err := hub.client.Get(ctx, client.ObjectKeyFromObject(quota), existing)
	if isAbsentKind(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get %s on the hub: %w", nameOf(quota), err)
	}
	for name, limit := range existing.Spec.Hard {
		if err := unstructured.SetNestedField(quota.Object, limit.String(), "spec", "hard", string(name)); err != nil {
			return fmt.Errorf("%s: %w", nameOf(quota), err)
		}
	}
	return nil
}

// memberOptions returns the desired Member: from the flags, else as before.
func (j *joinCommand) memberOptions() manifests.MemberOptions {
	o := manifests.MemberOptions{
		ClusterID: j.id, PodCIDRs: j.own.pods, NodeCIDRs: j.own.nodes, ServiceCIDRs: j.own.services,
		Namespaces: j.namespaces, ClaimedAges: j.ages, Properties: j.propertiesOf(),
	}
	network := j.networkOf(j.admitted, j.others)
	o.Network, o.Publish, o.GatewayCIDRs, o.GatewayNames = network.Network, network.Publish, network.GatewayCIDRs, network.GatewayNames
	if j.admitted == nil {
		return o
	}
	if len(o.Namespaces) == 0 {
		for _, name := range j.admitted.Spec.Namespaces {
			o.Namespaces = append(o.Namespaces, string(name))
		}
	}
	if o.ClaimedAges == "" {
		o.ClaimedAges = j.admitted.Spec.ClaimedAges
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
func awaitQuota(ctx context.Context, hub *cluster, object *unstructured.Unstructured) error {
	quota := &corev1.ResourceQuota{}
	made, pause := time.Now(), quotaTimeout
	err := poll(ctx, func(ctx context.Context) (bool, error) {
		switch err := hub.client.Get(ctx, client.ObjectKeyFromObject(object), quota); {
		case apierrors.IsNotFound(err): // an earlier Apply has failed
		case err != nil:
			return false, ignoreTransient(err)
		case len(quota.Status.Used) == len(quota.Spec.Hard):
			return true, nil
		case time.Since(made) < pause:
			return false, nil
		}
		if _, err := hub.install.Delete(ctx, object); err != nil {
			return false, ignoreTransient(err)
		}
		_, err := hub.install.Apply(ctx, object)
		made, pause = time.Now(), min(2*pause, maxQuotaTimeout)
		return false, ignoreTransient(err)
	})
	if err != nil {
		return fmt.Errorf("%s does not count on the hub: does its kube-controller-manager run? %w", nameOf(object), err)
	}
	return nil
}

// heartbeat returns the member's Heartbeat on the hub, nil if there is none.
func (j *joinCommand) heartbeat(ctx context.Context) (*hubv1alpha1.Heartbeat, error) {
	beat := &hubv1alpha1.Heartbeat{}
	err := j.hub.client.Get(ctx, client.ObjectKey{Namespace: j.id.HubNamespace(), Name: hubv1alpha1.HeartbeatName}, beat)
	if isAbsentKind(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get the heartbeat of %s on the hub: %w", j.id, err)
	}
	return beat, nil
}
