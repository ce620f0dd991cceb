// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// TestAgentNotReady: it is a problem if no pod of an agent is ready for longer than a start takes, for example while rules are missing that were
// deleted with their kind.
func TestAgentNotReady(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		status corev1.ConditionStatus
		since  time.Duration
		ready  int32
		want   []Reason
	}{
		"no condition":           {},
		"available":              {corev1.ConditionTrue, time.Hour, 1, nil},
		"not known":              {corev1.ConditionUnknown, time.Hour, 0, nil},
		"it starts":              {corev1.ConditionFalse, readyTimeout - time.Second, 0, nil},
		"one of two is ready":    {corev1.ConditionFalse, time.Hour, 1, nil},
		"none has been for long": {corev1.ConditionFalse, readyTimeout, 0, []Reason{ReasonAgentNotReady}},
	} {
		agent := &appsv1.Deployment{Status: appsv1.DeploymentStatus{ReadyReplicas: test.ready}}
		if test.status != "" {
			since := metav1.NewTime(now.Add(-test.since))
			agent.Status.Conditions = []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse},
				{Type: appsv1.DeploymentAvailable, Status: test.status, LastTransitionTime: since},
			}
		}
		a := &assessment{hub: &Hub{}}
		a.problemsOfObjects(MemberObjects{ID: "east", Context: "admin@east", IsAgentNotReady: hasNoReadyPod(agent, now)})
		var got []Reason
		for _, p := range a.problems {
			got = append(got, p.Reason)
		}
		check.Equal(t, "problems if "+name, test.want, got)
	}
}
