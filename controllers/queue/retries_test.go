// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// answers is a Reconciler that returns the given errors, by service.
type answers map[string]error

func (a answers) Reconcile(_ context.Context, request reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, a[request.Name]
}

func requestOf(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "shop", Name: name}}
}

var (
	errAway  = errors.New("connection refused")
	errQuota = fmt.Errorf("publish: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "web", errors.New("exceeded quota: tombolo")))
)

// TestRetries: refused writes are retried with increasing delays of at most five minutes. The controller gets no error, because it
// would retry every 10 s.
func TestRetries(t *testing.T) {
	t.Parallel()
	terminating := &apierrors.StatusError{ErrStatus: metav1.Status{Details: &metav1.StatusDetails{
		Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}},
	}}}
	for name, test := range map[string]struct {
		err error
		// again is the delay after the 1st, the 2nd and the 100th attempt; 0 if a watch event enqueues the service.
		again [3]time.Duration
		want  error
	}{
		"done":  {},
		"stale": {err: fmt.Errorf("import: %w", apply.ErrStale)},
		"a namespace that ends, as the API server says": {
			err: errors.Join(apply.ErrStale, terminating), again: [3]time.Duration{time.Second, time.Second, time.Second},
		},
		"another's object": {err: fmt.Errorf("import: %w", apply.ErrUnmanaged)},
		"a quota":          {err: errQuota, again: [3]time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 5 * time.Minute}},
		"a quota and another's object": {
			err: errors.Join(apply.ErrUnmanaged, errQuota), again: [3]time.Duration{10 * time.Millisecond, 20 * time.Millisecond, 5 * time.Minute},
		},
		"final":                 {err: reconcile.TerminalError(errQuota), want: errQuota},
		"no answer":             {err: errAway, want: errAway},
		"a quota and no answer": {err: errors.Join(errQuota, errAway), want: errAway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			retries := NewRetries(answers{"web": test.err})
			var again [3]time.Duration
			for i := range 100 {
				result, err := retries.Reconcile(t.Context(), requestOf("web"))
				if !errors.Is(err, test.want) {
					t.Fatalf("%v, want %v", err, test.want)
				}
				again[min(i, 2)] = result.RequeueAfter
			}
			check.Equal(t, "tried again after", test.again, again)
		})
	}
}

// TestRetriesBackOff: an attempt with a stale cache does not reset the delay; a successful one does.
func TestRetriesBackOff(t *testing.T) {
	t.Parallel()
	given := answers{}
	retries := NewRetries(given)
	var again []time.Duration
	for _, err := range []error{errQuota, errQuota, apply.ErrStale, errAway, errQuota, nil, errQuota} {
		given["web"] = err
		result, _ := retries.Reconcile(t.Context(), requestOf("web"))
		again = append(again, result.RequeueAfter/time.Millisecond)
	}
	if diff := cmp.Diff([]time.Duration{10, 20, 0, 0, 40, 0, 10}, again); diff != "" {
		t.Errorf("tried again after (-want +got, in ms):\n%s", diff)
	}
}

// TestRetriesWhenDue: a service that is due earlier than its delay ends is reconciled then.
func TestRetriesWhenDue(t *testing.T) {
	t.Parallel()
	retries := NewRetries(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{RequeueAfter: 15 * time.Millisecond}, errQuota
	}))
	for i, want := range []time.Duration{10 * time.Millisecond, 15 * time.Millisecond} {
		if result, _ := retries.Reconcile(t.Context(), requestOf("web")); result.RequeueAfter != want {
			t.Errorf("attempt %d: tried again after %s, want %s", i+1, result.RequeueAfter, want)
		}
	}
}

// TestRetriesFreed: if a quota may have room again, one refused service is retried, and the next one after its success. A service
// that is refused again waits until the others have been retried.
func TestRetriesFreed(t *testing.T) {
	t.Parallel()
	given := answers{"a": errQuota, "b": errQuota, "c": errQuota, "d": errAway}
	retries, q, try := queued(t, given, clock.RealClock{})
	expectNext := func(want string) {
		t.Helper()
		item, _ := q.Get()
		q.Done(item)
		if item.Name != want {
			t.Errorf("%s is tried, want %s", item.Name, want)
		}
	}
	for range 20 {
		for _, name := range []string{"a", "b", "c", "d"} {
			try(name)
		}
	}
	if q.Len() > 0 {
		t.Fatalf("%d are tried again though nothing was freed", q.Len())
	}
	retries.RetryOldest()
	expectNext("a")
	if after := try("a"); after != minRetryDelay {
		t.Errorf("a is tried again after %s, though a quota's controller may take a moment to count", after)
	}
	retries.RetryOldest()
	expectNext("b")
	delete(given, "b")
	try("b")
	expectNext("c")
	given["c"] = reconcile.TerminalError(errQuota)
	try("c")
	delete(given, "a")
	retries.RetryOldest()
	expectNext("a")
	try("a")
	retries.RetryOldest()
	if q.Len() > 0 {
		t.Errorf("%d are tried, though none is refused", q.Len())
	}
}

// TestRetriesProbe: one refused service is retried every five seconds, whatever its delay, so that an API server that accepts writes again
// gets all of them soon. The delays of the others stay.
func TestRetriesProbe(t *testing.T) {
	t.Parallel()
	given, c := answers{"a": errQuota, "b": errQuota}, clocktesting.NewFakeClock(time.Now())
	_, q, try := queued(t, given, c)
	probed := func(want string) {
		t.Helper()
		c.Step(probeInterval - 1)
		if q.Len() > 0 {
			t.Errorf("%d are tried before five seconds are over", q.Len())
		}
		c.Step(1)
		item, _ := q.Get()
		q.Done(item)
		if item.Name != want || q.Len() > 0 {
			t.Errorf("%s and %d more are tried, want %s", item.Name, q.Len(), want)
		}
	}
	for range 20 {
		try("a")
		try("b")
	}
	probed("a")
	check.Equal(t, "a is tried again after", maxRetryDelay, try("a"))
	probed("b")
	delete(given, "b")
	try("b")
	item, _ := q.Get()
	q.Done(item)
	if item.Name != "a" {
		t.Errorf("%s is tried after a success, want a", item.Name)
	}
	given["a"] = apply.ErrUnmanaged // it is not refused any more
	try("a")
	c.Step(probeInterval)
	if q.Len() > 0 {
		t.Errorf("%d are tried, though none is refused", q.Len())
	}
}

// TestRetriesProbeNew: a service that is refused now is retried soon, though another one has been refused for long.
func TestRetriesProbeNew(t *testing.T) {
	t.Parallel()
	c := clocktesting.NewFakeClock(time.Now())
	_, q, try := queued(t, answers{"a": errQuota, "b": errQuota}, c)
	try("a")
	for range 3 { // the third probe is due when a has been refused for two days
		c.Step(24 * time.Hour)
		item, _ := q.Get()
		q.Done(item)
		try("a")
	}
	try("b")
	c.Step(probeInterval)
	if q.Len() != 1 {
		t.Errorf("%d are tried five seconds after a new refusal, want 1", q.Len())
	}
}

// queued returns Retries with a clock and a queue, and a function that reconciles a service and returns the delay of its next attempt.
func queued(t *testing.T, given answers, c clock.WithDelayedExecution) (*Retries, priorityqueue.PriorityQueue[reconcile.Request], func(string) time.Duration) {
	t.Helper()
	retries := NewRetries(given)
	retries.clock = c
	q := priorityqueue.New[reconcile.Request](t.Name())
	t.Cleanup(q.ShutDown)
	check.Must(t, retries.source().Start(t.Context(), q))
	return retries, q, func(name string) time.Duration {
		result, _ := retries.Reconcile(t.Context(), requestOf(name))
		return result.RequeueAfter
	}
}

// TestProbeAfter: a probe follows after five seconds, and less often if the same services have been refused for long.
func TestProbeAfter(t *testing.T) {
	t.Parallel()
	for refused, want := range map[time.Duration]time.Duration{
		0: 5 * time.Second, 100 * time.Second: 5 * time.Second, time.Hour: 3 * time.Minute, 24 * time.Hour: 5 * time.Minute,
	} {
		check.Equal(t, fmt.Sprintf("after %s", refused), want, probeAfter(refused))
	}
}

// TestChangesExport: changes of a ServiceExport by others enqueue it, but not those of the status, which agents write.
func TestChangesExport(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	for name, test := range map[string]struct {
		change func(*mcsv1beta1.ServiceExport)
		want   bool
	}{
		"nothing, as after a resync": {func(e *mcsv1beta1.ServiceExport) { e.ResourceVersion = "1" }, true},
		"the status":                 {func(e *mcsv1beta1.ServiceExport) { e.Status.Conditions = []metav1.Condition{{Type: "Ready"}} }, false},
		"a label":                    {func(e *mcsv1beta1.ServiceExport) { e.Labels = map[string]string{"team": "shop"} }, false},
		"the spec":                   {func(e *mcsv1beta1.ServiceExport) { e.Generation++ }, true},
		"that it is granted only": {func(e *mcsv1beta1.ServiceExport) {
			e.Annotations = map[string]string{clusterset.AnnotationGrantedOnly: "true"}
		}, true},
		"it is about to go": {func(e *mcsv1beta1.ServiceExport) { e.DeletionTimestamp = &now }, true},
		"it was made anew":  {func(e *mcsv1beta1.ServiceExport) { e.UID = "another" }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "one", Generation: 1, ResourceVersion: "1"}}
			after := before.DeepCopy()
			after.ResourceVersion = "2"
			test.change(after)
			check.Equal(t, "changesExport", test.want, changesExport(before, after))
		})
	}
}
