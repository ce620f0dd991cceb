// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

func TestBothVersionsGiveTheSameRecord(t *testing.T) {
	ports := []v1beta1.ServicePort{{Name: "http", Protocol: "UDP", Port: 80}}
	beta := &v1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"},
		Spec:       v1beta1.ServiceImportSpec{Type: v1beta1.ClusterSetIP, IPs: []string{"10.0.0.1"}, Ports: ports},
	}
	alpha := &v1alpha1.ServiceImport{ObjectMeta: beta.ObjectMeta}
	alpha.Spec.Type, alpha.Spec.IPs = v1alpha1.ClusterSetIP, beta.Spec.IPs
	alpha.Spec.Ports = []v1alpha1.ServicePort{{Name: "http", Protocol: "UDP", Port: 80}}
	n := NewNames([]string{"clusterset.local."})
	unexported := cmp.AllowUnexported(Imported{}, header{}, ObjectKey{}, port{}, Addresses{}, Refusal{})
	check.Equal(t, "record", n.ImportOf(beta), n.ImportOfAlpha(alpha), unexported)
}
