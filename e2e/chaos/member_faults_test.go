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
	"k8s.io/apimachinery/pkg/api/resource"
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
	policy, binding := refusal([]admissionv1.OperationType{admissionv1.Create, admissionv1.Update}, "services", "endpointslices", "serviceimports")
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

// updatesRefused has a member's API server refuse updates of derived Services in one namespace, while the exporter changes what needs them, and its
// endpoints. The endpoints follow, the import is not Ready, and it is complete when the policy is gone.
func updatesRefused(ctx context.Context, w *world) error {
	a, m, k := w.members[0], w.members[1], oracle.Key{Namespace: scratch, Name: "web"}
	policy, binding := refusal([]admissionv1.OperationType{admissionv1.Update}, "services")
	w.must(w.exportScratch(ctx), m.Create(ctx, policy), m.Create(ctx, binding))
	derived := &corev1.Service{}
	err := eventually(ctx, func(ctx context.Context) error {
		services := &corev1.ServiceList{}
		if err := m.List(ctx, services, client.InNamespace(scratch), client.MatchingLabels{mcsv1beta1.LabelServiceName: k.Name}); err != nil || len(services.Items) == 0 {
			return fmt.Errorf("%d derived Services (%w): %w", len(services.Items), err, errNoEffect)
		}
		derived = &services.Items[0]
		derived.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
		if err := m.Update(ctx, derived, client.DryRunAll); !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
			return fmt.Errorf("an update is not refused (%v): %w", err, errNoEffect)
		}
		return nil
	})
	w.must(err)
	w.watch.will(oracle.Source, a.id, k)
	exported := &corev1.Service{ObjectMeta: meta(k)}
	w.must(a.edit(ctx, exported, func() { exported.Spec.SessionAffinity = corev1.ServiceAffinityClientIP }))
	slice := a.slice(exported, discoveryv1.AddressTypeIPv4, 1, w.random)
	w.watch.offers(a.id, slice)
	existing := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: scratch, Name: slice.Name}}
	w.must(a.edit(ctx, existing, func() { existing.Endpoints = slice.Endpoints }), m.importSays(ctx, k, metav1.ConditionFalse))
	err = eventually(ctx, func(ctx context.Context) error {
		mirrored := &discoveryv1.EndpointSliceList{}
		of := client.MatchingLabels{mcsv1beta1.LabelServiceName: k.Name, mcsv1beta1.LabelSourceCluster: a.id}
		if err := m.List(ctx, mirrored, client.InNamespace(scratch), of); err != nil {
			return err
		}
		for _, s := range mirrored.Items {
			if len(s.Endpoints) == 1 && s.Endpoints[0].Addresses[0] == slice.Endpoints[0].Addresses[0] {
				return nil
			}
		}
		return errors.New("the endpoints do not follow while the derived Service is refused")
	})
	w.must(err, m.Delete(ctx, binding), m.Delete(ctx, policy), m.importSays(ctx, k, metav1.ConditionTrue))
	return w.withdrawScratch(ctx)
}

// servicesRefused has a member's quota refuse the derived Service of a new import. The import says so, and is complete when there is room.
func servicesRefused(ctx context.Context, w *world) error {
	m, k := w.members[1], oracle.Key{Namespace: scratch, Name: "web"}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: scratch, Name: "few"}, Spec: corev1.ResourceQuotaSpec{
		Hard: corev1.ResourceList{"services": resource.MustParse("0")},
	}}
	w.must(m.Create(ctx, quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard, Used: quota.Spec.Hard} // no controller counts here
	w.must(m.Status().Update(ctx, quota))
	w.must(eventually(ctx, func(ctx context.Context) error {
		if err := m.Create(ctx, service(oracle.Key{Namespace: scratch, Name: "probe"}, 0), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("a Service is not refused (%v): %w", err, errNoEffect)
		}
		return nil
	}))
	w.must(w.exportScratch(ctx), m.importSays(ctx, k, metav1.ConditionFalse), m.Delete(ctx, quota), m.importSays(ctx, k, metav1.ConditionTrue))
	return w.withdrawScratch(ctx)
}

// importSays returns when the condition Ready of an import has a status.
func (m *member) importSays(ctx context.Context, k oracle.Key, want metav1.ConditionStatus) error {
	return eventually(ctx, func(ctx context.Context) error {
		found := &mcsv1beta1.ServiceImport{}
		if err := m.Get(ctx, k, found); err != nil {
			return err
		}
		if c := apimeta.FindStatusCondition(found.Status.Conditions, "Ready"); c == nil || c.Status != want {
			return fmt.Errorf("import %s of %s must have Ready %s: %+v", k, m.id, want, c)
		}
		return nil
	})
}

// refusal returns a policy that refuses such writes of objects with Tombolo's mark in one namespace, and its binding.
func refusal(operations []admissionv1.OperationType, resources ...string) (*admissionv1.ValidatingAdmissionPolicy, *admissionv1.ValidatingAdmissionPolicyBinding) {
	name := metav1.ObjectMeta{Name: "chaos.example.com"}
	rule := admissionv1.NamedRuleWithOperations{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: operations,
		Rule:       admissionv1.Rule{APIGroups: []string{"", "discovery.k8s.io", "multicluster.x-k8s.io"}, APIVersions: []string{"*"}, Resources: resources},
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
