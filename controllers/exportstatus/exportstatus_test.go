// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package exportstatus

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/gather"
	"github.com/tombolo-mcs/tombolo/controllers/publish"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/record"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestConflictsStayUntilAllIsKnown: an agent that has started does not change the condition Conflict before it has listed the
// exports of all members, and the record of the local export.
//
// spec: C3, D7
func TestConflictsStayUntilAllIsKnown(t *testing.T) {
	t.Parallel()
	ours, theirs := exportOf("own", 80), exportOf("other", 81)
	for name, test := range map[string]struct {
		hub  *listing // nil if it has not been listed
		want string
	}{
		"the hub has not been read":           {},
		"it has lost this cluster's Member":   {hub: &listing{members: []string{"other"}, exports: []clusterset.Export{ours, theirs}}},
		"it has not recorded the export":      {hub: &listing{members: []string{"own", "other"}, exports: []clusterset.Export{theirs}}},
		"it has recorded what both export":    {hub: &listing{members: []string{"own", "other"}, exports: []clusterset.Export{ours, theirs}}, want: "PortConflict"},
		"it has recorded what is no conflict": {hub: &listing{members: []string{"own", "other"}, exports: []clusterset.Export{ours}}, want: "NoConflicts"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := hub.NewStore("own", clusterset.AddressRanges{})
			if test.hub != nil {
				snapshot, err := hub.Read(t.Context(), test.hub)
				check.Must(t, err)
				snapshot.Fill(store)
			}
			r := &Reconciler{
				Sources: gather.Reader{Cluster: "own", Hub: store}, Outcomes: publish.NewOutcomes(), Refusal: func() string { return "" }, Unreached: reached,
			}
			decided := r.decide(sources.Sources{
				Key: ours.Key, Export: &mcsv1beta1.ServiceExport{}, Local: &ours, Hub: store.Service(ours.Key),
			})
			got := ""
			if conflict := meta.FindStatusCondition(decided, string(mcsv1beta1.ServiceExportConditionConflict)); conflict != nil {
				got = conflict.Reason
			}
			if got != test.want {
				t.Errorf("the condition Conflict says %q, want %q", got, test.want)
			}
		})
	}
}

// TestListedMeanwhile: data of the hub that arrives during a reconciliation is not mixed with earlier data. A record that was not
// listed before would look missing.
//
// spec: C3, D7
func TestListedMeanwhile(t *testing.T) {
	t.Parallel()
	ours := exportOf("own", 80)
	store := hub.NewStore("own", clusterset.AddressRanges{})
	known := sources.Sources{Key: ours.Key, Export: ready(), Local: &ours, Hub: store.Service(ours.Key)}
	snapshot, err := hub.Read(t.Context(), &listing{members: []string{"own"}, exports: []clusterset.Export{ours}})
	check.Must(t, err)
	snapshot.Fill(store)
	r := &Reconciler{
		Sources: gather.Reader{Cluster: "own", Hub: store}, Outcomes: publish.NewOutcomes(), Refusal: func() string { return "" }, Unreached: reached,
	}
	readyCondition := func() *metav1.Condition {
		return meta.FindStatusCondition(r.decide(known), string(mcsv1beta1.ServiceExportConditionReady))
	}
	if got := readyCondition(); got != nil {
		t.Errorf("as nothing was listed yet, the condition Ready became %s: %s", got.Status, got.Message)
	}
	known.Hub = store.Service(ours.Key)
	if got := readyCondition(); got == nil || got.Status != metav1.ConditionTrue {
		t.Errorf("as all was listed, the condition Ready became %+v", got)
	}
}

// TestExportedMeansRecorded: an export is ready if the hub stores the record that would be published now, not an earlier one.
//
// spec: C2
func TestExportedMeansRecorded(t *testing.T) {
	t.Parallel()
	ours, before, made := exportOf("own", 80), exportOf("own", 79), exportOf("own", 80)
	made.Age = made.Age.Add(-time.Hour)
	for name, test := range map[string]struct {
		recorded []clusterset.Export
		failure  string
		want     string
	}{
		"as it is now":                      {recorded: []clusterset.Export{ours}, want: "True Exported"},
		"as it was before":                  {recorded: []clusterset.Export{before}, want: "False Pending"},
		"as it was before it was made anew": {recorded: []clusterset.Export{made}, want: "False Pending"},
		"not at all":                        {want: "False Pending"},
		"as it was before, and is refused":  {recorded: []clusterset.Export{before}, failure: "exceeded quota", want: "False Failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			snapshot, err := hub.Read(t.Context(), &listing{members: []string{"own"}, exports: test.recorded})
			check.Must(t, err)
			store := snapshot.Store("own", clusterset.AddressRanges{})
			outcomes := publish.NewOutcomes()
			outcomes.Set(ours.Key, publish.Outcome{Failure: test.failure})
			r := &Reconciler{
				Sources: gather.Reader{Cluster: "own", Hub: store}, Outcomes: outcomes, Refusal: func() string { return "" }, Unreached: reached,
			}
			decided := r.decide(sources.Sources{Key: ours.Key, Export: ready(), Local: &ours, Hub: store.Service(ours.Key)})
			readyCondition := meta.FindStatusCondition(decided, string(mcsv1beta1.ServiceExportConditionReady))
			if readyCondition == nil || string(readyCondition.Status)+" "+readyCondition.Reason != test.want {
				t.Errorf("Ready is %+v, want %s", readyCondition, test.want)
			}
		})
	}
}

// TestOutdated: an export that is not ready says whether other clusters use an older version. That the hub has stored one is known from
// the status after the hub has lost it, for as long as the export is not stored again.
//
// spec: C2, E3
func TestOutdated(t *testing.T) {
	t.Parallel()
	ours, before := exportOf("own", 80), exportOf("own", 79)
	said := func(conditionType string) []metav1.Condition {
		return []metav1.Condition{{Type: conditionType, Status: metav1.ConditionTrue}}
	}
	isReady := string(mcsv1beta1.ServiceExportConditionReady)
	for name, test := range map[string]struct {
		members  []string
		recorded []clusterset.Export
		failure  string
		said     []metav1.Condition
		want     string
	}{
		"new":                                  {},
		"new, and refused":                     {failure: "exceeded quota"},
		"stored":                               {recorded: []clusterset.Export{ours}, said: said(conditions.TypeOutdated)},
		"an update on its way":                 {recorded: []clusterset.Export{before}, said: said(isReady)},
		"a refused update":                     {recorded: []clusterset.Export{before}, failure: "too long", said: said(isReady), want: conditions.ReasonUpdateRefused},
		"a refused slice":                      {recorded: []clusterset.Export{ours}, failure: "too long", want: conditions.ReasonUpdateRefused},
		"lost":                                 {said: said(isReady), want: conditions.ReasonRecordLost},
		"lost, and refused":                    {failure: "too long", said: said(isReady), want: conditions.ReasonRecordLost},
		"lost after a refused update":          {failure: "too long", said: said(conditions.TypeOutdated), want: conditions.ReasonRecordLost},
		"lost with the Member of this cluster": {members: []string{"other"}, said: said(isReady), want: conditions.ReasonRecordLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.members == nil {
				test.members = []string{"own"}
			}
			snapshot, err := hub.Read(t.Context(), &listing{members: test.members, exports: test.recorded})
			check.Must(t, err)
			outcomes := publish.NewOutcomes()
			outcomes.Set(ours.Key, publish.Outcome{Failure: test.failure})
			store := snapshot.Store("own", clusterset.AddressRanges{})
			r := &Reconciler{Sources: gather.Reader{Cluster: "own", Hub: store}, Outcomes: outcomes, Refusal: func() string { return "" }, Unreached: reached}
			export := ready()
			export.Status.Conditions = test.said
			decided := r.decide(sources.Sources{Key: ours.Key, Export: export, Local: &ours, Hub: store.Service(ours.Key)})
			got := ""
			if outdated := meta.FindStatusCondition(append(decided, kept(export, decided)...), conditions.TypeOutdated); outdated != nil {
				got = outdated.Reason
			}
			check.Equal(t, "Outdated", test.want, got)
		})
	}
}

// TestProxyProtocol: an export with the annotation says whether all clients of its ports send the header, and says nothing without it.
//
// spec: G14
func TestProxyProtocol(t *testing.T) {
	t.Parallel()
	gateways, b := &sources.Gateways{}, []clusterset.ClusterID{"b", "c"}
	for name, test := range map[string]struct {
		annotation string
		known      sources.Sources
		unknown    bool // the hub is not read
		granted    []clusterset.ClusterID
		want       string
	}{
		"no annotation":             {known: sources.Sources{Gateways: gateways}},
		"gateways send it":          {annotation: "80", known: sources.Sources{Gateways: gateways}, want: conditions.ReasonHeaderSent},
		"no gateways":               {annotation: "80", want: conditions.ReasonNoGateways},
		"another port":              {annotation: "81", known: sources.Sources{Gateways: gateways}, want: conditions.ReasonPortsUnknown},
		"clusters of the network":   {annotation: "80", known: sources.Sources{Gateways: gateways, Direct: b}, want: conditions.ReasonDirectClients},
		"exported to none of these": {annotation: "80", known: sources.Sources{Gateways: gateways, Direct: b}, granted: []clusterset.ClusterID{"d"}, want: conditions.ReasonHeaderSent},
		"exported to one of these":  {annotation: "80", known: sources.Sources{Gateways: gateways, Direct: b}, granted: []clusterset.ClusterID{"c"}, want: conditions.ReasonDirectClients},
		"the hub is not read":       {annotation: "80", known: sources.Sources{Gateways: gateways}, unknown: true, want: "said before"},
		"not valid":                 {annotation: "80", known: sources.Sources{Gateways: gateways, Rejection: &export.Rejection{}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours := exportOf("own", 80)
			ours.GrantedTo = test.granted
			store := hub.NewStore("own", clusterset.AddressRanges{})
			if !test.unknown {
				snapshot, err := hub.Read(t.Context(), &listing{members: []string{"own"}})
				check.Must(t, err)
				store = snapshot.Store("own", clusterset.AddressRanges{})
			}
			r := &Reconciler{Sources: gather.Reader{Cluster: "own", Hub: store}, Outcomes: publish.NewOutcomes(), Refusal: func() string { return "" }, Unreached: reached}
			object := ready()
			if test.annotation != "" {
				object.Annotations = map[string]string{clusterset.AnnotationProxyProtocol: test.annotation}
			}
			object.Status.Conditions = []metav1.Condition{{Type: conditions.TypeProxyProtocol, Status: metav1.ConditionTrue, Reason: "said before"}}
			known := test.known
			known.Key, known.Export, known.Local, known.Hub = ours.Key, object, &ours, store.Service(ours.Key)
			decided := r.decide(known)
			got := ""
			if c := meta.FindStatusCondition(conditions.Set(kept(object, decided), decided, 1, metav1.Time{}), conditions.TypeProxyProtocol); c != nil {
				got = c.Reason
			}
			check.Equal(t, "ProxyProtocol", test.want, got)
		})
	}
}

// TestHubNotReached: an agent that has not read the hub keeps what is known of an export, and says of any other since when the hub is not
// reached: no earlier reason of waiting remains.
//
// spec: C2
func TestHubNotReached(t *testing.T) {
	t.Parallel()
	ours, lost := exportOf("own", 80), time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	const notReached = "The hub has not been reached since 2026-03-01 12:00:00Z. The export is published when it is."
	rejected := conditions.Exported(&export.Rejection{}, conditions.Publication{})
	for name, test := range map[string]struct {
		existing []metav1.Condition
		want     string // empty if the condition stays
	}{
		"new":             {nil, notReached},
		"was not valid":   {[]metav1.Condition{rejected}, notReached},
		"was on its way":  {[]metav1.Condition{conditions.Exported(nil, conditions.Publication{Hub: conditions.HubSynced})}, notReached},
		"was exported":    {[]metav1.Condition{conditions.Exported(nil, conditions.Publication{Hub: conditions.HubSynced, Published: true})}, ""},
		"was refused":     {[]metav1.Condition{conditions.Exported(nil, conditions.Publication{Failure: "no"})}, ""},
		"was not allowed": {[]metav1.Condition{conditions.Exported(nil, conditions.Publication{NotAllowed: "no"})}, ""},
		"was not reached": {[]metav1.Condition{conditions.Exported(nil, conditions.Publication{Hub: conditions.HubUnknown})}, notReached},
	} {
		store := hub.NewStore("own", clusterset.AddressRanges{})
		r := &Reconciler{
			Sources: gather.Reader{Cluster: "own", Hub: store}, Outcomes: publish.NewOutcomes(), Refusal: func() string { return "" },
			Unreached: func() time.Time { return lost },
		}
		object := &mcsv1beta1.ServiceExport{Status: mcsv1beta1.ServiceExportStatus{Conditions: test.existing}}
		decided := r.decide(sources.Sources{Key: ours.Key, Export: object, Local: &ours, Hub: store.Service(ours.Key)})
		got := ""
		if c := meta.FindStatusCondition(decided, string(mcsv1beta1.ServiceExportConditionReady)); c != nil {
			got = c.Message
		}
		check.Equal(t, name, test.want, got)
	}
}

// TestUntilReported: the first status of an export waits while the export is on its way to the hub, and for nothing else.
//
// spec: C2
func TestUntilReported(t *testing.T) {
	t.Parallel()
	condition := func(status metav1.ConditionStatus, reason mcsv1beta1.ServiceExportConditionReason) []metav1.Condition {
		return []metav1.Condition{{Type: string(mcsv1beta1.ServiceExportConditionReady), Status: status, Reason: string(reason)}}
	}
	pending := condition(metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonPending)
	for name, test := range map[string]struct {
		age       time.Duration
		existing  []metav1.Condition
		rejection *export.Rejection
		desired   []metav1.Condition
		want      time.Duration
	}{
		"new":                        {age: 500 * time.Millisecond, desired: pending, want: 4500 * time.Millisecond},
		"five seconds old":           {age: 5 * time.Second, desired: pending},
		"in the future":              {age: -time.Second, desired: pending},
		"with a status":              {desired: pending, existing: pending},
		"invalid":                    {desired: pending, rejection: &export.Rejection{}},
		"exported":                   {desired: condition(metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)},
		"refused":                    {desired: condition(metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonFailed)},
		"while the hub is not known": {desired: condition(metav1.ConditionUnknown, mcsv1beta1.ServiceExportReasonPending)},
		"without Ready":              {},
	} {
		known := sources.Sources{Export: ready(), Rejection: test.rejection}
		known.Export.Status.Conditions = test.existing
		if got := untilReported(known, test.desired, known.Export.CreationTimestamp.Add(test.age)); got != test.want {
			t.Errorf("%s: the status waits for %v, want %v", name, got, test.want)
		}
	}
}

// ready returns a ServiceExport with the condition Ready, as old as the export of exportOf.
func ready() *mcsv1beta1.ServiceExport {
	return &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(exportOf("own", 80).Age)}, Status: mcsv1beta1.ServiceExportStatus{Conditions: []metav1.Condition{{
		Type: string(mcsv1beta1.ServiceExportConditionReady), Status: metav1.ConditionTrue,
	}}}}
}

// exportOf returns an export of a cluster, with one port.
func exportOf(id clusterset.ClusterID, port int32) clusterset.Export {
	return clusterset.Export{
		Cluster: id, Key: clusterset.ServiceKey{Namespace: "shop", Name: "web"}, Age: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Type: mcsv1beta1.ClusterSetIP, Ports: []clusterset.Port{{Name: "http", Protocol: corev1.ProtocolTCP, Port: port}},
		IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol}, Affinity: clusterset.Affinity{Mode: corev1.ServiceAffinityNone},
	}
}

// listing answers lists of a hub with these members and exports.
type listing struct {
	client.Reader
	members []string
	exports []clusterset.Export
}

func (l *listing) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch list := into.(type) {
	case *hubv1alpha1.MemberList:
		for _, id := range l.members {
			list.Items = append(list.Items, hubv1alpha1.Member{
				ObjectMeta: metav1.ObjectMeta{Namespace: clusterset.ClusterID(id).HubNamespace(), Name: hubv1alpha1.MemberName},
				Spec:       hubv1alpha1.MemberSpec{ClusterID: id, PodCIDRs: []hubv1alpha1.CIDR{"10.1.0.0/16"}},
			})
		}
	case *hubv1alpha1.PublishedServiceList:
		for _, export := range l.exports {
			list.Items = append(list.Items, *record.EncodeService(export))
		}
	}
	return nil
}

// reached is the answer of a connection to a hub that is reached.
func reached() time.Time { return time.Time{} }
