// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestObstructedBy: the imports that may need a name are found by the name alone, for a derived Service and for a slice.
//
// spec: D2
func TestObstructedBy(t *testing.T) {
	t.Parallel()
	var imports []mcsv1beta1.ServiceImport
	for _, name := range []string{"db", "web"} {
		imports = append(imports, mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}})
	}
	web := []clusterset.ServiceKey{{Namespace: "shop", Name: "web"}}
	for name, test := range map[string]struct {
		object string
		want   []clusterset.ServiceKey
	}{
		"the short name":         {clusterset.ShortDerivedName("web"), web},
		"the long name":          {clusterset.LongDerivedName("web"), web},
		"a slice":                {clusterset.MirroredSliceName(clusterset.LongDerivedName("web"), "prod-eu", "0123456789"), web},
		"another import's":       {clusterset.ShortDerivedName("cache"), nil},
		"the name of the import": {"web", nil},
		"the prefix":             {"derived-", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []clusterset.ServiceKey
			if derived, ok := clusterset.DerivedNameOf(test.object); ok {
				got = importsByDerivedName(derived, imports)
			}
			check.Equal(t, "imports", test.want, got)
		})
	}
}
