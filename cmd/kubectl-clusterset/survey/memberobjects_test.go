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

// TestAgentNotReady: an agent is not ready if no pod of it is ready for longer than a start takes, for example while rules are missing that were
// deleted with their kind.
func TestAgentNotReady(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		status corev1.ConditionStatus
		since  time.Duration
		ready  int32
		want   bool
	}{
		"no condition":           {},
		"available":              {corev1.ConditionTrue, time.Hour, 1, false},
		"not known":              {corev1.ConditionUnknown, time.Hour, 0, false},
		"it starts":              {corev1.ConditionFalse, readyTimeout - time.Second, 0, false},
		"one of two is ready":    {corev1.ConditionFalse, time.Hour, 1, false},
		"none has been for long": {corev1.ConditionFalse, readyTimeout, 0, true},
	} {
		agent := &appsv1.Deployment{Status: appsv1.DeploymentStatus{ReadyReplicas: test.ready}}
		if test.status != "" {
			since := metav1.NewTime(now.Add(-test.since))
			agent.Status.Conditions = []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionFalse},
				{Type: appsv1.DeploymentAvailable, Status: test.status, LastTransitionTime: since},
			}
		}
		check.Equal(t, "no pod is ready: "+name, test.want, hasNoReadyPod(agent, now))
	}
}
