// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/lab"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
)

// TestOwnWritesAreRemembered: a plan that was made before the watch brought our own last write is not carried out, and
// costs no request to write. What others do to the object meanwhile is made up for as ever.
//
// spec: D2, D7, I7
func TestOwnWritesAreRemembered(t *testing.T) {
	t.Parallel()
	cluster := lab.Start(t, lab.Member("a")).Cluster("a")
	scheme, err := agent.Scheme()
	must(t, err)
	config, requests := cluster.Config(), &requests{}
	config.Wrap(requests.through)
	direct, err := client.New(config, client.Options{Scheme: scheme})
	must(t, err)
	admin := clientOf(t, cluster)
	w := apply.ToMember(direct, direct)

	unseen := clusterIPService(key{Namespace: "default", Name: "derived"}, port("http", 80))
	unseen.Labels = map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy}
	edited := func(observed *corev1.Service) *corev1.Service {
		result := observed.DeepCopy()
		result.Spec.Ports[0].Port++
		return result
	}
	do := func(want error, methods []string, change plan.Change[*corev1.Service]) *corev1.Service {
		t.Helper()
		requests.take()
		written, err := apply.Do(t.Context(), w, []plan.Change[*corev1.Service]{change})
		if !errors.Is(err, want) {
			t.Fatalf("%s: %v, want %v", change.Verb, err, want)
		}
		if diff := cmp.Diff(methods, requests.take(), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: requests (-want +got):\n%s", change.Verb, diff)
		}
		if len(written) == 0 {
			return nil
		}
		return written[0]
	}
	creation := plan.Change[*corev1.Service]{Verb: plan.Create, Object: unseen}
	first := do(nil, []string{"POST"}, creation)
	do(apply.ErrStale, []string{"GET"}, creation) // the cache has not seen it yet
	other := unseen.DeepCopy()
	other.Labels[mcsv1beta1.LabelServiceName] = "other"
	do(apply.ErrTaken, []string{"GET"}, plan.Change[*corev1.Service]{Verb: plan.Create, Object: other}) // D2: no watch would tell the other import

	must(t, admin.Delete(t.Context(), first.DeepCopy()))
	again := do(nil, []string{"GET", "POST"}, creation) // by hand, before the cache saw anything

	edit := plan.Change[*corev1.Service]{Verb: plan.Update, Object: edited(again), Observed: again}
	second := do(nil, []string{"PUT"}, edit)
	do(apply.ErrStale, []string{"GET"}, edit)
	do(apply.ErrStale, []string{"GET"}, plan.Change[*corev1.Service]{Verb: plan.Delete, Object: again, Observed: again})
	do(nil, []string{"PUT"}, plan.Change[*corev1.Service]{Verb: plan.Update, Object: edited(second), Observed: second})

	byHand := &corev1.Service{}
	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(again), byHand))
	byHand.Spec.Selector = map[string]string{"by": "hand"}
	must(t, admin.Update(t.Context(), byHand))
	do(apply.ErrStale, []string{"GET", "PUT"}, edit) // the API server refuses it
	do(nil, []string{"PUT"}, plan.Change[*corev1.Service]{Verb: plan.Update, Object: edited(byHand), Observed: byHand})

	must(t, admin.Get(t.Context(), client.ObjectKeyFromObject(again), byHand))
	deletion := plan.Change[*corev1.Service]{Verb: plan.Delete, Object: byHand, Observed: byHand}
	do(nil, []string{"DELETE"}, deletion)
	do(nil, []string{"GET"}, deletion) // it is done
	do(apply.ErrStale, []string{"GET"}, plan.Change[*corev1.Service]{Verb: plan.Update, Object: edited(byHand), Observed: byHand})
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
