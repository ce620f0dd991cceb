// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostile_test has a member do harm with its own credentials (docs/security.md): each act once on a hub as it is
// released, once on a hub without admission policies, and what the schemas refuse once more on a hub without those. What
// refuses it is visible to administrators, and the honest members do not change.
package hostile_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// everything returns all acts of the table, in its order.
func everything() []act {
	return slices.Concat(beyondRights(), tokens(), ofOthers(), names(), addresses(), numbers(), metadata(), forms(), gateways())
}

// lasting are acts that take their time, and how each ends.
func lasting() []act {
	return []act{
		{name: "changes of a service as fast as the hub takes them", refused: []refusal{{by: pacer}}},
		{name: "records without end", refused: []refusal{{by: quota}}},
		{name: "whatever is allowed, after its rights were removed", refused: []refusal{{by: rights}}},
		{name: "whatever is allowed, after its account was deleted", refused: []refusal{{by: identity}}},
	}
}

// TestHostileMember: whatever a hostile member tries with its own credentials is refused, where it shows, or does no harm.
//
// spec: E1, E7, R8, D3, G4
func TestHostileMember(t *testing.T) {
	t.Parallel()
	t.Run("AsReleased", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t)
		before := w.honestState(t)
		w.play(t, everything(), asReleased)
		w.end(t, before)
	})
	t.Run("WithoutPolicies", func(t *testing.T) {
		t.Parallel()
		w := newEnv(t)
		w.removePolicies(t)
		before := w.honestState(t)
		w.play(t, everything(), withoutPolicies)
		w.removeSchemas(t)
		w.play(t, bySchemas(), withoutSchemas)
		w.end(t, before)
	})
	t.Cleanup(func() { t.Log("\n" + closing(t)) })
}

// bySchemas returns the acts that the schemas refuse.
func bySchemas() []act {
	return slices.DeleteFunc(everything(), func(a act) bool { return a.refuser(withoutPolicies).by != schemas })
}

// play has the hostile member do all acts, and checks that each comes out as it has to and shows.
func (w *env) play(t *testing.T, acts []act, s setup) {
	t.Helper()
	before, err := w.Hub.Denials(t.Context())
	lab.Must(t, err)
	lab.Must(t, w.attempt(t, "begin", key{}).beat(t.Context(), heartbeat()))
	var tried []act // those that the command line asks for
	refusedActs := 0
	for _, a := range acts {
		t.Run(strings.ReplaceAll(s.name+"/"+a.name, " ", "-"), func(t *testing.T) {
			tried = append(tried, a)
			if r := a.refuser(s); r.by == importer && r.reason == "" {
				refusedActs++
			}
			w.run(t, a, s)
		})
	}
	w.shown(t, tried, s, before)
	got, err := w.c.GaugeValue("tombolo_refused_records")
	lab.Must(t, err)
	if got < float64(refusedActs) {
		t.Errorf("tombolo_refused_records is %v after %d acts that the importer refuses", got, refusedActs)
	}
}

// end does what ends the hostile member's work, and checks that the honest are as they were, and can continue.
func (w *env) end(t *testing.T, before string) {
	t.Helper()
	w.witness(t)
	w.onlyOwnAddresses(t)
	lab.Equal(t, "what is the honest members' has changed", before, w.honestState(t))
	t.Run("Flood", w.testFlood)
	t.Run("Quota", w.testQuota)
	t.Run("Revoked", w.testRevoked)
	w.change(t, "10.1.0.1", "10.1.0.3")
}

// witness publishes a good service, unless that is done, and returns when it has come into c: so has what was written
// before it.
func (w *env) witness(t *testing.T) {
	t.Helper()
	k := key{Namespace: "hostile", Name: "witness-" + fmt.Sprint(time.Now().UnixNano())}
	a := w.attempt(t, "witness", k)
	service, endpoints := a.records()
	lab.Must(t, a.write(t.Context(), endpoints, service))
	w.c.Imported(t, k)
	lab.Must(t, errors.Join(a.Delete(t.Context(), service), a.Delete(t.Context(), endpoints)))
}

// change changes the honest service's endpoints, and returns when that has come into c.
func (w *env) change(t *testing.T, addresses ...string) {
	t.Helper()
	lab.Must(t, w.b.Update(t.Context(), pods(addresses...)))
	w.c.serves(t, web, addresses...)
}

// removePolicies removes the hub's policies and waits until they are out of force.
func (w *env) removePolicies(t *testing.T) {
	t.Helper()
	lab.Must(t, w.HubClient.DeleteAllOf(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{}))
	a := w.attempt(t, "probe", key{Namespace: metav1.NamespaceSystem, Name: "probe"})
	service, endpoints := a.records()
	service.Labels = map[string]string{"a": "b"}
	endpoints.Spec.Groups[0].Addresses[0] = "127.0.0.1"
	world.Eventually(t, func(ctx context.Context) error {
		_, err := a.issued(ctx, ofOneYear())
		return errors.Join(err, a.admitted(ctx, service, endpoints))
	})
}

// removeSchemas has the hub's kinds take anything, and waits until they do.
func (w *env) removeSchemas(t *testing.T) {
	t.Helper()
	const anything = `{"openAPIV3Schema": {"type": "object", "properties": {"spec": {"x-kubernetes-preserve-unknown-fields": true}}}}`
	patch := client.RawPatch(types.JSONPatchType, []byte(`[{"op": "replace", "path": "/spec/versions/0/schema", "value": `+anything+`}]`))
	for _, name := range []string{"heartbeats", "publishedservices", "publishedendpoints", "publishedgateways"} {
		definition := &unstructured.Unstructured{}
		definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
		definition.SetName(name + ".hub.tombolo-mcs.io")
		world.Eventually(t, func(ctx context.Context) error { return w.HubClient.Patch(ctx, definition, patch) })
	}
	a := w.attempt(t, "probe", key{Namespace: "hostile", Name: "probe"})
	service, endpoints := a.records()
	service.Spec.Ports[0].Port, endpoints.Spec.AddressType = 0, "none"
	beat := heartbeat()
	beat.Name, beat.Spec.Services = "other", -1
	gateway := &hubv1alpha1.PublishedGateway{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "probe"}}
	world.Eventually(t, func(ctx context.Context) error { return a.admitted(ctx, service, endpoints, beat, gateway) })
}

// admitted returns nil if the hub would accept new objects.
func (a *attempt) admitted(ctx context.Context, objects ...client.Object) error {
	var errs []error
	for _, o := range objects {
		errs = append(errs, a.Create(ctx, o.DeepCopyObject().(client.Object), client.DryRunAll))
	}
	return errors.Join(errs...)
}

// The hostile member changes the records of one service as fast as the hub takes it. Other services' changes come through
// meanwhile, and an importer writes as often as the pacer lets it.
func (w *env) testFlood(t *testing.T) {
	const writers, enough = 2, 600
	a := w.attempt(t, "flood", key{Namespace: "hostile", Name: "flood"})
	service, first := a.records()
	lab.Must(t, a.write(t.Context(), service, first))
	w.c.Imported(t, a.key)
	before, begun := w.c.writes(t), time.Now()

	var changes [writers]int
	var group sync.WaitGroup
	stop := make(chan struct{})
	end := sync.OnceFunc(func() { close(stop); group.Wait() })
	defer end()
	for i := range writers {
		record := first.DeepCopy()
		record.ResourceVersion, record.Name = "", fmt.Sprintf("%s.%010d", service.Name, i)
		lab.Must(t, a.Create(t.Context(), record))
		group.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					if n*writers >= enough {
						return
					}
				default:
				}
				record.Spec.Groups[0].Addresses[0] = hubv1alpha1.IPAddress(fmt.Sprintf("10.66.%d.%d", 100+i, n%250))
				if err := a.Update(t.Context(), record); err != nil {
					t.Error(err)
					return
				}
				changes[i]++
			}
		})
	}
	w.change(t, "10.1.0.1", "10.1.0.2") // while it continues
	end()
	took := time.Since(begun)
	total := 0
	for _, n := range changes {
		total += n
	}
	// Each reconcile of the service writes what has changed of its slices. A few reconciles have other reasons.
	bound := (60 + int(20*took.Seconds())) * writers
	written := w.c.writes(t) - before
	t.Logf("%d changes in %s, %.0f/s: %d writes in the importing cluster, at most %d", total, took, float64(total)/took.Seconds(), written, bound)
	if written > bound {
		t.Errorf("%d changes of a service in %s became %d writes in another cluster, more than %d", total, took, written, bound)
	}
}

// writes returns how often the cluster's API server has changed EndpointSlices.
func (m *member) writes(t *testing.T) int {
	t.Helper()
	requests, err := m.Cluster.Requests(t.Context())
	lab.Must(t, err)
	count := 0
	for _, r := range requests {
		if r.Resource == "endpointslices" && r.Verb == "PUT" {
			count += r.Count
		}
	}
	return count
}

// The hostile member makes objects until its quota refuses. The others' quotas are theirs.
func (w *env) testQuota(t *testing.T) {
	for made := 0; ; made++ {
		a := w.attempt(t, "quota", key{Namespace: "nowhere", Name: fmt.Sprintf("s%d", made)})
		service, _ := a.records()
		err := a.Create(t.Context(), service)
		if err == nil && made <= 150 {
			continue
		}
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: "+manifests.MemberResourceQuota) {
			t.Errorf("after %d records the hub says: %v", made, err)
		}
		break
	}
	w.logged(t, "quota", http.StatusForbidden)
	w.change(t, "10.1.0.1", "10.1.0.2", "10.1.0.4")
}

// A member whose rights are removed is refused at once, and one whose account is deleted is not authenticated.
func (w *env) testRevoked(t *testing.T) {
	a := w.attempt(t, "revoked", key{Namespace: "shared", Name: "late"})
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: manifests.MemberServiceAccount}}
	lab.Must(t, w.HubClient.Delete(t.Context(), binding))
	refusedFor := func(reason func(error) bool) func(context.Context) error {
		return func(ctx context.Context) error {
			service, _ := a.records()
			if err := a.Client.Create(ctx, service, client.DryRunAll); !reason(err) {
				return fmt.Errorf("the hub says: %w", err)
			}
			return nil
		}
	}
	world.Eventually(t, refusedFor(func(err error) bool {
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "cannot create resource")
	}))
	w.logged(t, "revoked", http.StatusForbidden)
	lab.Must(t, w.HubClient.Delete(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: manifests.MemberServiceAccount}}))
	world.Eventually(t, refusedFor(apierrors.IsUnauthorized))
}
