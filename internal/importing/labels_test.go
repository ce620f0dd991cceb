// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const short = "derived-43254079"

// lost are the managed fields of an object that an agent wrote.
func lost() []metav1.ManagedFieldsEntry {
	return []metav1.ManagedFieldsEntry{{Manager: clusterset.FieldManager}}
}

// serviceOf returns a Service with labels; empty ones are left out.
func serviceOf(name, mark, importName string, fields []metav1.ManagedFieldsEntry) *corev1.Service {
	labels := map[string]string{"team": "blue"}
	for label, value := range map[string]string{clusterset.LabelManagedBy: mark, mcsv1beta1.LabelServiceName: importName} {
		if value != "" {
			labels[label] = value
		}
	}
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, Labels: labels, ManagedFields: fields}}
}

// TestUnlabelled: a derived Service gets its labels back if it was certainly created for this import.
//
// spec: D2, I5, I7
func TestUnlabelled(t *testing.T) {
	long := clusterset.LongDerivedName(key.Name)
	for name, test := range map[string]struct {
		service    *corev1.Service
		recorded   string
		unrecorded bool // there is no import
		byOthers   []string
		want       bool
	}{
		"nothing is the matter":                         {service: serviceOf(short, clusterset.ManagedBy, "web", nil), recorded: short},
		"another user's":                                {service: serviceOf(short, "", "web", nil), recorded: short},
		"labelled by another user":                      {service: serviceOf(short, "mine", "web", lost()), recorded: short},
		"its label is missing":                          {service: serviceOf(short, "", "web", lost()), recorded: short, want: true},
		"its label is missing, and the import":          {service: serviceOf(short, "", "web", lost()), unrecorded: true, want: true},
		"its label is missing, but another is recorded": {service: serviceOf(short, "", "web", lost()), recorded: long, want: true},
		"it names no import":                            {service: serviceOf(short, clusterset.ManagedBy, "", nil), recorded: short, want: true},
		"it names a wrong import":                       {service: serviceOf(short, clusterset.ManagedBy, "mine", nil), recorded: short, want: true},
		"all is gone":                                   {service: serviceOf(short, "", "", lost()), recorded: short, want: true},
		"all is gone from the one with the long name":   {service: serviceOf(long, "", "", lost()), recorded: long, want: true},
		"it names no import, and none has recorded it":  {service: serviceOf(short, clusterset.ManagedBy, "", nil), recorded: long},
		"it names no import, and two have recorded it": {
			service: serviceOf(short, clusterset.ManagedBy, "", nil), recorded: short, byOthers: []string{short},
		},
		"all is gone, and the import": {service: serviceOf(short, "", "", lost()), unrecorded: true},
	} {
		t.Run(name, func(t *testing.T) {
			v := Observed{Sources: sources.Sources{Key: key}, Existing: Existing{Services: []*corev1.Service{test.service}, TakenNames: test.byOthers}}
			if !test.unrecorded {
				v.ServiceImport = importOf(held80, "a")
				v.ServiceImport.Annotations[clusterset.AnnotationDerivedService] = test.recorded
			}
			before := test.service.DeepCopy()
			imports, services := v.labelChanges()
			if len(imports) > 0 || len(services) > 0 != test.want {
				t.Fatalf("%d imports and %d Services get their labels back", len(imports), len(services))
			}
			for _, c := range services {
				want := serviceOf(test.service.Name, clusterset.ManagedBy, "web", test.service.ManagedFields)
				check.Equal(t, "Service", want, c.Object)
			}
			check.Equal(t, "the input is changed", before, test.service)
		})
	}
	t.Run("two services share the short name, and it says of the other", func(t *testing.T) {
		v := Observed{Sources: sources.Sources{Key: clusterset.ServiceKey{Namespace: key.Namespace, Name: "shard-020"}}}
		v.ServiceImport = importOf(held80, "a")
		name := clusterset.ShortDerivedName("shard-020")
		v.ServiceImport.Annotations[clusterset.AnnotationDerivedService] = name
		v.Services = []*corev1.Service{serviceOf(name, "", "shard-101", lost())}
		if _, services := v.labelChanges(); len(services) > 0 {
			t.Errorf("it becomes %v", services[0].Object.Labels)
		}
	})
}

// TestReclaim: the managed-by label of an import is restored before anything else is planned. If an admission policy removes the label again, the
// import counts as unmanaged, and the write is tried again later.
//
// spec: I7
func TestReclaim(t *testing.T) {
	marked := importOf(held80, "a")
	unmarked := marked.DeepCopy()
	unmarked.Labels, unmarked.ManagedFields = nil, lost()
	claimed := unmarked.DeepCopy()
	claimed.Labels = map[string]string{clusterset.LabelManagedBy: "mine"}
	for name, test := range map[string]struct {
		serviceImport *mcsv1beta1.ServiceImport
		drops         bool
		managed       bool
	}{
		"marked":                         {serviceImport: marked, managed: true},
		"claimed":                        {serviceImport: claimed},
		"unmarked":                       {serviceImport: unmarked, managed: true},
		"unmarked, and a policy's doing": {serviceImport: unmarked, drops: true},
	} {
		t.Run(name, func(t *testing.T) {
			own := exportOf("own", 1, http)
			o := Observed{
				Namespace: NamespaceAllowed, Families: []corev1.IPFamily{corev1.IPv4Protocol},
				Sources:  sources.Sources{Key: key, Local: &own, Hub: sources.Hub{Listed: true}},
				Existing: Existing{ServiceImport: test.serviceImport, Services: derivedWeb()},
			}
			server := apiServer{change: func(object plan.Object) {
				if test.drops {
					object.SetLabels(nil)
				}
			}}
			p := server.settle(t, &o)
			if got := o.managedImport() != nil; got != test.managed || p.IsObstructed == test.managed {
				t.Errorf("managed: %t, obstructed: %t", got, p.IsObstructed)
			}
			check.Equal(t, "errors", test.drops, errors.Is(p.Err(), plan.ErrChanged))
		})
	}
}
