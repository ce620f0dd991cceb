// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: L1
func TestAliasImport(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		value   string
		kind    corev1.ServiceType
		want    string
		refused string
	}{
		"a name":            {value: "web", want: "web"},
		"another namespace": {value: "bank/web", refused: `annotation tombolo-mcs.io/import: "bank/web" is refused: a Service can have the endpoints of imports of its own namespace only, so write the name without a namespace`},
		"its own namespace": {value: "shop/web", refused: `annotation tombolo-mcs.io/import: "shop/web" is refused: a Service can have the endpoints of imports of its own namespace only, so write the name without a namespace`},
		"empty":             {value: "", refused: `annotation tombolo-mcs.io/import: "" is not the name of a ServiceImport`},
		"a space":           {value: "web ", refused: `annotation tombolo-mcs.io/import: "web " is not the name of a ServiceImport`},
		"a DNS name":        {value: "web.bank", refused: `annotation tombolo-mcs.io/import: "web.bank" is not the name of a ServiceImport`},
		"long":              {value: strings.Repeat("a", 100), refused: `annotation tombolo-mcs.io/import: "` + strings.Repeat("a", 70) + `" is not the name of a ServiceImport`},
		"ExternalName":      {value: "web", kind: corev1.ServiceTypeExternalName, refused: "a Service of type ExternalName has no endpoints"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			service := &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Annotations: map[string]string{"tombolo-mcs.io/import": test.value}},
				Spec:       corev1.ServiceSpec{Type: test.kind},
			}
			got, err := clusterset.AliasImport(service)
			if got != test.want || err == nil && test.refused != "" || err != nil && err.Error() != test.refused {
				t.Errorf("%q, %v, want %q, %s", got, err, test.want, test.refused)
			}
			if !clusterset.IsAlias(service) {
				t.Error("it is no alias, so its fault would not be reported")
			}
			service.Labels = map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy}
			if clusterset.IsAlias(service) {
				t.Error("a managed Service is an alias")
			}
		})
	}
	if clusterset.IsAlias(&corev1.Service{}) {
		t.Error("a Service without the annotation is an alias")
	}
}

// TestAliasSliceName: the name of a slice says which alias it is of. A Service can have a name like that of a derived one.
func TestAliasSliceName(t *testing.T) {
	t.Parallel()
	for _, alias := range []string{"web", "derived-1-a"} {
		mirrored := clusterset.MirroredSliceName(clusterset.ShortDerivedName("web"), "eu-1", "0123456789")
		name := clusterset.AliasSliceName(alias, mirrored)
		if a, m, ok := clusterset.AliasOf(name); a != alias || m != mirrored || !ok {
			t.Errorf("%s is of alias %s and slice %s: %t", name, a, m, ok)
		}
		for _, other := range []string{mirrored, alias + "-x7f9k", alias + ".x7f9k", alias} {
			if _, _, ok := clusterset.AliasOf(other); ok {
				t.Errorf("%s is taken for a slice of an alias", other)
			}
		}
	}
}
