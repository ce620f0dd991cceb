// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package membership

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

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
	var last error
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, waitLimit, true, func(ctx context.Context) (bool, error) {
		if err := cl.Create(ctx, record(o, "127.0.0.1"), client.DryRunAll); err == nil {
			last = errAdmitted
			return false, nil
		}
		err := cl.Create(ctx, record(o), client.DryRunAll)
		if ctx.Err() == nil {
			last = err
		}
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("the hub's policies are not in force (%w): %w", last, err)
	}
	return nil
}

// AwaitFullQuota returns when the hub refuses another slice of a member because its quota is used up. A quota counts once its
// controller has seen it, and an API server may go by an older one for a moment.
func AwaitFullQuota(ctx context.Context, hub client.Client, member clusterset.ClusterID) error {
	another := record(manifests.MemberOptions{ClusterID: member})
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, waitLimit, true, func(ctx context.Context) (bool, error) {
		err := hub.Create(ctx, another.DeepCopy(), client.DryRunAll)
		if ctx.Err() == nil {
			last = err
		}
		return err != nil && strings.Contains(err.Error(), "exceeded quota"), nil
	})
	if err != nil {
		return fmt.Errorf("another slice of %s is not refused for its quota, but answered by %v: %w", member, last, err)
	}
	return nil
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
