// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"testing"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/dryrun"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/explain"
	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/check"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// A trace names the rules of clusters with gateways only, and none for a service that no cluster exports.
//
// spec: A2, G12
func TestTraceSpeaksOfGatewaysThatExist(t *testing.T) {
	t.Parallel()
	deny := []explain.Rule{{Rule: access.NamespaceUnknown, Action: string(policyv1alpha1.ActionDeny), Clients: "all"}}
	explained := []explain.ClusterRules{
		{Cluster: "a", Rules: deny}, {Cluster: "b", Rules: deny}, {Cluster: "c", Rules: []explain.Rule{{Rule: access.NoRule, Action: string(policyv1alpha1.ActionAccept)}}},
	}
	var got []clusterset.ClusterID
	for _, step := range denyingSteps(explained, func(id clusterset.ClusterID) bool { return id != "a" }) {
		got = append(got, step.Cluster)
	}
	check.Equal(t, "clusters whose gateways are named", []clusterset.ClusterID{"b"}, got)
	v := newMemberTrace()
	unexported := &tracer{Options: Options{Clusterset: &survey.Clusterset{}, Key: v.Sources.Key}, hub: v.view.Hub, views: []*dryrun.View{v.view}}
	check.Equal(t, "steps of a service that no cluster exports", 0, len(unexported.traceAccess(t.Context())))
}

// A service that is exported to clusters that are no members is a note, and broken if it is exported to no other cluster.
//
// spec: A1
func TestTraceOfGrantsToNoMember(t *testing.T) {
	t.Parallel()
	type ids = []clusterset.ClusterID
	for name, test := range map[string]struct {
		granted, missing ids
		want             Health // empty if there is no step
	}{
		"all":                 {nil, nil, ""},
		"none":                {ids{}, nil, ""},
		"members":             {ids{"b"}, nil, ""},
		"some are no members": {ids{"b", "zz"}, ids{"zz"}, Note},
		"all are no members":  {ids{"yy", "zz"}, ids{"yy", "zz"}, Broken},
	} {
		v := newMemberTrace()
		v.Sources.Local, v.Sources.NoMembers = &clusterset.Export{GrantedTo: test.granted}, test.missing
		got := Health("")
		for _, step := range v.grantedSteps() {
			got = step.State
			if step.Fix == "" {
				t.Errorf("%s: %+v", name, step)
			}
		}
		check.Equal(t, name, test.want, got)
	}
}
