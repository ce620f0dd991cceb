// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// Clusters to which an export is no longer granted lose it before anything else is written, which the hub may refuse.
//
// spec: A1
func TestGrantIsReducedFirst(t *testing.T) {
	t.Parallel()
	granted := func(clusters ...hubv1alpha1.GrantedCluster) *hubv1alpha1.GrantedTo {
		return &hubv1alpha1.GrantedTo{Clusters: clusters}
	}
	for name, test := range map[string]struct {
		inactive      bool
		before, after *hubv1alpha1.GrantedTo
		want          bool
	}{
		"from all to some":          {after: granted("b"), want: true},
		"from all to none":          {after: granted(), want: true},
		"from all to all":           {},
		"from some to fewer":        {true, granted("b", "c"), granted("b"), true},
		"from some to others":       {true, granted("b"), granted("c"), true},
		"from some to more":         {true, granted("b"), granted("b", "c"), false},
		"from some to all":          {inactive: true, before: granted("b")},
		"from an inactive to some":  {inactive: true, after: granted("b")},
		"there is no record at all": {after: granted("b")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := runtime.NewScheme()
			check.Must(t, hubv1alpha1.AddToScheme(scheme))
			record := &hubv1alpha1.PublishedService{ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: "shop.web"}}
			record.Spec.Inactive, record.Spec.GrantedTo, record.Spec.Type = test.inactive, test.before, "ClusterSetIP"
			onHub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(record).Build()
			observed := sources.Hub{}
			if name != "there is no record at all" {
				observed.Local = &hubv1alpha1.PublishedService{}
				check.Must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(record), observed.Local))
			}
			desired := record.DeepCopy()
			desired.Spec.Inactive, desired.Spec.GrantedTo, desired.Spec.Type = test.after != nil, test.after, "Headless"
			r := &Reconciler{Hub: apply.ToHub(onHub, "member-a")}
			check.Must(t, r.narrow(t.Context(), desired, &observed))
			stored := &hubv1alpha1.PublishedService{}
			check.Must(t, onHub.Get(t.Context(), client.ObjectKeyFromObject(record), stored))
			wrote := stored.ResourceVersion != "999" // that of the fake client's first objects
			switch {
			case wrote != test.want:
				t.Errorf("written: %t, want %t", wrote, test.want)
			case wrote && (!stored.Spec.Inactive || !reflect.DeepEqual(stored.Spec.GrantedTo, test.after) || stored.Spec.Type != "ClusterSetIP"):
				t.Errorf("it has %+v", stored.Spec)
			case wrote && observed.Local.ResourceVersion != stored.ResourceVersion:
				t.Error("the written record is not the observed one")
			}
		})
	}
}
