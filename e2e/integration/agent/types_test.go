// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// untouched fails the test if a Service is not as it was last written.
func (m *member) untouched(t *testing.T, want *corev1.Service) {
	t.Helper()
	got := &corev1.Service{}
	lab.Must(t, m.Get(t.Context(), client.ObjectKeyFromObject(want), got))
	lab.Equal(t, fmt.Sprintf("%s: the source Service changed", m.ID), want, got)
}

// becomes waits until an import, its derived Service of this name and its slices are of a type.
func (m *member) becomes(t *testing.T, k key, derivedName string, want mcsv1beta1.ServiceImportType) {
	t.Helper()
	world.Eventually(t, func(ctx context.Context) error {
		serviceImport, derived := m.Imported(t, k)
		if serviceImport.Spec.Type != want {
			return fmt.Errorf("%s: import %s is %s, want %s", m.ID, k, serviceImport.Spec.Type, want)
		}
		ips := derived.Spec.ClusterIPs
		if want == mcsv1beta1.Headless {
			if diff := cmp.Diff([]string{corev1.ClusterIPNone}, ips); diff != "" {
				return fmt.Errorf("%s: addresses of the derived Service (-want +got):\n%s", m.ID, diff)
			}
			ips = nil
		} else if len(ips) != 2 {
			return fmt.Errorf("%s: the derived Service has addresses %v", m.ID, ips)
		}
		if diff := cmp.Diff(ips, serviceImport.Spec.IPs); diff != "" {
			return fmt.Errorf("%s: addresses of import %s (-want +got):\n%s", m.ID, k, diff)
		}
		mirrored, err := m.Mirrored(ctx, k)
		if err != nil {
			return err
		}
		for _, s := range mirrored {
			if _, marked := s.Labels[corev1.IsHeadlessService]; marked != (want == mcsv1beta1.Headless) || s.Labels[discoveryv1.LabelServiceName] != derivedName {
				return fmt.Errorf("%s: labels of slice %s are %v", m.ID, s.Name, s.Labels)
			}
		}
		if derived.Name != derivedName {
			return fmt.Errorf("%s: the derived Service is called %s, want %s", m.ID, derived.Name, derivedName)
		}
		return nil
	})
}
