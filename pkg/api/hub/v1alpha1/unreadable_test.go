// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/tombolo-mcs/tombolo/internal/check"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestUnreadable: of a list that holds a record which cannot be read, the others are read, and it stands there by its name
// alone.
func TestUnreadable(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	check.Must(t, hubv1alpha1.AddToScheme(scheme))
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	for name, test := range map[string]struct{ kind, good, bad string }{
		"a time without its fraction": {
			"Heartbeat",
			`{"renewTime":"2026-01-01T00:00:00.000000Z","publication":"Complete"}`,
			`{"renewTime":"2026-01-01T00:00:00Z","publication":"Complete"}`,
		},
		"a time in small letters": {
			"PublishedService",
			`{"namespace":"shop","service":"web","exportedAt":"2026-01-01T00:00:00Z"}`,
			`{"namespace":"shop","service":"web","exportedAt":"2026-01-01t00:00:00z"}`,
		},
		"a port that is no number": {
			"PublishedService",
			`{"namespace":"shop","service":"web","ports":[{"protocol":"TCP","port":80}]}`,
			`{"namespace":"shop","service":"web","ports":[{"protocol":"TCP","port":"http"}]}`,
		},
		"a port beyond all numbers": {
			"PublishedEndpoints",
			`{"namespace":"shop","service":"web","ports":[{"protocol":"TCP","port":80}]}`,
			`{"namespace":"shop","service":"web","ports":[{"protocol":"TCP","port":4294967376}]}`,
		},
		"a spec that is a list": {"PublishedEndpoints", `{"namespace":"shop","service":"web"}`, `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			item := func(name, spec string) string {
				return fmt.Sprintf(`{"metadata":{"namespace":"member-a","name":%q},"spec":%s}`, name, spec)
			}
			text := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"items":[%s,%s,%s]}`, hubv1alpha1.GroupVersion, test.kind+"List",
				item("first", test.good), item("bad", test.bad), item("last", test.good))
			list, _, err := decoder.Decode([]byte(text), nil, nil)
			check.Must(t, err)
			got := map[string]bool{} // whether the spec says something, by name
			switch l := list.(type) {
			case *hubv1alpha1.HeartbeatList:
				for _, o := range l.Items {
					got[o.Name] = o.Spec.Publication == hubv1alpha1.PublicationComplete && !o.Spec.RenewTime.IsZero()
				}
			case *hubv1alpha1.PublishedServiceList:
				for _, o := range l.Items {
					got[o.Name] = o.Spec.Namespace == "shop" && o.Spec.Service == "web"
				}
			case *hubv1alpha1.PublishedEndpointsList:
				for _, o := range l.Items {
					got[o.Name] = o.Spec.Namespace == "shop" && o.Spec.Service == "web"
				}
			}
			check.Equal(t, "read", map[string]bool{"first": true, "bad": false, "last": true}, got)
		})
	}
}
