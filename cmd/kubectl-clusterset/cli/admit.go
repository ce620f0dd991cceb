// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// admit creates the member's namespace and objects on the hub.
func (j *joinCommand) admit(ctx context.Context) error {
	objects, err := manifests.Member(j.memberOptions())
	if err != nil {
		return err
	}
	for _, object := range objects {
		if object.GetKind() == "Member" && j.uid != "" {
			object.SetAnnotations(map[string]string{annotationClusterUID: j.uid})
		}
	}
	if err := applyAll(ctx, j.hub, objects, j.r); err != nil {
		return err
	}
	if j.isDryRun() {
		return nil
	}
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ResourceQuota" })
	return awaitQuota(ctx, j.hub, objects[i])
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
		if err := hub.client.Get(ctx, client.ObjectKeyFromObject(object), quota); err != nil {
			return false, ignoreTransient(err)
		}
		if len(quota.Status.Used) == len(quota.Spec.Hard) {
			return true, nil
		}
		if time.Since(made) < pause {
			return false, nil
		}
		if _, err := hub.install.Delete(ctx, object); err != nil {
			return false, err
		}
		_, err := hub.install.Apply(ctx, object)
		made, pause = time.Now(), min(2*pause, maxQuotaTimeout)
		return false, err
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
