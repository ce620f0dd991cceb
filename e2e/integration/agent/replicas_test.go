// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestTwoAgentsAtOnce: two agents that work for the same cluster at the same time, as no lease allows but for a moment,
// double nothing, and come to rest.
//
// spec: D2, D7, I1
func TestTwoAgentsAtOnce(t *testing.T) {
	t.Parallel()
	w, a, b := newPair(t)
	for _, m := range []*member{a, b} {
		m.Start(t)
		m.Start(t)
	}
	keys := services(world.Namespace(t, a, b), "svc", 30)
	atOnce(t, keys, a.ExportOne)
	for _, k := range keys {
		a.Condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
	}
	b.holdsEach(t, keys)
	w.settled(t)
	b.holdsEach(t, keys)
	w.publishedEach(t, "a", len(keys))

	atOnce(t, keys, func(ctx context.Context, k key) error { return a.Delete(ctx, world.Export(k)) })
	a.Gone(t, keys...)
	b.Gone(t, keys...)
	w.settled(t)
	w.publishedEach(t, "a", 0)
}

// TestLeaseLost: a leader that loses its lease while services are being exported ends; another exports the rest, and those
// that come later; every service is exported and imported, once.
//
// spec: E2, I1
func TestLeaseLost(t *testing.T) {
	t.Parallel()
	const exports, leaderless = 60, 10
	w, a, b := newPair(t)
	w.limitServices(t, "a", "250") // two leaders may both ask for one
	elect := func(o *agent.Options) { o.Election, o.Namespace = agent.ElectLeader, manifests.AgentNamespace }
	b.Start(t)
	ended := a.Run(t.Context(), t, elect)
	world.Eventually(t, func(ctx context.Context) error { return a.says(ctx, w, hubv1alpha1.PublicationComplete) })
	a.startReplica(t, manifests.AgentNamespace)
	keys := services(world.Namespace(t, a, b), "svc", exports)
	created, lost := atomic.Int32{}, make(chan error, 1)
	atOnce(t, keys[leaderless:], func(ctx context.Context, k key) error {
		if created.Add(1) == exports/2 {
			lost <- a.loseLease(ctx)
		}
		return a.ExportOne(ctx, k)
	})
	lab.Must(t, <-lost)
	if err := <-ended; err == nil {
		t.Error("the leader did not end with an error when it lost its lease")
	}
	atOnce(t, keys[:leaderless], a.ExportOne) // the next leader exports these, however fast the first was
	for _, k := range keys {
		a.Condition(t, k, conflict, metav1.ConditionFalse, "NoConflicts")
		a.Condition(t, k, ready, metav1.ConditionTrue, "Exported")
	}
	a.holdsEach(t, keys)
	b.holdsEach(t, keys)
	w.publishedEach(t, "a", len(keys))
}

// limitServices changes how many services a member may publish by its quota on the hub, and returns when that counts. How many there are
// is what the quota's controller saw when it last looked: that may be too few, and stays so for minutes.
func (w *env) limitServices(t *testing.T, id, number string) {
	t.Helper()
	const services corev1.ResourceName = "count/publishedservices.hub.tombolo-mcs.io"
	quota := &corev1.ResourceQuota{}
	world.Eventually(t, func(ctx context.Context) error {
		if err := w.HubClient.Get(ctx, key{Namespace: "member-" + id, Name: "tombolo"}, quota); err != nil {
			return err
		}
		quota.Spec.Hard[services] = resource.MustParse(number)
		return w.HubClient.Update(ctx, quota)
	})
	world.Await(t, w.HubClient, client.ObjectKeyFromObject(quota), quota, func(quota *corev1.ResourceQuota) error {
		if hard := quota.Status.Hard[services]; hard.String() != number {
			return fmt.Errorf("%s may publish %s services yet, not %s", id, hard.String(), number)
		}
		return nil
	})
}

// loseLease gives the agents' lease to a holder that lets it expire after 15 s. A leader gives up after 10 s.
func (m *member) loseLease(ctx context.Context) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		lease := &coordinationv1.Lease{}
		if err := m.Get(ctx, key{Namespace: manifests.AgentNamespace, Name: "tombolo-agent"}, lease); err != nil {
			return err
		}
		lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds = new("somebody-else"), new(int32(15))
		return m.Update(ctx, lease)
	})
}

// holdsEach waits until a namespace has exactly one import, which is ready, one derived Service and one mirrored slice for
// each service.
func (m *member) holdsEach(t *testing.T, keys []key) {
	t.Helper()
	in := client.InNamespace(keys[0].Namespace)
	world.Eventually(t, func(ctx context.Context) error {
		imports, services, mirrored := &mcsv1beta1.ServiceImportList{}, &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}
		if err := errors.Join(
			m.List(ctx, imports, in),
			m.List(ctx, services, in, client.HasLabels{mcsv1beta1.LabelServiceName}),
			m.List(ctx, mirrored, in, client.HasLabels{mcsv1beta1.LabelServiceName}),
		); err != nil {
			return err
		}
		if len(imports.Items) != len(keys) || len(services.Items) != len(keys) || len(mirrored.Items) != len(keys) {
			return fmt.Errorf("%s: %d imports, %d derived Services, %d slices of %d services",
				m.ID, len(imports.Items), len(services.Items), len(mirrored.Items), len(keys))
		}
		derived, endpoints := map[string]string{}, map[string]int{}
		for _, s := range services.Items {
			derived[s.Name] = s.Labels[mcsv1beta1.LabelServiceName]
		}
		for _, s := range mirrored.Items {
			endpoints[s.Labels[mcsv1beta1.LabelServiceName]] += len(s.Endpoints)
		}
		for _, i := range imports.Items {
			isReady := meta.IsStatusConditionTrue(i.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady))
			if name := i.Annotations["multicluster.kubernetes.io/derived-service"]; !isReady || derived[name] != i.Name || endpoints[i.Name] != 1 {
				return fmt.Errorf("%s: import %s with derived Service %q of %q and %d endpoints: %+v",
					m.ID, i.Name, name, derived[name], endpoints[i.Name], i.Status)
			}
		}
		return nil
	})
}

// publishedEach fails unless the hub holds so many services of a member, and so many records of endpoints.
func (w *env) publishedEach(t *testing.T, id string, want int) {
	t.Helper()
	services, endpoints := &hubv1alpha1.PublishedServiceList{}, &hubv1alpha1.PublishedEndpointsList{}
	world.Eventually(t, func(ctx context.Context) error { // endpoints go after their service
		in := client.InNamespace("member-" + id)
		if err := errors.Join(w.HubClient.List(ctx, services, in), w.HubClient.List(ctx, endpoints, in)); err != nil {
			return err
		}
		if len(services.Items) != want || len(endpoints.Items) != want {
			return fmt.Errorf("the hub holds %d services and %d records of endpoints of %s, want %d each", len(services.Items), len(endpoints.Items), id, want)
		}
		return nil
	})
}
