// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/admission"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/ranges"
	"github.com/tombolo-mcs/tombolo/internal/check"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestTooManyNodeRanges: the hub's schema limits the number.
func TestTooManyNodeRanges(t *testing.T) {
	var out bytes.Buffer
	j := &command{member: clusterOf(t), r: &output.Report{Out: &out}}
	for i := range 65 {
		j.Given.Nodes = append(j.Given.Nodes, netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}), 32))
	}
	if err := j.checkRanges(t.Context()); err != nil || !strings.Contains(out.String(), "65 node addresses are more than the 64") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestIdentity: existing ClusterProperties are used, and not changed.
//
// spec: K1, K2
func TestIdentity(t *testing.T) {
	property := func(name, value string) *aboutv1beta1.ClusterProperty {
		return &aboutv1beta1.ClusterProperty{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: aboutv1beta1.ClusterPropertySpec{Value: value}}
	}
	own := []client.Object{property(aboutv1beta1.ClusterIDProperty, "orient"), property(aboutv1beta1.ClusterSetProperty, "others")}
	for name, test := range map[string]struct {
		id, clusterSet string
		objects        []client.Object
		says           []string
		created        int
	}{
		"new":                 {"east", "", nil, []string{`ok    cluster ID "east"`}, 2},
		"no label":            {"Not_A_Label", "", nil, []string{"is no DNS label", "choose another"}, 0},
		"empty":               {"", "", nil, []string{"the cluster ID is empty", "pass --cluster-id"}, 0},
		"too long":            {strings.Repeat("x", 57), "", nil, []string{"57 characters", "shorter"}, 0},
		"another than it has": {"east", "", own, []string{`this cluster calls itself "orient"`, "leave out --cluster-id"}, 0},
		"as it has":           {"", "", own, []string{`ok    cluster ID "orient"`}, 0},
		"another clusterset":  {"", "mine", own, []string{`a member of clusterset "others"`, "leave that first"}, 0},
	} {
		var out bytes.Buffer
		j := &command{member: clusterOf(t, test.objects...), r: &output.Report{Out: &out}}
		j.ClusterID, j.ClusterSet = test.id, test.clusterSet
		if err := j.checkIdentity(t.Context()); err != nil || len(j.clusterProperties) != test.created {
			t.Errorf("%s: %d ClusterProperties are created, want %d (%v)", name, len(j.clusterProperties), test.created, err)
		}
		for _, text := range test.says {
			if !strings.Contains(out.String(), text) {
				t.Errorf("%s: %sdoes not contain %q", name, out.String(), text)
			}
		}
	}
}

// clusterOf returns a cluster with these objects.
func clusterOf(t *testing.T, objects ...client.Object) *connection.Cluster {
	t.Helper()
	scheme, err := connection.NewScheme()
	check.Must(t, err)
	return &connection.Cluster{What: "this cluster", Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()}
}

func prefixes(t *testing.T, text string) []netip.Prefix {
	t.Helper()
	result, err := clusterset.ParsePrefixes(strings.Fields(text))
	check.Must(t, err)
	return result
}

// TestCheckRange: only a flag extends a member's ranges; other ranges of the cluster are reported.
func TestCheckRange(t *testing.T) {
	member := &hubv1alpha1.Member{Spec: hubv1alpha1.MemberSpec{PodCIDRs: []hubv1alpha1.CIDR{"10.1.0.0/16"}, NodeCIDRs: []hubv1alpha1.CIDR{"192.0.2.1/32"}}}
	byHand := &hubv1alpha1.Member{Spec: hubv1alpha1.MemberSpec{PodCIDRs: []hubv1alpha1.CIDR{"10.1.0.0/16"}}}
	const pods, nodes, services = 0, 1, 2
	for name, test := range map[string]struct {
		admitted           *hubv1alpha1.Member
		kind               int
		given, found, want string
		says               []string
	}{
		"new member":                      {nil, nodes, "", "192.0.2.1/32", "192.0.2.1/32", []string{"ok    node CIDRs 192.0.2.1/32 (there)"}},
		"new member, nothing found":       {nil, pods, "", "", "", []string{"FAIL  the pod CIDRs cannot be found in this cluster: pass --pod-cidrs"}},
		"new member without nodes":        {nil, nodes, "", "", "", []string{"note  no node has an address yet, so pods on the nodes' network cannot be exported: when it has one, pass --node-cidrs"}},
		"given":                           {member, pods, "10.3.0.0/16", "10.2.0.0/16", "10.3.0.0/16", []string{"ok    pod CIDRs 10.3.0.0/16 (--pod-cidrs)"}},
		"known, and found within":         {member, pods, "", "10.1.7.0/24 10.1.8.0/24", "10.1.0.0/16", []string{"ok    pod CIDRs 10.1.0.0/16 (as on the hub already)"}},
		"known, and nothing found":        {member, pods, "", "", "10.1.0.0/16", []string{"ok    pod CIDRs 10.1.0.0/16 (as on the hub already)"}},
		"known, and more found":           {member, pods, "", "10.0.0.0/15", "10.1.0.0/16", []string{"ok    pod CIDRs 10.1.0.0/16 (as", "note  pod CIDRs 10.0.0.0/15 of this cluster are not on the hub, and are not added unasked: pass --pod-cidrs 10.0.0.0/15 to admit them"}},
		"a node has come, another gone":   {member, nodes, "", "192.0.2.2/32", "192.0.2.1/32", []string{"ok    node CIDRs 192.0.2.1/32 (as", "note  node CIDRs 192.0.2.2/32 of this cluster are not on the hub, and are not added unasked: pass --node-cidrs 192.0.2.1/32,192.0.2.2/32 to admit them"}},
		"no node has been admitted":       {byHand, nodes, "", "192.0.2.2/32", "", []string{"note  node CIDRs 192.0.2.2/32 of this cluster are not on the hub, and are not added unasked: pass --node-cidrs 192.0.2.2/32 to admit them"}},
		"no node admitted, none found":    {byHand, nodes, "", "", "", []string{"note  no node has an address yet"}},
		"Services' ranges, on no hub":     {byHand, services, "", "10.96.0.0/16", "10.96.0.0/16", []string{"ok    service CIDRs 10.96.0.0/16 (there)"}},
		"Services' ranges cannot be read": {byHand, services, "", "", "", []string{"FAIL  the service CIDRs cannot be found"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			j := &command{Candidate: admission.Candidate{Admitted: test.admitted}, r: &output.Report{Out: &out}}
			kind := j.rangeKinds()[test.kind]
			kind.given = prefixes(t, test.given)
			kind.find = func(context.Context, *connection.Cluster) (ranges.Finding, error) {
				return ranges.Finding{Prefixes: prefixes(t, test.found), Where: "there"}, nil
			}
			check.Must(t, j.checkRange(t.Context(), kind))
			check.Equal(t, "ranges", prefixes(t, test.want), *kind.target, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Prefix{}))
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			for i, line := range lines {
				if len(lines) != len(test.says) || !strings.HasPrefix(strings.TrimSpace(line), test.says[i]) {
					t.Fatalf("it says\n%swant %q", out.String(), test.says)
				}
			}
		})
	}
}

// TestCheckRangeFails: a cluster that cannot be read does not count as one without ranges.
func TestCheckRangeFails(t *testing.T) {
	failure := errors.New("no answer")
	j := &command{r: &output.Report{Out: &bytes.Buffer{}}}
	kind := j.rangeKinds()[0]
	kind.find = func(context.Context, *connection.Cluster) (ranges.Finding, error) { return ranges.Finding{}, failure }
	if err := j.checkRange(t.Context(), kind); !errors.Is(err, failure) {
		t.Errorf("the error is %v", err)
	}
}
