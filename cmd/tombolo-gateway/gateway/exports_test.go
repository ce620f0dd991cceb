// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

func exportedConditions() []metav1.Condition {
	return []metav1.Condition{{Type: "Valid", Status: "True", Reason: "Valid"}, {Type: "Ready", Status: "True", Reason: "Exported"}}
}

// one is the cache of a cluster with namespace shop and Service web, and its ServiceExport, of which it tells a gateway.
type one struct {
	client.Reader
	export  *mcsv1beta1.ServiceExport // nil if there is none
	grants  []policyv1alpha1.ServiceExportGrant
	handler toolscache.ResourceEventHandler
}

func (o *one) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch object := object.(type) {
	case *mcsv1beta1.ServiceExport:
		if o.export != nil {
			o.export.DeepCopyInto(object)
			return nil
		}
	case *corev1.Service:
		object.Name, object.Namespace = key.Name, key.Namespace
		object.Spec = corev1.ServiceSpec{ClusterIP: "10.2.0.1", IPFamilies: []corev1.IPFamily{"IPv4"}, Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}}
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (o *one) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch l := list.(type) {
	case *corev1.NamespaceList:
		l.Items = []corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}
	case *policyv1alpha1.ServiceExportGrantList:
		l.Items = o.grants
	}
	return nil
}

// set changes the ServiceExport. nil deletes it.
func (o *one) set(change func(*mcsv1beta1.ServiceExport)) {
	before := o.export
	if change == nil {
		o.export = nil
		o.handler.OnDelete(toolscache.DeletedFinalStateUnknown{Obj: before})
		return
	}
	after := &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	change(after)
	o.export = after
	if before == nil {
		o.handler.OnAdd(after, false)
	} else {
		o.handler.OnUpdate(before, after)
	}
}

func noRules(context.Context, clusterset.ClusterID, string) export.BackendRules {
	return export.BackendRules{}
}

func isValid(e *mcsv1beta1.ServiceExport) { e.Status.Conditions = exportedConditions() }

func hasNoStatus(*mcsv1beta1.ServiceExport) {}

func isGranted(e *mcsv1beta1.ServiceExport) {
	isValid(e)
	e.Annotations = map[string]string{clusterset.AnnotationGrantedOnly: "true"}
}

func becomesInvalid(e *mcsv1beta1.ServiceExport) {
	e.Status.Conditions = []metav1.Condition{{Type: "Valid", Status: "False", Reason: "NoService"}, {Type: "Ready", Status: "False", Reason: "Pending"}}
}

func isNotAllowed(e *mcsv1beta1.ServiceExport) {
	isValid(e)
	e.Status.Conditions[1] = metav1.Condition{Type: "Ready", Status: "False", Reason: "NotAllowed"}
}

// After a withdrawal, a gateway accepts streams and keeps open ones for a few seconds. Then it refuses and ends them, without another
// event. A rule and the hub's administrator end them at once.
//
// spec: G3, A4
func TestWithdrawal(t *testing.T) {
	t.Parallel()
	const moment = time.Millisecond
	deny := func(o *one) {
		o.grants = []policyv1alpha1.ServiceExportGrant{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "other"}, Spec: policyv1alpha1.ServiceExportGrantSpec{To: []policyv1alpha1.Peer{{Clusters: []policyv1alpha1.ClusterID{"north"}}}},
		}}
	}
	type step struct {
		after  time.Duration // since the step before
		change func(*one, *accessRules)
		served bool // new streams are accepted, and open ones live
	}
	set := func(change func(*mcsv1beta1.ServiceExport)) func(*one, *accessRules) {
		return func(o *one, _ *accessRules) { o.set(change) }
	}
	nothing := func(*one, *accessRules) {}
	for name, steps := range map[string][]step{
		"deleted": {
			{moment, set(nil), true}, {withdrawalGrace - 2*moment, nothing, true}, {2 * moment, nothing, false}, {time.Hour, nothing, false},
		},
		"not valid":   {{moment, set(becomesInvalid), true}, {withdrawalGrace + moment, nothing, false}},
		"not allowed": {{moment, set(isNotAllowed), false}},
		"not allowed after the deletion": {
			{moment, set(nil), true}, {moment, set(isNotAllowed), false},
		},
		"created again at once": {
			{moment, set(nil), true}, {moment, set(hasNoStatus), true}, {moment, set(isValid), true}, {time.Hour, nothing, true},
		},
		"created again late": {
			{moment, set(nil), true}, {withdrawalGrace + moment, nothing, false}, {moment, set(hasNoStatus), false}, {moment, set(isValid), true},
		},
		"created and deleted again": {
			{moment, set(nil), true}, {4 * time.Second, set(isValid), true}, {moment, set(nil), true}, {4 * time.Second, nothing, true}, {time.Second, nothing, false},
		},
		"a rule changes, which does not deny": {
			{moment, set(nil), true}, {moment, func(_ *one, r *accessRules) { r.notify() }, true}, {withdrawalGrace, nothing, false},
		},
		"a grant denies": {
			{moment, set(nil), true}, {moment, func(o *one, r *accessRules) { deny(o); r.notify() }, false},
		},
		"for granted clients only":            {{moment, set(isGranted), false}},
		"created again for granted ones only": {{moment, set(nil), true}, {moment, set(isGranted), false}},
		"granted only, and deleted":           {{moment, set(isGranted), false}, {moment, set(nil), false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				cluster := &one{}
				r := newAccessRules(t.Context(), cluster, logr.Discard(), newDenials(events.NewFakeRecorder(100), clock.RealClock{}))
				cluster.handler = follow(r.exports.observe)
				open := wire.Open{Namespace: "shop", Service: "web", Port: 80}
				var lives atomic.Bool
				lives.Store(true)
				ctx, end := context.WithCancel(t.Context())
				defer end()
				r.load(ctx)
				go func() { // as run does, with one open stream
					for {
						select {
						case <-ctx.Done():
							return
						case <-r.changed:
							r.load(ctx)
							lives.Store(lives.Load() && r.exporting.Denied("east", open) == nil)
						}
					}
				}()
				cluster.set(isValid)
				for i, s := range steps {
					time.Sleep(s.after) //nolint:forbidigo // the clock of a synctest bubble
					s.change(cluster, r)
					synctest.Wait()
					_, refusal := backends{cluster, noRules, r.exports}.Endpoints("east", open)
					if refusal == nil {
						refusal = r.exporting.Denied("east", open)
					}
					if (refusal == nil) != s.served {
						t.Errorf("step %d: a new stream: %v, want accepted: %v", i, refusal, s.served)
					}
					if !s.served {
						check.Equal(t, "a stream is open that was before the withdrawal", false, lives.Load())
					} else if i == 0 {
						check.Equal(t, "a stream that was open before is open after the first step", true, lives.Load())
					}
				}
				ended := slices.ContainsFunc(steps, func(s step) bool { return !s.served })
				check.Equal(t, "an open stream has ended", ended, !lives.Load())
			})
		})
	}
}

// A client that a rule denies gets the same answer for a service that is exported, and for one that does not exist.
//
// spec: A2, G3
func TestDeniedLearnsNothing(t *testing.T) {
	t.Parallel()
	grantTo := func(peer policyv1alpha1.Peer) []policyv1alpha1.ServiceExportGrant {
		return []policyv1alpha1.ServiceExportGrant{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "grant"}, Spec: policyv1alpha1.ServiceExportGrantSpec{To: []policyv1alpha1.Peer{peer}},
		}}
	}
	north := grantTo(policyv1alpha1.Peer{Clusters: []policyv1alpha1.ClusterID{"north"}})
	named := grantTo(policyv1alpha1.Peer{Namespaces: []policyv1alpha1.NamespaceName{"front"}})
	var unidentified, front wire.Open
	unidentified.Unidentified, front.ClientNamespace = true, "front"
	exports := map[string]func(*mcsv1beta1.ServiceExport){"exported": isValid, "not valid": becomesInvalid, "not allowed": isNotAllowed, "no export": nil}
	for name, test := range map[string]struct {
		grants []policyv1alpha1.ServiceExportGrant
		client wire.Open
		want   string            // for each service
		but    map[string]string // except for these
	}{
		"no rule":             {nil, wire.Open{}, "NotExported", map[string]string{"exported": ""}},
		"granted to others":   {north, wire.Open{}, "Denied", nil},
		"granted to a client": {named, front, "NotExported", map[string]string{"exported": ""}},
		"another client":      {named, wire.Open{}, "Denied", nil},
		"not identified yet":  {named, unidentified, "Unidentified", nil},
	} {
		for state, export := range exports {
			cluster := &one{grants: test.grants}
			r := newAccessRules(t.Context(), cluster, logr.Discard(), newDenials(events.NewFakeRecorder(100), clock.RealClock{}))
			cluster.handler = follow(r.exports.observe)
			r.load(t.Context())
			if export != nil {
				cluster.set(export)
			}
			open, got, want := test.client, "", test.want
			open.Namespace, open.Service, open.Port = "shop", "web", 80
			if refusal := r.exporting.Denied("east", open); refusal != nil {
				got = refusal.Code.String()
			}
			if other, ok := test.but[state]; ok {
				want = other
			}
			check.Equal(t, name+", "+state, want, got)
		}
	}
}
