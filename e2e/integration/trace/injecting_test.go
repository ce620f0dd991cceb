// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"context"
	"errors"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// atEnd mends something when the test ends.
func atEnd(t *testing.T, mend func(context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		if err := mend(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// meta names the objects of the service that is to be broken.
func (s *scene) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.broken.Namespace, Name: s.broken.Name}
}

// probe names an object that is never created.
func (s *scene) probe() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.broken.Namespace, Name: "probe"}
}

// silenced stops the agent of a member until the test ends, and waits until it is missed.
func (s *scene) silenced(t *testing.T, m *member) {
	t.Helper()
	s.silent(t, m)
	t.Cleanup(m.start)
}

// whileDown does something while the agent of b is down.
func (s *scene) whileDown(t *testing.T, do func()) {
	t.Helper()
	s.b.stop()
	do()
	s.b.start()
}

func (s *scene) changeService(t *testing.T, change func(*corev1.ServiceSpec)) {
	t.Helper()
	service := world.Read(t, s.a, s.broken, &corev1.Service{})
	change(&service.Spec)
	lab.Must(t, s.a.Update(t.Context(), service))
}

func (s *scene) changeEnds(t *testing.T, change func(*discoveryv1.EndpointSlice)) {
	t.Helper()
	change(s.ends)
	lab.Must(t, s.a.Update(t.Context(), s.ends))
}

// record returns the service's record on the hub.
func (s *scene) record(t *testing.T) *hubv1alpha1.PublishedService {
	t.Helper()
	k := client.ObjectKey{Namespace: s.a.id.HubNamespace(), Name: s.broken.Namespace + "." + s.broken.Name}
	return world.Read(t, s.HubClient, k, &hubv1alpha1.PublishedService{})
}

func (s *scene) memberOf(t *testing.T) *hubv1alpha1.Member {
	t.Helper()
	return world.Read(t, s.HubClient, world.Key{Namespace: s.a.id.HubNamespace(), Name: hubv1alpha1.MemberName}, &hubv1alpha1.Member{})
}

// changeMember changes the Member of a until the test ends.
func (s *scene) changeMember(t *testing.T, change func(*hubv1alpha1.MemberSpec)) {
	t.Helper()
	member := s.memberOf(t)
	before := member.Spec.DeepCopy()
	change(&member.Spec)
	lab.Must(t, s.HubClient.Update(t.Context(), member))
	atEnd(t, func(ctx context.Context) error {
		member.Spec = *before
		return s.HubClient.Update(ctx, member)
	})
}

// derived returns the derived Service in b.
func (s *scene) derived(t *testing.T) *corev1.Service {
	t.Helper()
	list := world.List(t, s.b, &corev1.ServiceList{},
		client.InNamespace(s.broken.Namespace), client.MatchingLabels{mcsv1beta1.LabelServiceName: s.broken.Name})
	if len(list.Items) != 1 {
		t.Fatalf("b has %d derived Services of %s", len(list.Items), s.broken)
	}
	return &list.Items[0]
}

// deleteMirrored deletes the service's mirrored slices in b.
func (s *scene) deleteMirrored(t *testing.T) {
	t.Helper()
	lab.Must(t, s.b.DeleteAllOf(t.Context(), &discoveryv1.EndpointSlice{}, client.InNamespace(s.broken.Namespace),
		client.MatchingLabels{mcsv1beta1.LabelServiceName: s.broken.Name}))
}

// forbid has b refuse objects of a kind in the scene's namespace until the test ends, and returns when it refuses one.
func (s *scene) forbid(t *testing.T, group, plural string, probe client.Object) {
	t.Helper()
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "no-" + plural},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.broken.Namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{"CREATE", "UPDATE"},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{plural}},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "not here"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: policy.Name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	for _, object := range []client.Object{policy, binding} {
		lab.Must(t, s.b.Create(t.Context(), object))
		atEnd(t, func(ctx context.Context) error { return s.b.Delete(ctx, object) })
	}
	world.Eventually(t, func(ctx context.Context) error {
		if s.b.Create(ctx, probe.DeepCopyObject().(client.Object), client.DryRunAll) == nil {
			return errors.New("it is not refused yet")
		}
		return nil
	})
}
