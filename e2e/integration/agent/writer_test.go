// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
)

// TestWriters: how agents write to a cluster, by the requests that its API server gets.
//
//nolint:tparallel // they count the requests of one client
func TestWriters(t *testing.T) {
	t.Parallel()
	admin := newPair(t).members["a"]
	world.CreateNamespace(t, "writers", admin)
	config, requests := admin.Cluster.Config(), &requests{}
	config.Wrap(requests.through)
	direct, err := client.New(config, client.Options{Scheme: admin.Scheme()})
	lab.Must(t, err)
	for name, test := range map[string]func(*testing.T, client.Client, func() writing){
		"OwnWritesAreRemembered": testOwnWrites,
		"TwoAtOnce":              testTwoWriters,
	} {
		t.Run(name, func(t *testing.T) {
			test(t, admin, func() writing { return writing{apply.ToMember(direct, direct), requests} })
		})
	}
}

// writing is a Writer whose requests are counted.
type writing struct {
	apply.Writer
	requests *requests
}

// do carries out a change, which is to end with an error and to cost such requests, and returns what it wrote.
func (w writing) do(t *testing.T, want error, methods []string, change plan.Change[*corev1.Service]) *corev1.Service {
	t.Helper()
	w.requests.take()
	written, err := apply.Do(t.Context(), w.Writer, []plan.Change[*corev1.Service]{change})
	if !errors.Is(err, want) {
		t.Fatalf("%s: %v, want %v", change.Verb, err, want)
	}
	lab.Equal(t, fmt.Sprintf("%s: requests", change.Verb), methods, w.requests.take(), cmpopts.EquateEmpty())
	if len(written) == 0 {
		return nil
	}
	return written[0]
}

// derivedService returns a Service of ours.
func derivedService(name, serviceImport string) *corev1.Service {
	service := world.Service(key{Namespace: "writers", Name: name}, world.Port("http", 80))
	service.Labels = map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy, mcsv1beta1.LabelServiceName: serviceImport}
	return service
}

func creationOf(service *corev1.Service) plan.Change[*corev1.Service] {
	return plan.Change[*corev1.Service]{Verb: plan.Create, Object: service}
}

// testTwoWriters: what two agents do to one object at the same time, or an agent and a user, is distinguished: that it is done
// already, that another import has the name, and that it is not ours. What is not ours costs no request to write.
//
// spec: D2, I7
func testTwoWriters(t *testing.T, admin client.Client, anew func() writing) {
	first, second := anew(), anew()
	ours := first.do(t, nil, []string{"POST"}, creationOf(derivedService("shared", "web")))
	second.do(t, apply.ErrStale, []string{"POST", "GET"}, creationOf(derivedService("shared", "web")))
	second.do(t, apply.ErrNameTaken, []string{"POST", "GET"}, creationOf(derivedService("shared", "other")))

	change := func(verb plan.Verb, service *corev1.Service) plan.Change[*corev1.Service] {
		result := plan.Change[*corev1.Service]{Verb: verb, Object: service.DeepCopy(), Existing: service}
		result.Object.Labels = derivedService(service.Name, "web").Labels
		return result
	}
	isForeign := func(service *corev1.Service) {
		t.Helper()
		second.do(t, apply.ErrUnmanaged, []string{"POST", "GET"}, creationOf(derivedService(service.Name, "web")))
		second.do(t, apply.ErrUnmanaged, nil, change(plan.Update, service))
		second.do(t, apply.ErrUnmanaged, nil, change(plan.Delete, service))
	}
	for name, labels := range map[string]map[string]string{
		"unmarked": {mcsv1beta1.LabelServiceName: "web"}, "marked": {clusterset.LabelManagedBy: "somebody", mcsv1beta1.LabelServiceName: "web"},
	} {
		theirs := derivedService(name, "web")
		theirs.Labels = labels
		lab.Must(t, admin.Create(t.Context(), theirs))
		isForeign(theirs)
	}

	label := func(mark string) *corev1.Service {
		t.Helper()
		lab.Must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(ours), ours))
		ours.Labels = map[string]string{clusterset.LabelManagedBy: mark, mcsv1beta1.LabelServiceName: "web"}
		lab.Must(t, admin.Update(t.Context(), ours))
		return ours.DeepCopy()
	}
	isForeign(label("somebody")) // it was ours
	unmarked := label("")
	second.do(t, apply.ErrUnmanaged, nil, change(plan.Delete, unmarked))
	if second.do(t, nil, []string{"PUT"}, change(plan.Update, unmarked)).Labels[clusterset.LabelManagedBy] != clusterset.ManagedBy {
		t.Error("the mark is not put back")
	}
	label("")
	third := anew()
	third.do(t, apply.ErrNameTaken, []string{"POST", "GET"}, creationOf(derivedService("shared", "other")))
	third.do(t, nil, []string{"POST", "GET", "PUT"}, creationOf(derivedService("shared", "web")))
}

// testOwnWrites: a plan that was made before the watch brought our own last write is not carried out, and costs no request to
// write. What others do to the object meanwhile is made up for as ever.
//
// spec: D2, D7, I7
func testOwnWrites(t *testing.T, admin client.Client, anew func() writing) {
	w := anew()
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
	do(apply.ErrStale, []string{"GET"}, creation)                                           // the cache has not seen it yet
	do(apply.ErrNameTaken, []string{"GET"}, creationOf(derivedService("derived", "other"))) // D2: no watch would tell the other import

	lab.Must(t, admin.Delete(t.Context(), first.DeepCopy()))
	again := do(nil, []string{"GET", "POST"}, creation) // by hand, before the cache saw anything

	edit := plan.Change[*corev1.Service]{Verb: plan.Update, Object: edited(again), Existing: again}
	second := do(nil, []string{"PUT"}, edit)
	do(apply.ErrStale, []string{"GET"}, edit)
	do(apply.ErrStale, []string{"GET"}, plan.Change[*corev1.Service]{Verb: plan.Delete, Object: again, Existing: again})
	do(nil, []string{"PUT"}, plan.Change[*corev1.Service]{Verb: plan.Update, Object: edited(second), Existing: second})

	byHand := &corev1.Service{}
	lab.Must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(again), byHand))
	byHand.Spec.Selector = map[string]string{"by": "hand"}
	lab.Must(t, admin.Update(t.Context(), byHand))
	do(apply.ErrStale, []string{"GET", "PUT"}, edit) // the API server refuses it
	do(nil, []string{"PUT"}, plan.Change[*corev1.Service]{Verb: plan.Update, Object: edited(byHand), Existing: byHand})

	lab.Must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(again), byHand))
	deletion := plan.Change[*corev1.Service]{Verb: plan.Delete, Object: byHand, Existing: byHand}
	do(nil, []string{"DELETE"}, deletion)
	do(nil, []string{"GET"}, deletion) // it is done
	do(apply.ErrStale, []string{"GET"}, plan.Change[*corev1.Service]{Verb: plan.Update, Object: edited(byHand), Existing: byHand})
	do(nil, []string{"POST"}, creation)
}

// requests notes the methods of requests about Services.
type requests struct {
	mu      sync.Mutex
	methods []string
}

// take returns them and begins anew.
func (r *requests) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.methods
	r.methods = nil
	return taken
}

func (r *requests) through(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		if strings.Contains(request.URL.Path, "/services/") || strings.HasSuffix(request.URL.Path, "/services") {
			r.mu.Lock()
			r.methods = append(r.methods, request.Method)
			r.mu.Unlock()
		}
		return next.RoundTrip(request)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
