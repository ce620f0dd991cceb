// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/surveytest"
	"github.com/tombolo-mcs/tombolo/internal/check"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestRenewal: a renewal is ignored only if nothing else has changed and the member was not silent before it.
func TestRenewal(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	beat := func(after time.Duration, change func(*hubv1alpha1.Heartbeat)) *hubv1alpha1.Heartbeat {
		at := metav1.NewTime(began.Add(after))
		result := &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Time: &at}}}}
		result.Spec = hubv1alpha1.HeartbeatSpec{RenewTime: metav1.NewMicroTime(at.Time), IntervalSeconds: 10, Publication: hubv1alpha1.PublicationComplete}
		if change != nil {
			change(result)
		}
		return result
	}
	for name, test := range map[string]struct {
		after any
		want  bool
	}{
		"the next renewal":        {beat(10*time.Second, nil), true},
		"one was missed":          {beat(20*time.Second, nil), true},
		"it may have been silent": {beat(41*time.Second, nil), false},
		"another publication":     {beat(10*time.Second, func(b *hubv1alpha1.Heartbeat) { b.Spec.Publication = hubv1alpha1.PublicationPartial }), false},
		"another version":         {beat(10*time.Second, func(b *hubv1alpha1.Heartbeat) { b.Spec.AgentVersion = "v2" }), false},
		"a shorter interval":      {beat(10*time.Second, func(b *hubv1alpha1.Heartbeat) { b.Spec.IntervalSeconds = 1 }), false},
		"no managed fields":       {beat(10*time.Second, func(b *hubv1alpha1.Heartbeat) { b.ManagedFields = nil }), false},
		"another kind":            {&hubv1alpha1.Member{}, false},
	} {
		check.Equal(t, name, test.want, isRenewal(beat(0, nil), test.after))
	}
	check.Equal(t, "a change of a Member is ignored", false, isRenewal(&hubv1alpha1.Member{}, &hubv1alpha1.Member{}))
	corefile := &corev1.ConfigMap{Data: map[string]string{"Corefile": "."}}
	check.Equal(t, "a change of a Corefile is ignored", false, isRenewal(corefile, &corev1.ConfigMap{}))
	check.Equal(t, "a ConfigMap without a change of its data is ignored", true, isRenewal(corefile, corefile.DeepCopy()))
}

// renewedAt returns a hub with members whose heartbeats were renewed at these times.
func renewedAt(t *testing.T, renewed map[clusterset.ClusterID]time.Time, now time.Time) *survey.Hub {
	t.Helper()
	r := &surveytest.Records{}
	for id := range renewed {
		r.Member(id)
	}
	h := r.Hub(t)
	h.Renewed, h.Now = renewed, now
	return h
}

// TestUntilSilence: the hub is read again when the first connected member may be silent, and only then.
func TestUntilSilence(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		ages map[clusterset.ClusterID]time.Duration
		want time.Duration
	}{
		"no member":                   {nil, time.Hour},
		"all are silent":              {map[clusterset.ClusterID]time.Duration{"east": time.Minute}, time.Hour},
		"the oldest heartbeat counts": {map[clusterset.ClusterID]time.Duration{"east": 5 * time.Second, "west": 30 * time.Second, "mid": time.Minute}, 10 * time.Second},
		"it is due":                   {map[clusterset.ClusterID]time.Duration{"east": 40 * time.Second}, 0},
	} {
		renewed := map[clusterset.ClusterID]time.Time{}
		for id, age := range test.ages {
			renewed[id] = now.Add(-age)
		}
		check.Equal(t, name, test.want, untilSilence(renewedAt(t, renewed, now)))
	}
}

// TestIsBehind: a member that seems to be silent counts as such only if the hub has no later heartbeat of it than the cache.
func TestIsBehind(t *testing.T) {
	t.Parallel()
	now := time.Now().Truncate(time.Second)
	east, west := clusterset.ClusterID("east"), clusterset.ClusterID("west")
	at := func(renewed time.Time) *survey.Hub {
		return renewedAt(t, map[clusterset.ClusterID]time.Time{east: renewed, west: now}, now)
	}
	received := func(id clusterset.ClusterID, when time.Time) hubv1alpha1.Heartbeat {
		at := metav1.NewTime(when)
		return hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{
			Namespace: id.HubNamespace(), Name: hubv1alpha1.HeartbeatName,
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "agent", Operation: metav1.ManagedFieldsOperationUpdate, Time: &at}},
		}}
	}
	old := now.Add(-time.Minute)
	before, after := at(now), at(old)
	check.Equal(t, "silent clusters at first", []clusterset.ClusterID(nil), silentSince(before, before))
	lost := silentSince(before, after)
	check.Equal(t, "silent clusters", []clusterset.ClusterID{east}, lost)
	for name, test := range map[string]struct {
		live []hubv1alpha1.Heartbeat
		want bool
	}{
		"the same heartbeat":            {[]hubv1alpha1.Heartbeat{received(east, old)}, false},
		"a later one":                   {[]hubv1alpha1.Heartbeat{received(east, now)}, true},
		"a later one of another member": {[]hubv1alpha1.Heartbeat{received(west, now.Add(time.Second))}, false},
		"none":                          {nil, false},
	} {
		check.Equal(t, name, test.want, isBehind(after, lost, test.live))
	}
}

// TestReduce: a cache keeps what a status depends on, and of other Services only what decides whether they can be exported.
func TestReduce(t *testing.T) {
	t.Parallel()
	meta := func(annotation string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: "shop", Name: "web", Annotations: map[string]string{annotation: "web"}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "any"}},
		}
	}
	alias := &corev1.Service{ObjectMeta: meta(clusterset.AnnotationImport), Spec: corev1.ServiceSpec{ClusterIP: "10.0.0.1"}}
	other := &corev1.Service{ObjectMeta: meta("other"), Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "any.example"}}
	beat := &hubv1alpha1.Heartbeat{ObjectMeta: meta("any")}
	for _, object := range []any{alias, other, beat} {
		if got, err := reduce(object); err != nil || got != object {
			t.Errorf("%T: %v", object, err)
		}
	}
	if !clusterset.IsAlias(alias) || alias.Spec.ClusterIP == "" || alias.ManagedFields != nil {
		t.Errorf("the alias is %+v", alias)
	}
	if other.Name != "web" || other.Spec.Type != corev1.ServiceTypeExternalName || other.Spec.ExternalName != "" || other.Annotations != nil || other.ManagedFields != nil {
		t.Errorf("the other Service is %+v", other)
	}
	dns := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "tombolo-system", Name: "tombolo-dns"}}
	dns.Spec.ClusterIPs, dns.Spec.Selector = []string{"10.0.0.2"}, map[string]string{"app": "dns"}
	corefile := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}, Data: map[string]string{"Corefile": "."}}
	large := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "large"}, Data: map[string]string{"a": "b"}}
	for _, object := range []any{dns, corefile, large} {
		if _, err := reduce(object); err != nil {
			t.Errorf("%T: %v", object, err)
		}
	}
	if len(dns.Spec.ClusterIPs) != 1 || dns.Spec.Selector == nil || corefile.Data == nil || large.Data != nil {
		t.Errorf("of DNS: %+v, %+v, %+v", dns.Spec, corefile, large)
	}
	check.Equal(t, "it is known when the hub received the heartbeat", true, beat.ManagedFields != nil)
}

// TestUnanswered: a failed request is noted with the time at which failures began, and everything is read again after the first response.
func TestUnanswered(t *testing.T) {
	t.Parallel()
	signals := 0
	s := &watchedServer{changed: func() { signals++ }}
	refused := errors.New("connection refused")
	s.note(failureOf(&http.Response{StatusCode: http.StatusForbidden}, nil))
	if _, failing := s.unanswered("east"); failing || signals != 0 {
		t.Error("an API server that refuses a request counts as one that does not answer")
	}
	s.note(failureOf(nil, refused))
	first, failing := s.unanswered("east")
	if !failing || first.Context != "east" || first.Error != "connection refused" || signals != 1 || s.stale.Load() {
		t.Errorf("after a failure: %+v, %d signals", first, signals)
	}
	s.note(failureOf(&http.Response{StatusCode: http.StatusServiceUnavailable, Status: "503 Service Unavailable"}, nil))
	if again, _ := s.unanswered("east"); !again.Since.Equal(&first.Since) || again.Error != "503 Service Unavailable" || signals != 1 {
		t.Errorf("after another failure: %+v, %d signals", again, signals)
	}
	s.note(failureOf(&http.Response{StatusCode: http.StatusUnauthorized, Status: "401 Unauthorized"}, nil))
	_, failing = s.unanswered("east")
	check.Equal(t, "credentials that are not accepted count as a failure", true, failing)
	s.note(failureOf(&http.Response{StatusCode: http.StatusOK}, nil))
	if _, failing := s.unanswered("east"); failing || signals != 2 || !s.stale.Load() {
		t.Errorf("after a response: failing %t, %d signals", failing, signals)
	}
}
