// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// writing is a Writer whose requests are counted.
type writing struct {
	Writer
	requests *[]string
}

// newWriting returns a Writer to the cluster.
func newWriting(cluster client.WithWatch) writing {
	var requests []string
	counted := interceptor.NewClient(cluster, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			requests = append(requests, "POST")
			return c.Create(ctx, o, options...)
		},
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, options ...client.GetOption) error {
			requests = append(requests, "GET")
			return c.Get(ctx, k, o, options...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			requests = append(requests, "PUT")
			return c.Update(ctx, o, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			requests = append(requests, "DELETE")
			return c.Delete(ctx, o, options...)
		},
	})
	return writing{ToMember(counted, counted), &requests}
}

// do carries out a change, which is to end with an error and to cost such requests, and returns what it wrote.
func (w writing) do(t *testing.T, want error, methods []string, change plan.Change[*corev1.Service]) *corev1.Service {
	t.Helper()
	*w.requests = nil
	written, err := Do(t.Context(), w.Writer, []plan.Change[*corev1.Service]{change})
	if !errors.Is(err, want) {
		t.Fatalf("%s: %v, want %v", change.Verb, err, want)
	}
	check.Equal(t, fmt.Sprintf("%s: requests", change.Verb), methods, *w.requests, cmpopts.EquateEmpty())
	if len(written) == 0 {
		return nil
	}
	return written[0]
}

// derivedService returns a Service of ours.
func derivedService(name, serviceImport string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "writers", Name: name,
			Labels: map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy, mcsv1beta1.LabelServiceName: serviceImport},
		},
		Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

func creationOf(service *corev1.Service) plan.Change[*corev1.Service] {
	return plan.Change[*corev1.Service]{Verb: plan.Create, Object: service}
}

// TestTwoWriters: what two agents do to one object at the same time, or an agent and a user, is distinguished: that it is done
// already, that another import has the name, and that it is not ours. What is not ours costs no request to write.
//
// spec: D2, I7
func TestTwoWriters(t *testing.T) {
	t.Parallel()
	admin := fake.NewClientBuilder().WithReturnManagedFields().Build()
	first, second := newWriting(admin), newWriting(admin)
	ours := first.do(t, nil, []string{"POST"}, creationOf(derivedService("shared", "web")))
	second.do(t, ErrStale, []string{"POST", "GET"}, creationOf(derivedService("shared", "web")))
	second.do(t, ErrNameTaken, []string{"POST", "GET"}, creationOf(derivedService("shared", "other")))

	change := func(verb plan.Verb, service *corev1.Service) plan.Change[*corev1.Service] {
		result := plan.Change[*corev1.Service]{Verb: verb, Object: service.DeepCopy(), Existing: service}
		result.Object.Labels = derivedService(service.Name, "web").Labels
		return result
	}
	isForeign := func(service *corev1.Service) {
		t.Helper()
		second.do(t, ErrUnmanaged, []string{"POST", "GET"}, creationOf(derivedService(service.Name, "web")))
		second.do(t, ErrUnmanaged, nil, change(plan.Update, service))
		second.do(t, ErrUnmanaged, nil, change(plan.Delete, service))
	}
	for name, labels := range map[string]map[string]string{
		"unmarked": {mcsv1beta1.LabelServiceName: "web"}, "marked": {clusterset.LabelManagedBy: "somebody", mcsv1beta1.LabelServiceName: "web"},
	} {
		theirs := derivedService(name, "web")
		theirs.Labels = labels
		check.Must(t, admin.Create(t.Context(), theirs))
		isForeign(theirs)
	}

	label := func(mark string) *corev1.Service {
		t.Helper()
		check.Must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(ours), ours))
		ours.Labels = map[string]string{clusterset.LabelManagedBy: mark, mcsv1beta1.LabelServiceName: "web"}
		check.Must(t, admin.Update(t.Context(), ours))
		return ours.DeepCopy()
	}
	isForeign(label("somebody")) // it was ours
	unmarked := label("")
	second.do(t, ErrUnmanaged, nil, change(plan.Delete, unmarked))
	if second.do(t, nil, []string{"PUT"}, change(plan.Update, unmarked)).Labels[clusterset.LabelManagedBy] != clusterset.ManagedBy {
		t.Error("the mark is not put back")
	}
	label("")
	third := newWriting(admin)
	third.do(t, ErrNameTaken, []string{"POST", "GET"}, creationOf(derivedService("shared", "other")))
	third.do(t, nil, []string{"POST", "GET", "PUT"}, creationOf(derivedService("shared", "web")))
}

// TestOwnWrites: a plan that was made before the watch brought our own last write is not carried out, and costs no request to
// write. What others do to the object meanwhile is made up for as ever.
//
// spec: D2, D7, I7
func TestOwnWrites(t *testing.T) {
	t.Parallel()
	admin := fake.NewClientBuilder().WithReturnManagedFields().Build()
	w := newWriting(admin)
	unseen := derivedService("derived", "web")
	edited := func(observed *corev1.Service) *corev1.Service {
		result := observed.DeepCopy()
		result.Spec.Ports[0].Port++
		return result
	}
	do := func(want error, methods []string, change plan.Change[*corev1.Service]) *corev1.Service {
		t.Helper()
		return w.do(t, want, methods, change)
	}
	creation := creationOf(unseen)
	first := do(nil, []string{"POST"}, creation)
	do(ErrStale, []string{"GET"}, creation)                                           // the cache has not seen it yet
	do(ErrNameTaken, []string{"GET"}, creationOf(derivedService("derived", "other"))) // D2: no watch would enqueue the other import

	check.Must(t, admin.Delete(t.Context(), first.DeepCopy()))
	again := do(nil, []string{"GET", "POST"}, creation) // by hand, before the cache saw anything

	edit := plan.Change[*corev1.Service]{Verb: plan.Update, Object: edited(again), Existing: again}
	second := do(nil, []string{"PUT"}, edit)
	do(ErrStale, []string{"GET"}, edit)
	do(ErrStale, []string{"GET"}, plan.Change[*corev1.Service]{Verb: plan.Delete, Object: again, Existing: again})
	do(nil, []string{"PUT"}, plan.Change[*corev1.Service]{Verb: plan.Update, Object: edited(second), Existing: second})

	byHand := &corev1.Service{}
	check.Must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(again), byHand))
	byHand.Spec.Selector = map[string]string{"by": "hand"}
	check.Must(t, admin.Update(t.Context(), byHand))
	do(ErrStale, []string{"GET", "PUT"}, edit) // the API server refuses it
	do(nil, []string{"PUT"}, plan.Change[*corev1.Service]{Verb: plan.Update, Object: edited(byHand), Existing: byHand})

	check.Must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(again), byHand))
	deletion := plan.Change[*corev1.Service]{Verb: plan.Delete, Object: byHand, Existing: byHand}
	do(nil, []string{"DELETE"}, deletion)
	do(nil, []string{"GET"}, deletion) // it is done
	do(ErrStale, []string{"GET"}, plan.Change[*corev1.Service]{Verb: plan.Update, Object: edited(byHand), Existing: byHand})
	do(nil, []string{"POST"}, creation)
}

// A user who removes the managed-by label of a ServiceExport has taken it over; on other objects the label is restored.
//
// spec: P3
func TestLostLabel(t *testing.T) {
	t.Parallel()
	admin := fake.NewClientBuilder().Build()
	written := metav1.ObjectMeta{Name: "web", ManagedFields: []metav1.ManagedFieldsEntry{{Manager: clusterset.FieldManager}}}
	w := ToMember(admin, admin)
	if w.lostLabel(&mcsv1beta1.ServiceExport{ObjectMeta: written}) {
		t.Error("the label of a ServiceExport is restored")
	}
	if !w.lostLabel(&corev1.Service{ObjectMeta: written}) {
		t.Error("the label of a Service is not restored")
	}
}
