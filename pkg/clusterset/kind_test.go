// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

func TestKindOf(t *testing.T) {
	t.Parallel()
	for want, object := range map[string]any{
		"Service":                      &corev1.Service{},
		"ServiceImport":                &mcsv1beta1.ServiceImport{},
		"ServiceImports":               &mcsv1beta1.ServiceImportList{},
		"PublishedEndpoints":           &hubv1alpha1.PublishedEndpointsList{},
		"ClusterServiceAccessPolicies": &policyv1alpha1.ClusterServiceAccessPolicyList{},
		"GatewayStatuses":              &gatewayv1alpha1.GatewayStatusList{},
	} {
		if got := clusterset.KindOf(object); got != want {
			t.Errorf("%T is %s, want %s", object, got, want)
		}
	}
}
