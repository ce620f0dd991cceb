// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/manifests"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// clusterSetName is the value of ClusterProperty clusterset.k8s.io in all members.
const clusterSetName = "lab"

// InstallCRDs installs what a cluster must know for an agent to start: ServiceExport, ServiceImport, ClusterProperty, and the kinds of
// policy.tombolo-mcs.io, which are installed with the agent.
func InstallCRDs(ctx context.Context, cluster *lab.Cluster) error {
	definitions, err := manifests.MemberDefinitions()
	if err != nil {
		return err
	}
	policies, err := manifests.Render("crd/policy")
	if err != nil {
		return err
	}
	return Apply(ctx, cluster, append(definitions, policies...)...)
}

// Declare makes a cluster say of itself who it is, and that it is a member (spec K1).
func Declare(ctx context.Context, cluster *lab.Cluster, id clusterset.ClusterID) error {
	for _, p := range []struct{ name, value string }{
		{aboutv1beta1.ClusterIDProperty, string(id)},
		{aboutv1beta1.ClusterSetProperty, clusterSetName},
	} {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&aboutv1beta1.ClusterProperty{
			TypeMeta:   metav1.TypeMeta{APIVersion: aboutv1beta1.GroupVersion.String(), Kind: "ClusterProperty"},
			ObjectMeta: metav1.ObjectMeta{Name: p.name},
			Spec:       aboutv1beta1.ClusterPropertySpec{Value: p.value},
		})
		if err != nil {
			return err
		}
		if err := Apply(ctx, cluster, &unstructured.Unstructured{Object: content}); err != nil {
			return err
		}
	}
	return nil
}

// Admit makes room for a member on the hub and returns its credentials there once the hub admits its good records and
// refuses bad ones: its quota counts, and the policies are in force.
func Admit(ctx context.Context, hub *lab.Cluster, o manifests.MemberOptions) (*rest.Config, error) {
	objects, err := manifests.Member(o)
	if err != nil {
		return nil, err
	}
	if err := Apply(ctx, hub, objects...); err != nil {
		return nil, err
	}
	if err := awaitQuota(ctx, hub, objects); err != nil {
		return nil, err
	}
	if err := awaitPolicies(ctx, hub, o); err != nil {
		return nil, err
	}
	return hub.ServiceAccountConfig(ctx, o.ClusterID.HubNamespace(), manifests.MemberServiceAccount)
}

// awaitQuota returns when the quota among a member's objects counts. One that was made before the quota controller knew
// the kinds would wait 5 minutes for its next full pass; to a new one it turns at once.
func awaitQuota(ctx context.Context, hub *lab.Cluster, objects []*unstructured.Unstructured) error {
	cl, err := hub.Client(nil)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "ResourceQuota" })
	if i < 0 {
		return nil
	}
	quota := &corev1.ResourceQuota{}
	var last error
	made, pause := time.Now(), 2*time.Second
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, waitLimit, true, func(ctx context.Context) (bool, error) {
		if last = cl.Get(ctx, client.ObjectKeyFromObject(objects[i]), quota); last != nil {
			return false, nil //nolint:nilerr // the last is returned
		}
		if len(quota.Status.Used) == len(quota.Spec.Hard) {
			return true, nil
		}
		if time.Since(made) < pause {
			return false, nil
		}
		made, pause = time.Now(), 2*pause // a controller that is merely slow must get its time in the end
		if err := cl.Delete(ctx, quota); err != nil {
			return false, err
		}
		return false, Apply(ctx, hub, objects[i])
	})
	if err != nil {
		return fmt.Errorf("the quota of %s counts %v only: %w", objects[i].GetNamespace(), quota.Status.Used, errors.Join(err, last))
	}
	return nil
}

func clusterID(cluster *lab.Cluster) clusterset.ClusterID { return clusterset.ClusterID(cluster.Name) }
