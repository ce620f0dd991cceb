// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
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

// definitionsReplaced has a member serve only the older version of the API for some time, while services change. Its agent reports it, and
// continues without a restart.
func definitionsReplaced(ctx context.Context, w *world) error {
	m, k := w.members[1], oracle.Key{Namespace: scratch, Name: "web"}
	w.must(membership.ServeOldAPI(ctx, m))
	err := eventually(ctx, func(ctx context.Context) error {
		if err := m.List(ctx, &mcsv1beta1.ServiceExportList{}, client.Limit(1)); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%s serves the kind (%v): %w", m.id, err, errNoEffect)
		}
		return nil
	})
	w.must(err, w.offer(ctx, w.members[0], service(k, 1), w.random))
	pause(ctx, 2*heartbeat) // the other members import it
	w.must(membership.InstallCRDs(ctx, m.cluster), w.imported(ctx, k))
	return w.withdrawScratch(ctx)
}

// mirrored returns the slices that a member has of another's service.
func (m *member) mirrored(ctx context.Context, k oracle.Key, source string) ([]discoveryv1.EndpointSlice, error) {
	list := &discoveryv1.EndpointSliceList{}
	err := m.List(ctx, list, client.InNamespace(k.Namespace), client.MatchingLabels{
		mcsv1beta1.LabelServiceName: k.Name, mcsv1beta1.LabelSourceCluster: source,
	})
	return list.Items, err
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

// exportScratch has the first member export a service in the namespace for that.
func (w *world) exportScratch(ctx context.Context) error {
	k := oracle.Key{Namespace: scratch, Name: "web"}
	return errors.Join(w.offer(ctx, w.members[0], service(k, 0), w.random), w.imported(ctx, k))
}

// imported returns when all members have imported a service.
func (w *world) imported(ctx context.Context, k oracle.Key) error {
	for _, m := range w.members {
		w.must(eventually(ctx, func(ctx context.Context) error { return m.Get(ctx, k, &mcsv1beta1.ServiceImport{}) }))
	}
	return nil
}

func (w *world) withdrawScratch(ctx context.Context) error {
	return w.withdraw(ctx, w.members[0], oracle.Key{Namespace: scratch, Name: "web"})
}

// writesRefused has a member's API server refuse whatever the agent writes in one namespace. The others continue.
func writesRefused(ctx context.Context, w *world) error {
	m := w.members[1]
	policy, binding := refusal()
	w.must(m.Create(ctx, policy), m.Create(ctx, binding))
	probe := service(oracle.Key{Namespace: scratch, Name: "probe"}, 0)
	probe.Labels = map[string]string{"app.kubernetes.io/managed-by": "tombolo-mcs.io"}
	err := eventually(ctx, func(ctx context.Context) error {
		if err := m.Create(ctx, probe.DeepCopy(), client.DryRunAll); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			return fmt.Errorf("a write is not refused (%v): %w", err, errNoEffect)
		}
		return nil
	})
	w.must(err)
	k := oracle.Key{Namespace: scratch, Name: "web"}
	w.must(w.offer(ctx, w.members[0], service(k, 1), w.random))
	elsewhere := oracle.Key{Namespace: moving, Name: "elsewhere"}
	w.must(w.offer(ctx, w.members[0], service(elsewhere, 1), w.random))
	if err := eventually(ctx, func(ctx context.Context) error { return m.Get(ctx, elsewhere, &mcsv1beta1.ServiceImport{}) }); err != nil {
		return fmt.Errorf("the other namespaces do not continue: %w", err)
	}
	if err := m.Get(ctx, k, &mcsv1beta1.ServiceImport{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("it was imported (%v): %w", err, errNoEffect)
	}
	w.must(m.Delete(ctx, binding), m.Delete(ctx, policy))
	w.must(eventually(ctx, func(ctx context.Context) error { return m.Get(ctx, k, &mcsv1beta1.ServiceImport{}) }))
	return errors.Join(w.withdrawScratch(ctx), w.withdraw(ctx, w.members[0], elsewhere))
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
			Expression: `object.metadata.namespace != "` + scratch + `" || !has(object.metadata.labels) || object.metadata.labels.all(k, object.metadata.labels[k] != "tombolo-mcs.io")`,
			Message:    "nothing of the kind here",
		}},
	}}
	return policy, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: name, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name.Name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}}
}
