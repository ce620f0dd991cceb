// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/rest"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/memberdns"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/surveytest"
	"github.com/tombolo-mcs/tombolo/controllers/imports"
	"github.com/tombolo-mcs/tombolo/e2e/framework/golden"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// checkGolden compares the JSON of a value with a file of testdata.
func checkGolden(t *testing.T, name string, value any) {
	t.Helper()
	got, err := json.MarshalIndent(value, "", "  ")
	check.Must(t, err)
	golden.Check(t, name, string(got)+"\n")
}

// troubled returns a clusterset with every kind of problem, and one service without any.
func troubled() (*surveytest.Records, []survey.MemberObjects, []survey.Unreached) {
	const complete, partial = hubv1alpha1.PublicationComplete, hubv1alpha1.PublicationPartial
	r := &surveytest.Records{}
	for _, id := range []clusterset.ClusterID{"down", "east", "ghost", "north", "west"} {
		r.Member(id)
	}
	r.Beat("down", "v1.0.0", complete, 41*time.Second)
	r.Beat("east", "v1.1.0", complete, 40*time.Second)
	r.Beat("north", "v1.1.0", partial, time.Second)
	r.Beat("west", "v1.1.0", complete, 20*time.Second)
	r.Heartbeats[len(r.Heartbeats)-1].Spec.IntervalSeconds = 2 // so that it is silent after 8 s

	r.Export("east", "shop/web", 48, surveytest.Port("http", 80))
	r.Serve("east", "shop/web", 2, 1)
	r.Export("west", "shop/web", 24, surveytest.Port("http", 8080))
	r.Serve("west", "shop/web", 1, 0)
	r.Export("east", "shop/fine", 5, surveytest.Port("http", 80))
	r.Serve("east", "shop/fine", 1, 0)
	r.Export("down", "shop/idle", 5, surveytest.Port("http", 80))
	r.Serve("down", "shop/idle", 0, 2)
	r.Export("north", "shop/refused", 5, surveytest.Port("http", 80)).Spec.Labels = map[string]hubv1alpha1.LabelValue{"kubernetes.io/x": "y"}

	pending := conditions.DeletionPending([]clusterset.ClusterID{"north"})
	east := survey.MemberObjects{
		ID: "east", Context: "admin@east", Agent: survey.Present,
		Exports: []mcsv1beta1.ServiceExport{
			surveytest.Export("shop/missing", metav1.Condition{Type: "Valid", Status: "False", Reason: "NoService", Message: "There is no Service missing in namespace shop."},
				metav1.Condition{Type: "Ready", Status: "False", Reason: "Pending", Message: "Nothing is exported until the export is valid; see condition Valid."}),
			surveytest.Export("shop/toomuch", metav1.Condition{Type: "Valid", Status: "True", Reason: "Valid"},
				metav1.Condition{Type: "Ready", Status: "False", Reason: "Failed", Message: "The hub refuses the export: the quota is used up"}),
			surveytest.Export("shop/web", conditions.Valid(nil), conditions.Exported(nil, conditions.Publication{Hub: conditions.HubSynced, Published: true})),
			surveytest.Export("shop/fine", conditions.Valid(nil), conditions.Exported(nil, conditions.Publication{
				Hub: conditions.HubSynced, Published: true, LeftOut: []string{"192.0.2.1 is outside the cluster's pod and node CIDRs"},
			})),
		},
		Imports: []mcsv1beta1.ServiceImport{
			surveytest.Import("shop/web", conditions.ImportReady(nil, nil), "east", "west"),
			surveytest.Import("shop/fine", conditions.ImportReady([]clusterset.Setting{{Field: clusterset.FieldTrafficDistribution, Value: "PreferNew"}}, nil), "east"),
			surveytest.Import("shop/lost-1", pending, "east", "north"), surveytest.Import("shop/lost-2", pending, "north"),
			surveytest.Import("shop/six", metav1.Condition{Type: "Ready", Status: "False", Message: "The service is exported with IP families [IPv6]."}, "north"),
			{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "foreign"}},
			{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "idle"}},
		},
	}
	east.DNS = memberdns.Configuration{State: memberdns.Forwarded, Message: "the Corefile forwards clusterset.local to 10.96.0.20"}
	west := survey.MemberObjects{ID: "west", Context: "admin@west", Agent: survey.Missing, Errs: []error{errors.New("list ServiceExports: forbidden")}}
	west.DNS = memberdns.Configuration{State: memberdns.NotKnown, Message: "there is no ConfigMap kube-system/coredns with a Corefile"}
	return r, []survey.MemberObjects{east, west}, []survey.Unreached{{Context: "old", Err: errors.New("connection refused")}}
}

// TestAssess compares a whole status. go test ./cmd/kubectl-clusterset/survey/assess -update writes the file again.
func TestAssess(t *testing.T) {
	t.Parallel()
	r, members, unreached := troubled()
	checkGolden(t, "status.json", assess.Assess(r.Hub(t), members, unreached))
}

// TestHubUnread: without the hub, a status has what the clusters that were read have, and says nothing about what is not known.
func TestHubUnread(t *testing.T) {
	t.Parallel()
	_, members, _ := troubled()
	h := &survey.Hub{
		KubeContext: survey.KubeContext{Name: "hub", Config: &rest.Config{Host: "https://hub.example"}}, Err: errors.New("down"),
		Snapshot: &hub.Snapshot{}, Records: hub.NewStore("", clusterset.AddressRanges{}),
	}
	unread := survey.Unread{Context: "hub", IsHub: true, Failure: apiserver.Failure{Message: "down", Next: "start it"}}
	status := assess.Assess(h, members, nil, unread)
	found := map[assess.Reason]int{}
	for _, p := range status.Problems {
		found[p.Reason]++
	}
	check.Equal(t, "problems", map[assess.Reason]int{
		assess.ReasonHubUnreadable: 1, assess.ReasonMemberUnreadable: 1, assess.ReasonExportInvalid: 1, assess.ReasonExportFailed: 1,
		assess.ReasonImportNotReady: 1, assess.ReasonSettingsLeftOut: 1,
	}, found)
	if status.IsComplete() || status.IsHubRead() || len(status.Members) != 2 || status.Members[0].State != survey.StateUnknown {
		t.Errorf("%+v", status)
	}
	for _, s := range status.Services {
		if s.Key() == "shop/web" && (len(s.Exporters) != 2 || !s.Exporters[1].AtLeast || len(s.Importers) != 1) {
			t.Errorf("%+v", s)
		}
	}
}

// TestEnding: what is left in a namespace that is being deleted is no problem: Kubernetes deletes a Service before its ServiceExport.
func TestEnding(t *testing.T) {
	t.Parallel()
	r, members, _ := troubled()
	members[0].Terminating = sets.New("shop")
	for _, p := range assess.Assess(r.Hub(t), members[:1], nil).Problems {
		if p.Member == "east" && p.Service != "" {
			t.Errorf("%+v", p)
		}
	}
}

// TestHubAlone: without members, the status has the data of the hub, and does not report missing data as zero.
func TestHubAlone(t *testing.T) {
	t.Parallel()
	r, _, _ := troubled()
	status := assess.Assess(r.Hub(t), nil, nil)
	found := map[assess.Reason]int{}
	for _, p := range status.Problems {
		found[p.Reason]++
	}
	want := map[assess.Reason]int{
		assess.ReasonMemberSilent: 2, assess.ReasonMemberNeverConnected: 1, assess.ReasonRecordRefused: 1, assess.ReasonConflict: 1,
		assess.ReasonNoReadyEndpoints: 1, assess.ReasonPublicationPartial: 1, assess.ReasonVersionSkew: 1,
	}
	check.Equal(t, "problems", want, found)
	for _, m := range status.Members {
		if m.Imports != nil || m.PendingDeletions != nil || m.Context != "" {
			t.Errorf("of %s, which was not reached, it reports %v imports", m.ID, m.Imports)
		}
	}
}

// TestObstructed: a ServiceImport is reported if it is unmanaged and a cluster exports a service of its name.
func TestObstructed(t *testing.T) {
	t.Parallel()
	r := &surveytest.Records{}
	r.Member("a")
	r.Beat("a", "v1.0.0", hubv1alpha1.PublicationComplete, time.Second)
	r.Export("a", "shop/web", 1, surveytest.Port("http", 80))
	r.Serve("a", "shop/web", 1, 0)
	named := func(key string) mcsv1beta1.ServiceImport {
		k := surveytest.Key(key)
		return mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}}
	}
	lost := named("shop/web")
	lost.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: clusterset.FieldManager}}
	another := named("shop/web")
	another.Labels = map[string]string{clusterset.LabelManagedBy: "another"}
	want := []assess.Problem{{
		Severity: assess.SeverityError, Reason: assess.ReasonImportObstructed, Member: "a", Service: "shop/web",
		Message: "The service is not imported, because a ServiceImport of this name is there that is not managed by Tombolo.",
		Next:    "If no program needs that one: kubectl --context admin@a -n shop delete serviceimport web",
	}}
	for name, test := range map[string]struct {
		object mcsv1beta1.ServiceImport
		policy imports.NamespacePolicy
		want   []assess.Problem
	}{
		"without a label":       {named("shop/web"), imports.NamespacePolicy{}, want},
		"another's label":       {another, imports.NamespacePolicy{}, want},
		"ours, lost its label":  {lost, imports.NamespacePolicy{}, nil},
		"no cluster exports it": {named("shop/other"), imports.NamespacePolicy{}, nil},
		"namespace denied":      {named("shop/web"), imports.NamespacePolicy{Denied: []string{"shop"}}, nil},
	} {
		objects := survey.MemberObjects{ID: "a", Context: "admin@a", Imports: []mcsv1beta1.ServiceImport{test.object}, Namespaces: test.policy}
		got := assess.Assess(r.Hub(t), []survey.MemberObjects{objects}, nil).Problems
		check.Equal(t, name, test.want, got, cmpopts.EquateEmpty())
	}
}

// TestInNamespace: members and their problems belong to no namespace.
func TestInNamespace(t *testing.T) {
	t.Parallel()
	r, members, unreached := troubled()
	all := assess.Assess(r.Hub(t), members, unreached)
	for namespace, want := range map[string]struct{ services, problems int }{
		"": {len(all.Services), len(all.Problems)}, "shop": {len(all.Services), len(all.Problems)}, "other": {0, 7},
	} {
		got := all.InNamespace(namespace)
		if len(got.Services) != want.services || len(got.Problems) != want.problems || len(got.Members) != len(all.Members) {
			t.Errorf("%q: %d services and %d problems, want %v", namespace, len(got.Services), len(got.Problems), want)
		}
	}
}

// TestChangesBetween: the age of a heartbeat is not a change; all other differences are.
func TestChangesBetween(t *testing.T) {
	t.Parallel()
	r, members, unreached := troubled()
	before := assess.Assess(r.Hub(t), members, unreached)
	later := *r
	later.Heartbeats = nil
	for _, beat := range r.Heartbeats {
		later.Beat(clusterset.ClusterID(beat.Namespace[len("member-"):]), beat.Spec.AgentVersion, beat.Spec.Publication, surveytest.Now.Sub(beat.ManagedFields[0].Time.Time)+time.Hour)
	}
	later.Heartbeats[3] = r.Heartbeats[3]
	if got := assess.ChangesBetween(before, assess.Assess(r.Hub(t), members, unreached)); !got.IsEmpty() {
		t.Errorf("between a status and itself: %+v", got)
	}
	got := assess.ChangesBetween(before, assess.Assess(later.Hub(t), members, unreached))
	var changes []string
	for _, p := range got.Appeared {
		changes = append(changes, fmt.Sprintf("+%s %s", p.Reason, p.Member))
	}
	for _, p := range got.Solved {
		changes = append(changes, fmt.Sprintf("-%s %s", p.Reason, p.Member))
	}
	for _, m := range got.Members {
		changes = append(changes, fmt.Sprintf("%s %s", m.ID, m.State))
	}
	want := []string{"+MemberSilent east", "+MemberSilent north", "-PublicationPartial north", "east Silent", "north Silent"}
	check.Equal(t, "changes", want, changes)
	after := assess.Assess(r.Hub(t), members, unreached)
	after.Members, after.Services = after.Members[1:], after.Services[:1]
	after.Services[0].Oldest = "another"
	gone := assess.ChangesBetween(before, after)
	if len(gone.MembersGone) != 1 || gone.MembersGone[0].ID != "down" || len(gone.ServicesGone) != 3 || len(gone.Services) != 1 || len(gone.Members) != 0 {
		t.Errorf("members and services that are gone: %+v", gone)
	}
}

// BenchmarkAssess computes the status of 10,000 services of 10 members.
func BenchmarkAssess(b *testing.B) {
	r := &surveytest.Records{}
	for i := range 10 {
		r.Member(clusterset.ClusterID(fmt.Sprintf("member-%d", i)))
	}
	for i := range 10_000 {
		key := fmt.Sprintf("shop/svc-%d", i)
		for j := range 2 {
			id := clusterset.ClusterID(fmt.Sprintf("member-%d", (i+j)%10))
			r.Export(id, key, 5, surveytest.Port("http", 80))
			r.Serve(id, key, 3, 1)
		}
	}
	h := r.Hub(b)
	for b.Loop() {
		if got := assess.Assess(h, nil, nil); len(got.Services) != 10_000 {
			b.Fatalf("%d services", len(got.Services))
		}
	}
}

// TestMemberCopied: a copy of a member is reported for an hour after its agent has started, also if no cluster was read. The times are by the
// member's clock, which may differ from that of the hub.
//
// spec: K2
func TestMemberCopied(t *testing.T) {
	t.Parallel()
	const ago = 5 * time.Second // the last heartbeat
	for name, test := range map[string]struct {
		contested, skew time.Duration // before the last heartbeat
		want            bool
	}{
		"never":                         {0, 0, false},
		"now":                           {time.Second, 0, true},
		"an hour ago":                   {time.Hour, 0, false},
		"almost an hour ago":            {time.Hour - ago - time.Second, 0, true},
		"now, by a clock that is slow":  {time.Second, -48 * time.Hour, true},
		"long ago, by one that is fast": {2 * time.Hour, 48 * time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &surveytest.Records{}
			r.Member("west")
			r.Beat("west", "v1", hubv1alpha1.PublicationComplete, ago)
			beat := &r.Heartbeats[0].Spec
			beat.RenewTime = metav1.NewMicroTime(surveytest.Now.Add(test.skew - ago))
			if test.contested > 0 {
				beat.ContestedAt = new(metav1.NewMicroTime(beat.RenewTime.Add(-test.contested)))
			}
			var got []assess.Reason
			for _, p := range assess.Assess(r.Hub(t), nil, nil).Problems {
				got = append(got, p.Reason)
			}
			var want []assess.Reason
			if test.want {
				want = []assess.Reason{assess.ReasonMemberCopied}
			}
			check.Equal(t, "problems", want, got)
		})
	}
}
