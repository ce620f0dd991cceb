// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcscrd "sigs.k8s.io/mcs-api/config/crd"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
)

func memberRestarted(ctx context.Context, w *world) error {
	m := w.members[w.random.IntN(len(w.members))]
	pause(ctx, 2*time.Second)
	w.must(m.cluster.APIServer.Stop(ctx))
	err := m.List(ctx, &mcsv1beta1.ServiceExportList{}, client.Limit(1))
	pause(ctx, time.Second)
	if ended := m.cluster.APIServer.Start(ctx); ended != nil {
		return ended
	}
	if err == nil {
		return fmt.Errorf("%s answers: %w", m.id, errNoEffect)
	}
	return nil
}

// mirrored returns the slices that a member has of another's service.
func (m *member) mirrored(ctx context.Context, k oracle.Key, source string) ([]discoveryv1.EndpointSlice, error) {
	list := &discoveryv1.EndpointSliceList{}
	err := m.List(ctx, list, client.InNamespace(k.Namespace), client.MatchingLabels{
		mcsv1beta1.LabelServiceName: k.Name, mcsv1beta1.LabelSourceCluster: source,
	})
	return list.Items, err
}

// editedByHand changes and deletes each kind of object of an import; what should be there comes back.
func editedByHand(ctx context.Context, w *world) error {
	first := w.random.IntN(stillServices)
	for round := range 2 {
		m := w.members[w.random.IntN(len(w.members))]
		k := stillKey((first + round) % stillServices) // another one: the first is being repaired
		w.watch.will(oracle.Hand, m.id, k)
		serviceImport := &mcsv1beta1.ServiceImport{}
		w.must(m.Get(ctx, k, serviceImport))
		name := client.ObjectKey{Namespace: still, Name: serviceImport.Annotations["multicluster.kubernetes.io/derived-service"]}
		derived := &corev1.Service{}
		w.must(m.Get(ctx, name, derived))
		mirrored, err := m.mirrored(ctx, k, "a")
		if err != nil || len(mirrored) == 0 {
			return fmt.Errorf("slices of %s: %d, %w", k, len(mirrored), err)
		}
		acts := []func() error{
			func() error {
				return m.edit(ctx, serviceImport, func() { serviceImport.Spec.Ports, serviceImport.Labels["x"] = []mcsv1beta1.ServicePort{}, "y" })
			},
			func() error {
				return m.edit(ctx, derived, func() { derived.Spec.Ports[0].Port, derived.Spec.Selector = 7777, map[string]string{"app": "x"} })
			},
			func() error { return m.edit(ctx, &mirrored[0], func() { mirrored[0].Endpoints = nil }) },
			func() error { return m.Delete(ctx, &mirrored[0]) },
			func() error { return m.Delete(ctx, derived) },
			func() error { return m.Delete(ctx, serviceImport) },
		}
		if round > 0 { // a Service and its import together would take the memory of the addresses away
			acts = acts[:5]
		} else {
			acts = append(acts[:4], acts[5])
		}
		for _, act := range acts {
			w.must(client.IgnoreNotFound(act()))
		}
	}
	return nil
}

// edit changes an object as it is now.
func (m *member) edit(ctx context.Context, o client.Object, change func()) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := m.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		before := o.GetResourceVersion()
		change()
		if err := m.Update(ctx, o); err != nil {
			return err
		}
		if o.GetResourceVersion() == before {
			return fmt.Errorf("%T %s did not change: %w", o, o.GetName(), errNoEffect)
		}
		return nil
	})
}

// namespaceRecreated deletes a namespace into which services are imported, and makes it again.
func namespaceRecreated(ctx context.Context, w *world) error {
	m := w.members[2]
	before, after := &corev1.Namespace{}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: aside}}
	w.must(w.furnishAside(ctx))
	w.must(m.Get(ctx, client.ObjectKey{Name: aside}, before))
	w.watch.will(oracle.Namespace, m.id, oracle.Key{Namespace: aside})
	w.must(m.Delete(ctx, before.DeepCopy()))
	err := eventually(ctx, func(ctx context.Context) error {
		if err := client.IgnoreAlreadyExists(m.Create(ctx, after)); err != nil {
			return err
		}
		if err := m.Get(ctx, client.ObjectKey{Name: aside}, after); err != nil {
			return err
		}
		if after.UID == before.UID {
			after = &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: aside}}
			return errNoEffect
		}
		return nil
	})
	return errors.Join(err, w.clearAside(ctx))
}

// furnishAside has the first member export a service in the namespace for that.
func (w *world) furnishAside(ctx context.Context) error {
	k := oracle.Key{Namespace: aside, Name: "web"}
	return errors.Join(w.offer(ctx, w.members[0], service(k, 0), w.random), w.imported(ctx, k))
}

// imported returns when all members have imported a service.
func (w *world) imported(ctx context.Context, k oracle.Key) error {
	for _, m := range w.members {
		w.must(eventually(ctx, func(ctx context.Context) error { return m.Get(ctx, k, &mcsv1beta1.ServiceImport{}) }))
	}
	return nil
}

func (w *world) clearAside(ctx context.Context) error {
	return w.withdraw(ctx, w.members[0], oracle.Key{Namespace: aside, Name: "web"})
}

// writesRefused has a member's API server refuse whatever the agent writes in one namespace. The others go on.
func writesRefused(ctx context.Context, w *world) error {
	m := w.members[1]
	policy, binding := refusal()
	w.must(m.Create(ctx, policy), m.Create(ctx, binding))
	probe := service(oracle.Key{Namespace: aside, Name: "probe"}, 0)
	probe.Labels = map[string]string{"app.kubernetes.io/managed-by": "tombolo-mcs.io"}
	err := eventually(ctx, func(ctx context.Context) error {
		if err := m.Create(ctx, probe.DeepCopy(), client.DryRunAll); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			return fmt.Errorf("a write is not refused (%v): %w", err, errNoEffect)
		}
		return nil
	})
	w.must(err)
	k := oracle.Key{Namespace: aside, Name: "web"}
	w.must(w.offer(ctx, w.members[0], service(k, 1), w.random))
	elsewhere := oracle.Key{Namespace: moving, Name: "elsewhere"}
	w.must(w.offer(ctx, w.members[0], service(elsewhere, 1), w.random))
	if err := eventually(ctx, func(ctx context.Context) error { return m.Get(ctx, elsewhere, &mcsv1beta1.ServiceImport{}) }); err != nil {
		return fmt.Errorf("the other namespaces do not go on: %w", err)
	}
	if err := m.Get(ctx, k, &mcsv1beta1.ServiceImport{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("it was imported (%v): %w", err, errNoEffect)
	}
	w.must(m.Delete(ctx, binding), m.Delete(ctx, policy))
	w.must(eventually(ctx, func(ctx context.Context) error { return m.Get(ctx, k, &mcsv1beta1.ServiceImport{}) }))
	return errors.Join(w.clearAside(ctx), w.withdraw(ctx, w.members[0], elsewhere))
}

// refusal returns a policy that refuses all objects with Tombolo's mark in one namespace, and its binding.
func refusal() (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	name := metav1.ObjectMeta{Name: "chaos.example.com"}
	rule := admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{"", "discovery.k8s.io", "multicluster.x-k8s.io"}, APIVersions: []string{"*"}, Resources: []string{"services", "endpointslices", "serviceimports"}},
	}}
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: name, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{rule}},
		Validations: []admissionv1.Validation{{
			Expression: `object.metadata.namespace != "` + aside + `" || !has(object.metadata.labels) || object.metadata.labels.all(k, object.metadata.labels[k] != "tombolo-mcs.io")`,
			Message:    "nothing of the kind here",
		}},
	}}
	return policy, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: name, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
}

// importsUndefined removes the CRD of ServiceImports from a member, with all of them, and adds it again.
func importsUndefined(ctx context.Context, w *world) error {
	m := w.members[1]
	seen, err := w.look(ctx)
	w.must(err)
	for _, c := range seen.Clusters {
		for _, i := range c.Imports {
			w.watch.will(oracle.Hand, m.id, client.ObjectKeyFromObject(&i))
		}
	}
	definition := &unstructured.Unstructured{}
	definition.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	definition.SetName("serviceimports.multicluster.x-k8s.io")
	w.must(m.Delete(ctx, definition))
	err = eventually(ctx, func(ctx context.Context) error {
		if err := m.List(ctx, &mcsv1beta1.ServiceImportList{}); !apierrors.IsNotFound(err) && !apimeta.IsNoMatchError(err) {
			return fmt.Errorf("ServiceImports are still known (%v): %w", err, errNoEffect)
		}
		return nil
	})
	pause(ctx, 5*time.Second)
	w.must(err, m.cluster.InstallCRDs(ctx, mcscrd.ServiceImportCRD))
	w.must(m.reverts(ctx, stillKey(0)))
	return w.estrange(ctx) // the other went as well
}

// reverts returns when an import is there and the member's agent has put right what a user has changed in it: it watches
// imports.
func (m *member) reverts(ctx context.Context, k oracle.Key) error {
	found := &mcsv1beta1.ServiceImport{ObjectMeta: meta(k)}
	err := eventually(ctx, func(ctx context.Context) error {
		return m.edit(ctx, found, func() { found.Labels["x"] = "y" })
	})
	if err != nil {
		return err
	}
	return shown(ctx, m, k, found, func() error {
		if found.Labels["x"] != "" {
			return fmt.Errorf("a change of import %s by hand is not reverted", k)
		}
		return nil
	})
}
