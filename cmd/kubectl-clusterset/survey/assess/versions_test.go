// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess_test

import (
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/surveytest"
	"github.com/tombolo-mcs/tombolo/internal/check"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// reasonsOf returns the members of the problems with a reason.
func reasonsOf(status assess.Status, reason assess.Reason) (members []clusterset.ClusterID) {
	for _, p := range status.Problems {
		if p.Reason == reason {
			members = append(members, p.Member)
		}
	}
	return members
}

// TestMemberNewer: a member that is newer than the hub is a problem; one of which that is not known is none.
func TestMemberNewer(t *testing.T) {
	t.Parallel()
	for of, want := range map[[2]string][]clusterset.ClusterID{
		{"v1.2.0", "v1.2.0"}: nil,
		{"v1.2.0", "v1.1.9"}: nil,
		{"v1.2.0", "v1.2.1"}: {"east"},
		{"v1.2.0", "v2.0.0"}: {"east"},
		{"v1.2.0", "dev"}:    nil,
		{"", "v1.2.0"}:       nil,
		{"dev", "v1.2.0"}:    nil,
		{"dev", "dev"}:       nil,
	} {
		r := &surveytest.Records{}
		r.Member("east")
		r.Beat("east", of[1], hubv1alpha1.PublicationComplete, time.Second)
		h := r.Hub(t)
		h.Version = of[0]
		status := assess.Assess(h, nil, nil)
		check.Equal(t, "problems with hub "+of[0]+" and agent "+of[1], want, reasonsOf(status, assess.ReasonMemberNewer))
		check.Equal(t, "version of the hub", of[0], status.HubVersion)
	}
}

// TestRulesMissing: a cluster without a kind of rules has lost its rules.
func TestRulesMissing(t *testing.T) {
	t.Parallel()
	r, members, _ := troubled()
	check.Equal(t, "problems", []clusterset.ClusterID(nil), reasonsOf(assess.Assess(r.Hub(t), members, nil), assess.ReasonRulesMissing))
	members[0].MissingRules = []string{"ServiceExportGrant"}
	check.Equal(t, "problems", []clusterset.ClusterID{members[0].ID}, reasonsOf(assess.Assess(r.Hub(t), members, nil), assess.ReasonRulesMissing))
}
