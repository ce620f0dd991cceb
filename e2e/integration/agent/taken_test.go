// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// testBothNamesTaken: where somebody's own Services have both names that a derived Service can have, the import says which of
// them is in its way and waits until that is gone. Neither is touched, and neither gets endpoints.
//
// spec: C6, D2
func testBothNamesTaken(t *testing.T, a, b *member) {
	k := key{Namespace: namespace(t, a, b), Name: "web"}
	var users []*corev1.Service
	for _, name := range []string{clusterset.ShortDerivedName(k.Name), clusterset.LongDerivedName(k.Name)} {
		user := clusterIPService(key{Namespace: k.Namespace, Name: name}, port("mine", 1))
		lab.Must(t, b.Create(t.Context(), user))
		users = append(users, user)
	}
	untouched := func(user *corev1.Service) {
		t.Helper()
		after := &corev1.Service{}
		lab.Must(t, b.Get(t.Context(), client.ObjectKeyFromObject(user), after))
		if diff := cmp.Diff(user, after); diff != "" {
			t.Errorf("somebody else's Service changed (-before +after):\n%s", diff)
		}
	}
	service := clusterIPService(k, port("http", 80))
	a.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
	want := fmt.Sprintf("create *v1.Service %s/%s: it is not managed by Tombolo and is left alone: rename or delete it", k.Namespace, users[1].Name)
	eventually(t, func(ctx context.Context) error {
		serviceImport := &mcsv1beta1.ServiceImport{}
		if err := b.Get(ctx, k, serviceImport); err != nil {
			return err
		}
		c := meta.FindStatusCondition(serviceImport.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady))
		if c == nil || c.Status != metav1.ConditionFalse || c.Reason != string(mcsv1beta1.ServiceImportReasonPending) || c.Message != want {
			return fmt.Errorf("conditions of import %s: %+v, want Ready=False/Pending: %s", k, serviceImport.Status.Conditions, want)
		}
		return nil
	})
	b.endpoints(t, k)
	a.endpoints(t, k, "a 10.1.0.1:http:8080") // elsewhere the names are free
	untouched(users[0])
	untouched(users[1])

	if errors := b.output.errors(k.Namespace); len(errors) > 0 { // nothing is tried until the name is free
		t.Errorf("errors: %s", strings.Join(errors, "\n"))
	}

	lab.Must(t, b.Delete(t.Context(), users[1].DeepCopy()))
	if _, derived := b.imported(t, k); derived.Name != users[1].Name || derived.UID == users[1].UID {
		t.Errorf("the derived Service is %s with UID %s, want %s and another than %s", derived.Name, derived.UID, users[1].Name, users[1].UID)
	}
	b.endpoints(t, k, "a 10.1.0.1:http:8080")
	untouched(users[0])
}
