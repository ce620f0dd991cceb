// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var rejection = &export.Rejection{Reason: "NoService", Message: "There is no Service web."}

func conditionOf(kind string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: status, Reason: reason, Message: message}
}

// spec: C1, E5, E6
func TestValid(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		rejection *export.Rejection
		want      metav1.Condition
	}{
		"valid":    {nil, conditionOf("Valid", "True", "Valid", "The Service can be exported.")},
		"rejected": {rejection, conditionOf("Valid", "False", "NoService", "There is no Service web.")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "condition", tc.want, conditions.Valid(tc.rejection))
		})
	}
}

// spec: C2
func TestExported(t *testing.T) {
	t.Parallel()
	ready := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return conditionOf("Ready", status, reason, message)
	}
	lost := time.Date(2026, time.March, 1, 12, 0, 0, 999, time.UTC)
	const hint = ". If these addresses are right, the hub's administrator adds their range to this cluster's Member."
	cases := map[string]struct {
		rejection   *export.Rejection
		publication conditions.Publication
		want        metav1.Condition
	}{
		"the hub holds it": {
			publication: conditions.Publication{Hub: conditions.HubSynced, Published: true},
			want:        ready("True", "Exported", "The service is exported to the clusterset."),
		},
		"reserved labels": {
			publication: conditions.Publication{Hub: conditions.HubSynced, Published: true, Reserved: []string{"app.kubernetes.io/name", "app.kubernetes.io/part-of"}},
			want: ready("True", "Exported", "The service is exported to the clusterset. Left out: reserved labels and annotations, on which other "+
				"clusters could act: app.kubernetes.io/name; app.kubernetes.io/part-of. Use keys of a domain of your own."),
		},
		"granted to one": {
			publication: conditions.Publication{Hub: conditions.HubSynced, Published: true, GrantedTo: []clusterset.ClusterID{"east"}},
			want:        ready("True", "Exported", "The service is exported to cluster east."),
		},
		"granted to clusters that are no members": {
			publication: conditions.Publication{
				Hub: conditions.HubSynced, Published: true, GrantedTo: []clusterset.ClusterID{"east", "yy", "zz"}, NoMembers: []clusterset.ClusterID{"yy", "zz"},
			},
			want: ready("True", "Exported", "The service is exported to clusters east, yy, zz. Not a member: yy, zz. See the ServiceExportGrants of the namespace."),
		},
		"granted to none": {
			publication: conditions.Publication{Hub: conditions.HubSynced, Published: true, GrantedTo: []clusterset.ClusterID{}},
			want:        ready("True", "Exported", "The service is exported to no other cluster: no ServiceExportGrant names one."),
		},
		"granted to ten": {
			publication: conditions.Publication{Hub: conditions.HubSynced, Published: true, GrantedTo: []clusterset.ClusterID{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}},
			want:        ready("True", "Exported", "The service is exported to clusters a, b, c, d, e, f, g, h, i, j."),
		},
		"granted to more than can be named": {
			publication: conditions.Publication{
				Hub: conditions.HubSynced, Published: true, GrantSurplus: 5, LeftOut: []string{"10.9.0.1 is outside"},
				GrantedTo: []clusterset.ClusterID{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"},
			},
			want: ready("True", "Exported", "The service is exported to clusters a, b, c, d, e, f, g, h, i, j and 2 more. Left out: 5 more clusters, because "+
				"an export can be granted to at most 256. Grant it to all clusters, and restrict namespaces. Left out: 10.9.0.1 is outside"+hint),
		},
		"rejected": {
			rejection:   rejection,
			publication: conditions.Publication{Hub: conditions.HubSynced, Published: true, Failure: "no"},
			want:        ready("False", "Pending", "Nothing is exported until the export is valid; see condition Valid."),
		},
		"the hub refuses it": {
			publication: conditions.Publication{Hub: conditions.HubSynced, Failure: "the quota is used up"},
			want:        ready("False", "Failed", "The hub refuses the export: the quota is used up"),
		},
		"the Member does not allow it": {
			publication: conditions.Publication{Hub: conditions.HubSynced, Published: true, NotAllowed: "the Member does not allow namespace shop"},
			want:        ready("False", "NotAllowed", "The hub refuses the export: the Member does not allow namespace shop"),
		},
		"the hub refuses it, and holds an older one": {
			publication: conditions.Publication{Hub: conditions.HubUnknown, Published: true, Failure: "no"},
			want:        ready("False", "Failed", "The hub refuses the export: no"),
		},
		"the hub is not reached": {
			publication: conditions.Publication{Hub: conditions.HubUnknown, Published: true},
			want:        ready("Unknown", "Pending", "The hub does not answer at present. The export is published when it does."),
		},
		"the hub has not been reached since the start": {
			publication: conditions.Publication{Hub: conditions.HubUnknown, Unreached: lost},
			want:        ready("Unknown", "Pending", "The hub has not been reached since 2026-03-01 12:00:00Z. The export is published when it is."),
		},
		"made while the hub is down": {
			publication: conditions.Publication{Hub: conditions.HubSynced, Unreached: lost, Unanswered: true},
			want:        ready("False", "Pending", "The hub has not been reached since 2026-03-01 12:00:00Z. The export is published when it is."),
		},
		"the hub does not answer": {
			publication: conditions.Publication{Hub: conditions.HubSynced, Unanswered: true},
			want:        ready("False", "Pending", "The hub does not answer at present. The export is published when it does."),
		},
		"published before the hub is down": {
			publication: conditions.Publication{Hub: conditions.HubSynced, Unreached: lost, Unanswered: true, Published: true},
			want:        ready("True", "Exported", "The service is exported to the clusterset."),
		},
		"on its way": {
			publication: conditions.Publication{Hub: conditions.HubSynced},
			want:        ready("False", "Pending", "The export is on its way to the hub."),
		},
		"one address is left out": {
			publication: conditions.Publication{Hub: conditions.HubSynced, Published: true, LeftOut: []string{"10.9.0.1 is outside"}},
			want:        ready("True", "Exported", "The service is exported to the clusterset. Left out: 10.9.0.1 is outside"+hint),
		},
		"three are, sorted": {
			publication: conditions.Publication{Hub: conditions.HubSynced, Published: true, LeftOut: []string{"c", "a", "b"}},
			want:        ready("True", "Exported", "The service is exported to the clusterset. Left out: a; b; c"+hint),
		},
		"some are no pods, and another is outside": {
			publication: conditions.Publication{Hub: conditions.HubSynced, Published: true, LeftOut: []string{"10.9.0.1 is outside"}, NotPods: []string{"b", "a"}},
			want: ready("True", "Exported", "The service is exported to the clusterset. Left out: 10.9.0.1 is outside"+hint+" Left out: a; b. "+
				"An export leads only to pods of its cluster: to their addresses, or to the ports that pods of its namespace in the host network declare."),
		},
		"some slices are too many": {
			publication: conditions.Publication{Hub: conditions.HubSynced, Published: true, Surplus: "1 of 2 slices"},
			want: ready("True", "Exported", "The service is exported to the clusterset. Left out: 1 of 2 slices. "+
				"Spread the endpoints over several services."),
		},
		"slices have host names": {
			publication: conditions.Publication{Hub: conditions.HubSynced, Published: true, HostNames: []string{"web-4", "web-1", "web-2", "web-3"}},
			want: ready("True", "Exported", "The service is exported to the clusterset. "+
				"Left out: EndpointSlices of host names (address type FQDN): web-1; web-2; web-3; and 1 more. Give IP addresses instead, which can be exported."),
		},
		"more are": {
			publication: conditions.Publication{Hub: conditions.HubSynced, Published: true, LeftOut: []string{"e", "d", "c", "a", "b"}},
			want:        ready("True", "Exported", "The service is exported to the clusterset. Left out: a; b; c; and 2 more"+hint),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before := strings.Join(tc.publication.LeftOut, ",")
			check.Equal(t, "condition", tc.want, conditions.Exported(tc.rejection, tc.publication))
			check.Equal(t, "the input, before and after", before, strings.Join(tc.publication.LeftOut, ","))
		})
	}
}

// conflict returns the condition of a service that five clusters export, with these conflicts.
func conflict(conflicts ...merge.Conflict) metav1.Condition {
	return conditions.Conflict(merge.Merged{
		Oldest:    "cluster-1",
		Clusters:  []clusterset.ClusterID{"cluster-1", "cluster-2", "cluster-3", "cluster-4", "cluster-5"},
		Conflicts: conflicts,
	})
}

// spec: C3, C5
func TestConflict(t *testing.T) {
	t.Parallel()
	two := []clusterset.ClusterID{"cluster-2", "cluster-4"}
	cases := map[string]struct {
		conflicts []merge.Conflict
		want      metav1.Condition
	}{
		"none": {
			want: conditionOf("Conflict", "False", "NoConflicts", "No other cluster exports this service differently."),
		},
		"the KEP's model": {
			conflicts: []merge.Conflict{{Reason: "TypeConflict", Field: "type", Using: "ClusterSetIP", Disagree: two}},
			want: conditionOf("Conflict", "True", "TypeConflict",
				`Conflicting type. Using "ClusterSetIP" from oldest service export in "cluster-1". 2/5 clusters disagree.`),
		},
		"ports are united": {
			conflicts: []merge.Conflict{{Reason: "PortConflict", Field: "ports", Using: "http:80/TCP, 53/UDP", Disagree: two}},
			want: conditionOf("Conflict", "True", "PortConflict",
				`Conflicting ports. Using "http:80/TCP, 53/UDP" from all service exports, that in "cluster-1" first. 2/5 clusters disagree.`),
		},
		"families are united": {
			conflicts: []merge.Conflict{{Reason: "IPFamilyConflict", Field: "IP families", Using: "IPv4, IPv6", Disagree: two[:1]}},
			want: conditionOf("Conflict", "True", "IPFamilyConflict",
				`Conflicting IP families. Using "IPv4, IPv6" from all service exports, that in "cluster-1" first. 1/5 clusters disagree.`),
		},
		"several, in their order": {
			conflicts: []merge.Conflict{
				{Reason: "TypeConflict", Field: "type", Using: "Headless", Disagree: two},
				{Reason: "LabelsConflict", Field: "exported labels", Using: "none", Disagree: two[1:]},
			},
			want: conditionOf("Conflict", "True", "TypeConflict,LabelsConflict",
				`Conflicting type. Using "Headless" from oldest service export in "cluster-1". 2/5 clusters disagree. `+
					`Conflicting exported labels. Using "none" from oldest service export in "cluster-1". 1/5 clusters disagree.`),
		},
		"a value of 256 characters is kept": {
			conflicts: []merge.Conflict{{Reason: "LabelsConflict", Field: "exported labels", Using: strings.Repeat("ü", 256), Disagree: two}},
			want: conditionOf("Conflict", "True", "LabelsConflict",
				`Conflicting exported labels. Using "`+strings.Repeat("ü", 256)+`" from oldest service export in "cluster-1". 2/5 clusters disagree.`),
		},
		"a longer one is shortened": {
			conflicts: []merge.Conflict{{Reason: "LabelsConflict", Field: "exported labels", Using: strings.Repeat("ü", 257), Disagree: two}},
			want: conditionOf("Conflict", "True", "LabelsConflict",
				`Conflicting exported labels. Using "`+strings.Repeat("ü", 255)+`…" from oldest service export in "cluster-1". 2/5 clusters disagree.`),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "condition", tc.want, conflict(tc.conflicts...))
		})
	}
}

// The longest reason and message, with every reason and with values that are longest when quoted, are accepted by the API server:
// the limits and the pattern are those of the CRD.
// spec: C3
func TestAllConflictsFit(t *testing.T) {
	t.Parallel()
	reasons := []string{
		"PortConflict", "TypeConflict", "SessionAffinityConflict", "SessionAffinityConfigConflict", "LabelsConflict",
		"AnnotationsConflict", "InternalTrafficPolicyConflict", "TrafficDistributionConflict", "IPFamilyConflict",
	}
	var conflicts []merge.Conflict
	for _, reason := range reasons {
		conflicts = append(conflicts, merge.Conflict{
			Reason:   mcsv1beta1.ServiceExportConditionReason(reason),
			Field:    "session affinity config",
			Using:    strings.Repeat("\U000e0001", 4096),
			Disagree: []clusterset.ClusterID{"a"},
		})
	}
	got := conflict(conflicts...)
	if want := strings.Join(reasons, ","); got.Reason != want {
		t.Errorf("reason %s, want %s", got.Reason, want)
	}
	if !regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`).MatchString(got.Reason) || len(got.Reason) > 1024 {
		t.Errorf("the API server refuses reason %s", got.Reason)
	}
	if n := strings.Count(got.Message, "1/5 clusters disagree."); n != len(reasons) {
		t.Errorf("the message reports %d conflicts, not %d:\n%s", n, len(reasons), got.Message)
	}
	if n := utf8.RuneCountInString(got.Message); n > 32768 {
		t.Errorf("the API server refuses a message of %d characters", n)
	}
}

// spec: C2
func TestLongMessagesAreCut(t *testing.T) {
	t.Parallel()
	const bound = 32768
	prefix := "The hub refuses the export: "
	exact := strings.Repeat("x", bound-len(prefix))
	cases := map[string]struct{ failure, want string }{
		"one that just fits":                {exact, prefix + exact},
		"one byte too long":                 {exact + "y", prefix + exact},
		"no half character at the end":      {exact[1:] + "ü", prefix + exact[1:]},
		"whole characters of several bytes": {exact[2:] + "ü" + "z", prefix + exact[2:] + "ü"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := conditions.Exported(nil, conditions.Publication{Failure: tc.failure}).Message
			if got != tc.want {
				t.Errorf("%d bytes that end in %q; want %d that end in %q", len(got), got[len(got)-4:], len(tc.want), tc.want[len(tc.want)-4:])
			}
		})
	}
}

// spec: C6
func TestImportConditions(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ got, want metav1.Condition }{
		"ready": {
			conditions.ImportReady(nil, nil),
			conditionOf("Ready", "True", "Ready", "The service is imported."),
		},
		"ready, less what is not known here": {
			conditions.ImportReady([]clusterset.Setting{{Field: "internalTrafficPolicy", Value: "Near"}, {Field: "trafficDistribution", Value: "Far"}}, nil),
			conditionOf("Ready", "True", "Ready",
				`The service is imported. Left out: internalTrafficPolicy "Near" and trafficDistribution "Far", which this cluster's API server `+
					`does not know. Upgrade this cluster and restart the agent, or export the service without it.`),
		},
		"ready, less metadata that is not admitted here": {
			conditions.ImportReady(nil, []string{"a.example.com", "example.com"}),
			conditionOf("Ready", "True", "Ready",
				"The service is imported. Left out: labels and annotations of these domains: a.example.com, example.com. "+
					"To import them, add the domains to --allow-metadata-domains of this cluster's agent."),
		},
		"ready, less settings and more metadata than is named": {
			conditions.ImportReady([]clusterset.Setting{{Field: "trafficDistribution", Value: "Far"}}, []string{"a.example", "b.example", "c.example", "d.example", "e.example"}),
			conditionOf("Ready", "True", "Ready",
				`The service is imported. Left out: trafficDistribution "Far", which this cluster's API server `+
					`does not know. Upgrade this cluster and restart the agent, or export the service without it. `+
					"Left out: labels and annotations of these domains: a.example, b.example, c.example and 2 more. "+
					"To import them, add the domains to --allow-metadata-domains of this cluster's agent."),
		},
		"no common family": {
			conditions.FamilyNotSupported([]corev1.IPFamily{"IPv6"}, []corev1.IPFamily{"IPv4"}),
			conditionOf("Ready", "False", "IPFamilyNotSupported",
				"The service is exported with IP families [IPv6], this cluster's Services have [IPv4]. "+
					"Export it from a cluster with a common family, or make either side dual-stack."),
		},
		"a deletion is not confirmed": {
			conditions.DeletionPending([]clusterset.ClusterID{"north"}),
			conditionOf("DeletionPending", "True", "AwaitingConfirmation",
				"The hub no longer lists what north exported. What this cluster has of it is kept until north's heartbeat confirms that it is "+
					`gone. If north is gone for good, run "kubectl clusterset leave --from hub --cluster-id north".`),
		},
		"deletions of two members are not confirmed": {
			conditions.DeletionPending([]clusterset.ClusterID{"berlin", "paris"}),
			conditionOf("DeletionPending", "True", "AwaitingConfirmation",
				"The hub no longer lists what berlin, paris exported. What this cluster has of it is kept until the heartbeat of each confirms that "+
					`it is gone. If one of them is gone for good, run "kubectl clusterset leave --from hub --cluster-id ID" with its ID.`),
		},
		"something in the way": {
			conditions.ImportPending([]conditions.Refusal{{Parts: []string{"Service shop/derived-1"}, Reason: "it is not ours: rename it"}}),
			conditionOf("Ready", "False", "Pending", "Service shop/derived-1 cannot be written: it is not ours: rename it."),
		},
		"a quota is used up": {
			conditions.ImportPending([]conditions.Refusal{
				{Parts: []string{"hostname web-0 of cluster b", "hostname web-1 of cluster b"}, Reason: "exceeded quota: q, limited: services=5", Next: "raise the quota"},
			}),
			conditionOf("Ready", "False", "Pending",
				"Hostname web-0 of cluster b, hostname web-1 of cluster b cannot be written: exceeded quota: q, limited: services=5; raise the quota."),
		},
	}
	for name, tc := range cases {
		check.Equal(t, name, tc.want, tc.got)
	}
}

// TestOutdatedConditions: which version of an export other clusters use if it is not ready.
//
// spec: C2, E3
func TestOutdatedConditions(t *testing.T) {
	t.Parallel()
	check.Equal(t, "refused", conditionOf("Outdated", "True", "UpdateRefused",
		"Other clusters use the version of the export that the hub stores. See condition Ready for why it refuses the current one."),
		conditions.Outdated(conditions.ReasonUpdateRefused))
	check.Equal(t, "lost", conditionOf("Outdated", "True", "RecordLost",
		"The hub no longer stores the export. Other clusters keep what they have imported of it until it is published again or deleted."),
		conditions.Outdated(conditions.ReasonRecordLost))
	for name, test := range map[string]struct {
		said []metav1.Condition
		want bool
	}{
		"nothing":  {},
		"ready":    {[]metav1.Condition{conditionOf("Ready", "True", "Exported", "")}, true},
		"pending":  {[]metav1.Condition{conditionOf("Ready", "False", "Pending", "")}, false},
		"refused":  {[]metav1.Condition{conditionOf("Ready", "False", "Failed", "")}, false},
		"outdated": {[]metav1.Condition{conditionOf("Ready", "False", "Failed", ""), conditionOf("Outdated", "True", "UpdateRefused", "")}, true},
	} {
		check.Equal(t, name, test.want, conditions.WasStored(test.said))
	}
}

// spec: C1, C2, C3, C6
func TestSet(t *testing.T) {
	t.Parallel()
	then, now := metav1.NewTime(time.Unix(1000, 0)), metav1.NewTime(time.Unix(2000, 0))
	condition := func(kind string, status metav1.ConditionStatus, message string, generation int64, since metav1.Time) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Message: message, ObservedGeneration: generation, LastTransitionTime: since}
	}
	newCondition := func(kind string, status metav1.ConditionStatus, message string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Message: message}
	}
	cases := map[string]struct {
		existing, desired, want []metav1.Condition
	}{
		"the first ones": {
			desired: []metav1.Condition{newCondition("Valid", "True", "a"), newCondition("Ready", "False", "b")},
			want:    []metav1.Condition{condition("Valid", "True", "a", 7, now), condition("Ready", "False", "b", 7, now)},
		},
		"the same again": {
			existing: []metav1.Condition{condition("Valid", "True", "a", 7, then)},
			desired:  []metav1.Condition{newCondition("Valid", "True", "a")},
			want:     []metav1.Condition{condition("Valid", "True", "a", 7, then)},
		},
		"another message and generation": {
			existing: []metav1.Condition{condition("Valid", "True", "a", 6, then)},
			desired:  []metav1.Condition{newCondition("Valid", "True", "b")},
			want:     []metav1.Condition{condition("Valid", "True", "b", 7, then)},
		},
		"another status": {
			existing: []metav1.Condition{condition("Valid", "True", "a", 7, then)},
			desired:  []metav1.Condition{newCondition("Valid", "False", "a")},
			want:     []metav1.Condition{condition("Valid", "False", "a", 7, now)},
		},
		"others stay where they are": {
			existing: []metav1.Condition{
				condition("example.com/Theirs", "True", "x", 1, then), condition("Valid", "True", "a", 6, then), condition("example.com/AlsoTheirs", "Unknown", "y", 2, then),
			},
			desired: []metav1.Condition{newCondition("Ready", "True", "r"), newCondition("Valid", "True", "a")},
			want: []metav1.Condition{
				condition("example.com/Theirs", "True", "x", 1, then), condition("Valid", "True", "a", 7, then), condition("example.com/AlsoTheirs", "Unknown", "y", 2, then),
				condition("Ready", "True", "r", 7, now),
			},
		},
		"those of another version of the agent are removed": {
			existing: []metav1.Condition{condition("OfTomorrow", "False", "x", 1, then), condition("Valid", "True", "a", 7, then), condition("Outdated", "True", "y", 7, then)},
			desired:  []metav1.Condition{newCondition("Valid", "True", "a"), newCondition("New", "True", "n")},
			want:     []metav1.Condition{condition("Valid", "True", "a", 7, then), condition("Outdated", "True", "y", 7, then), condition("New", "True", "n", 7, now)},
		},
		"nothing to say": {
			existing: []metav1.Condition{condition("Valid", "True", "a", 6, then)},
			want:     []metav1.Condition{condition("Valid", "True", "a", 6, then)},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			existing := append(make([]metav1.Condition, 0, 9), tc.existing...) // room to append, which must not be used
			desired := append([]metav1.Condition(nil), tc.desired...)
			check.Equal(t, "conditions", tc.want, conditions.Set(existing, desired, 7, now))
			room := make([]metav1.Condition, 9-len(tc.existing))
			before := append(append([]metav1.Condition(nil), tc.existing...), room...)
			check.Equal(t, "the input is changed", before, existing[:9])
			check.Equal(t, "the input is changed", append([]metav1.Condition(nil), tc.desired...), desired)
		})
	}
}

// spec: C2
func TestIsRefused(t *testing.T) {
	t.Parallel()
	for ready, want := range map[metav1.Condition]bool{
		{Status: "False", Reason: "Failed"}:     true,
		{Status: "False", Reason: "NotAllowed"}: true,
		{Status: "False", Reason: "Pending"}:    false,
		{Status: "True", Reason: "Failed"}:      false,
		{Status: "Unknown", Reason: "Failed"}:   false,
	} {
		if got := conditions.IsRefused(ready); got != want {
			t.Errorf("%s because of %s is refused: %t", ready.Status, ready.Reason, got)
		}
	}
}

// spec: W3
func TestSourceUnusable(t *testing.T) {
	t.Parallel()
	var obstacles []error
	for i, want := range []string{
		"", "No way to 1.", "No way to 1. No way to 2.", "No way to 1. No way to 2. No way to 3.",
		"No way to 1. No way to 2. No way to 3. No way to 4.", "No way to 1. No way to 2. No way to 3. No way to 4. No way to 5.",
		"No way to 1. No way to 2. No way to 3. No way to 4. No way to 5. The same applies to 1 more.",
		"No way to 1. No way to 2. No way to 3. No way to 4. No way to 5. The same applies to 2 more.",
	} {
		check.Equal(t, "condition", conditionOf(conditions.TypeSourceUnusable, "True", conditions.ReasonNetwork, want), conditions.SourceUnusable(obstacles))
		obstacles = append(obstacles, fmt.Errorf("no way to %d", i+1))
	}
}

// Lists that are exactly as long as a message allows are complete.
//
// spec: C2
func TestFullLists(t *testing.T) {
	t.Parallel()
	var ten []clusterset.ClusterID
	for i := range 10 {
		ten = append(ten, clusterset.ClusterID(fmt.Sprintf("c%d", i)))
	}
	const all = "c0, c1, c2, c3, c4, c5, c6, c7, c8, c9"
	for name, of := range map[string]func([]clusterset.ClusterID) metav1.Condition{
		"left out": func(ids []clusterset.ClusterID) metav1.Condition {
			return conditions.Alias(conditions.Aliased{ByGateway: ids})
		},
		"awaited confirmation": conditions.DeletionPending,
	} {
		full, more := of(ten).Message, of(append(ten, "d")).Message
		if !strings.Contains(full, all+" ") || strings.Contains(full, "more") || !strings.Contains(more, "1 more") {
			t.Errorf("%s: %q, and with another one %q", name, full, more)
		}
	}
	full := conditions.MetadataLeftOut([]string{"a.example", "b.example", "c.example"})
	if !strings.Contains(full, ": a.example, b.example, c.example. ") {
		t.Errorf("domains: %q", full)
	}
}
