// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
	"github.com/tombolo-mcs/tombolo/pkg/render"
)

// refusing is a cluster with a used up quota, and with a Service derived-1 of another program.
type refusing struct{ client.Client }

const quota = "exceeded quota: few, requested: services=1, used: services=5, limited: services=5"

// Create fails.
func (refusing) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	services := schema.GroupResource{Resource: "services"}
	if object.GetName() == "derived-1" {
		return apierrors.NewAlreadyExists(services, object.GetName())
	}
	return apierrors.NewForbidden(services, object.GetName(), errors.New(quota))
}

// Get returns the object as it is, without our labels.
func (refusing) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return nil
}

// TestRefusals: the condition of an import names what is refused as users know it, each reason once: the quota and the hostnames, not the
// names of Services that contain hashes.
//
// spec: C6, G9
func TestRefusals(t *testing.T) {
	t.Parallel()
	var changes []plan.Change[*corev1.Service]
	for i := range 2 {
		ip := clusterset.VirtualIP{Service: clusterset.ServiceKey{Namespace: "shop", Name: "db"}, Cluster: "b", Hostname: fmt.Sprintf("db-%d", i)}
		changes = append(changes, plan.Change[*corev1.Service]{Verb: plan.Create, Object: render.VirtualService(ip, nil, nil, nil)})
	}
	foreign := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "derived-1"}}
	writer := apply.ToMember(refusing{}, refusing{})
	_, virtual := apply.Do(t.Context(), writer, changes)
	_, derived := apply.Do(t.Context(), writer, []plan.Change[*corev1.Service]{{Verb: plan.Create, Object: foreign}})
	got := conditions.ImportPending(refusalsOf(errors.Join(virtual, derived)))
	check.Equal(t, "message", "Hostname db-0 of cluster b, hostname db-1 of cluster b cannot be written: "+quota+
		"; raise the quota, or change the rights or the policy that refuse it. "+
		"Service shop/derived-1 cannot be written: it is not managed by Tombolo and is left alone: rename or delete it.", got.Message)
}
