// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/manifests"
)

// readyTimeout is how long a Deployment without a ready pod is no problem: longer than a start takes.
const readyTimeout = 2 * time.Minute

// hasNoReadyPod reports whether a Deployment has had too few ready pods for readyTimeout, and has none now.
func hasNoReadyPod(deployment *appsv1.Deployment, now time.Time) bool {
	return deployment.Status.ReadyReplicas == 0 && slices.ContainsFunc(deployment.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionFalse && now.Sub(c.LastTransitionTime.Time) >= readyTimeout
	})
}

// problemOfAgent reports that the agent of a member is not ready. Only its log says why.
func (a *assessment) problemOfAgent(s MemberObjects) {
	if s.IsAgentNotReady {
		a.add(Problem{
			Severity: SeverityWarning, Reason: ReasonAgentNotReady, Member: s.ID,
			Message: "No pod of its agent is ready: it does not run, or cannot do all of its work. For example, rules are missing that were deleted with their CustomResourceDefinition.",
			Next: fmt.Sprintf("See why: kubectl --context %s --namespace %s logs deployment/%s, and the runbook about what it says",
				s.Context, manifests.AgentNamespace, manifests.AgentDeployment),
		})
	}
}
