// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/manifests"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
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
	made, pause := time.Now(), 2*time.Second
	return lab.Await(ctx, 100*time.Millisecond, waitLimit, func(ctx context.Context) error {
		err := cl.Get(ctx, client.ObjectKeyFromObject(objects[i]), quota)
		switch {
		case apierrors.IsNotFound(err): // it was deleted, and could not be applied
			return errors.Join(err, Apply(ctx, hub, objects[i]))
		case err != nil || len(quota.Status.Used) == len(quota.Spec.Hard):
			return err
		}
		err = fmt.Errorf("the quota of %s counts %v only", objects[i].GetNamespace(), quota.Status.Used)
		if time.Since(made) < pause {
			return err
		}
		made, pause = time.Now(), 2*pause // a controller that is merely slow must get its time in the end
		return errors.Join(err, cl.Delete(ctx, quota), Apply(ctx, hub, objects[i]))
	})
}

// errAdmitted says that the hub's policies are not in force.
var errAdmitted = errors.New("a record with a loopback address is admitted")

// awaitPolicies returns when the hub refuses a bad record of the member and admits a good one. An API server notices a
// policy after a second, and one that has just met its first Member delays records for another: a test that checks
// times, or at refusals, should not begin before.
func awaitPolicies(ctx context.Context, hub *lab.Cluster, o manifests.MemberOptions) error {
	scheme := runtime.NewScheme()
	if err := hubv1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	cl, err := hub.Client(scheme)
	if err != nil {
		return err
	}
	err = lab.Await(ctx, 100*time.Millisecond, waitLimit, func(ctx context.Context) error {
		if err := cl.Create(ctx, record(o, "127.0.0.1"), client.DryRunAll); err == nil {
			return errAdmitted
		}
		return cl.Create(ctx, record(o), client.DryRunAll)
	})
	if err != nil {
		return fmt.Errorf("the hub's policies are not in force: %w", err)
	}
	return nil
}

// AwaitFullQuota returns when the hub refuses another slice of a member because its quota is used up. A quota counts once its
// controller has seen it, and an API server may go by an older one for a moment.
func AwaitFullQuota(ctx context.Context, hub client.Client, member clusterset.ClusterID) error {
	return lab.Await(ctx, 100*time.Millisecond, waitLimit, func(ctx context.Context) error {
		err := hub.Create(ctx, record(manifests.MemberOptions{ClusterID: member}), client.DryRunAll)
		if err == nil || !strings.Contains(err.Error(), "exceeded quota") {
			return fmt.Errorf("another slice of %s is not refused for its quota, but answered by %v", member, err) //nolint:errorlint // it may be nil
		}
		return nil
	})
}

// record returns a record of a slice, good but for its addresses.
func record(o manifests.MemberOptions, addresses ...hubv1alpha1.IPAddress) *hubv1alpha1.PublishedEndpoints {
	namespace := "default"
	if len(o.Namespaces) > 0 {
		namespace = o.Namespaces[0]
	}
	result := &hubv1alpha1.PublishedEndpoints{
		ObjectMeta: metav1.ObjectMeta{Namespace: o.ClusterID.HubNamespace(), Name: namespace + ".probe.0123456789"},
		Spec: hubv1alpha1.PublishedEndpointsSpec{
			Namespace: hubv1alpha1.NamespaceName(namespace), Service: "probe", AddressType: "IPv4",
		},
	}
	if len(addresses) > 0 {
		result.Spec.Groups = []hubv1alpha1.EndpointGroup{{Ready: new(true), Addresses: addresses}}
	}
	return result
}
