// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	exports "github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// problemsOfExport adds the problems in the conditions of a ServiceExport.
func (a *assessment) problemsOfExport(s survey.MemberObjects, export *mcsv1beta1.ServiceExport) {
	problem := Problem{Member: s.ID, Service: export.Namespace + "/" + export.Name}
	if c := meta.FindStatusCondition(export.Status.Conditions, conditions.TypeProxyProtocol); c != nil && c.Status == metav1.ConditionFalse {
		a.add(Problem{
			Member: s.ID, Service: problem.Service, Severity: SeverityWarning, Reason: ReasonProxyProtocol, Message: c.Message,
			Next: fmt.Sprintf("Do what the message says; see the export: kubectl --context %s -n %s describe serviceexport %s", s.Context, export.Namespace, export.Name),
		})
	}
	valid := meta.FindStatusCondition(export.Status.Conditions, string(mcsv1beta1.ServiceExportConditionValid))
	ready := meta.FindStatusCondition(export.Status.Conditions, string(mcsv1beta1.ServiceExportConditionReady))
	switch {
	case valid != nil && valid.Status == metav1.ConditionFalse:
		problem.Severity, problem.Reason, problem.Message = SeverityError, ReasonExportInvalid, valid.Message
		problem.Next = fmt.Sprintf("Or take the export back: kubectl clusterset unexport --context %s -n %s %s", s.Context, export.Namespace, export.Name)
	case len(export.Status.Conditions) == 0: // new, or its agent is silent
		return
	case unexplainedExport(export) != "":
		problem = notKnown(problem, s.Context, "serviceexport", unexplainedExport(export))
	case conditions.IsRefused(*ready):
		problem.Severity, problem.Reason, problem.Message = SeverityError, ReasonExportFailed, ready.Message
		if outdated := meta.FindStatusCondition(export.Status.Conditions, conditions.TypeOutdated); outdated != nil {
			problem.Message += ". " + outdated.Message
		}
		problem.Next = fmt.Sprintf("See it in full: kubectl --context %s -n %s describe serviceexport %s", s.Context, export.Namespace, export.Name)
	case !a.hub.IsRead(): // it is not known to which clusters it is granted, which the message says
		return
	case ready.Status == metav1.ConditionTrue && ready.Message != a.completeExport(s.ID, export):
		problem.Severity, problem.Reason, problem.Message = SeverityWarning, ReasonEndpointsLeftOut, ready.Message
		problem.Next = fmt.Sprintf("Do what the message says; see the export: kubectl --context %s -n %s describe serviceexport %s", s.Context, export.Namespace, export.Name)
	default:
		return
	}
	a.add(problem)
}

// notKnown returns the problem of an object that says something that this program does not know.
func notKnown(p Problem, context, kind, seen string) Problem {
	namespace, name, _ := strings.Cut(p.Service, "/")
	p.Severity, p.Reason = SeverityWarning, ReasonNotKnown
	p.Message = fmt.Sprintf("It is not known whether the %s works; seen: %s", kind, seen)
	p.Next = fmt.Sprintf("See it in full: kubectl --context %s -n %s describe %s %s", context, namespace, kind, name)
	return p
}

// completeExport returns the message of an export of which nothing is left out, and that is granted to the clusters that the hub stores.
func (a *assessment) completeExport(id clusterset.ClusterID, export *mcsv1beta1.ServiceExport) string {
	publication := conditions.Publication{Hub: conditions.HubSynced, Published: true, Reserved: exports.Reserved(export)}
	for _, published := range a.hub.Records.Service(clusterset.ServiceKey{Namespace: export.Namespace, Name: export.Name}).Exports {
		if published.Cluster == id {
			publication.GrantedTo = published.GrantedTo
			publication.NoMembers = access.NoMembers(published.GrantedTo, a.hub.Records.Properties())
		}
	}
	return conditions.Exported(nil, publication).Message
}

// problemsOfImport adds the problems in the conditions of a managed ServiceImport.
func (a *assessment) problemsOfImport(s survey.MemberObjects, object *mcsv1beta1.ServiceImport) {
	problem := Problem{Member: s.ID, Service: object.Namespace + "/" + object.Name}
	if unusable := meta.FindStatusCondition(object.Status.Conditions, conditions.TypeSourceUnusable); unusable != nil && unusable.Status == metav1.ConditionTrue {
		problem.Severity, problem.Reason, problem.Message = SeverityWarning, ReasonSourceUnusable, unusable.Message
		problem.Next = "See how its sources are reached: kubectl clusterset trace " + problem.Service + " --from " + string(s.ID)
		a.add(problem)
	}
	if preferred := meta.FindStatusCondition(object.Status.Conditions, conditions.TypePreferred); preferred != nil && preferred.Status == metav1.ConditionFalse {
		problem.Severity, problem.Reason, problem.Message = SeverityWarning, Reason(preferred.Reason), preferred.Message
		if preferred.Reason == conditions.ReasonNoSource { // nothing serves the import in this cluster
			problem.Severity = SeverityError
		}
		problem.Next = "See which of its exporters have ready endpoints: kubectl clusterset explain " + problem.Service
		a.add(problem)
	}
	ready := meta.FindStatusCondition(object.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady))
	switch {
	case len(object.Status.Conditions) == 0: // new, or its agent is silent
		return
	case UnexplainedImport(object) != "":
		problem = notKnown(problem, s.Context, "serviceimport", UnexplainedImport(object))
	case ready == nil:
		return
	case ready.Status == metav1.ConditionFalse:
		problem.Severity, problem.Reason, problem.Message = SeverityError, ReasonImportNotReady, ready.Message
		problem.Next = fmt.Sprintf("See what is refused and what to do: kubectl clusterset trace %s --context %s --from %s", problem.Service, s.Context, s.ID)
	case ready.Status == metav1.ConditionTrue && ready.Message != conditions.ImportReady(nil, nil).Message:
		problem.Severity, problem.Reason, problem.Message = SeverityWarning, ReasonSettingsLeftOut, ready.Message
		problem.Next = "See who asks for it: kubectl clusterset explain " + problem.Service
	default:
		return
	}
	a.add(problem)
}

// problemOfUnmanagedImport adds a problem if an unmanaged ServiceImport has the name of an exported service. An agent restores
// the label of a managed one that has lost it.
func (a *assessment) problemOfUnmanagedImport(s survey.MemberObjects, object *mcsv1beta1.ServiceImport) {
	key := clusterset.ServiceKey{Namespace: object.Namespace, Name: object.Name}
	if clusterset.HasLostLabel(object) || !s.Namespaces.Allows(key.Namespace) || len(a.hub.Records.Service(key).Exports) == 0 {
		return
	}
	a.add(Problem{
		Severity: SeverityError, Reason: ReasonImportObstructed, Member: s.ID, Service: key.String(),
		Message: "The service is not imported, because a ServiceImport of this name is there that is not managed by Tombolo.",
		Next:    fmt.Sprintf("If no program needs that one: kubectl --context %s -n %s delete serviceimport %s", s.Context, key.Namespace, key.Name),
	})
}

// problemOfAlias adds the problem in the condition of an alias.
func (a *assessment) problemOfAlias(s survey.MemberObjects, service *corev1.Service) {
	condition := meta.FindStatusCondition(service.Status.Conditions, conditions.TypeAlias)
	if condition == nil || condition.Reason == conditions.ReasonAliased { // without one, it is new, or its agent is silent
		return
	}
	problem := Problem{Severity: SeverityWarning, Reason: ReasonAliasIncomplete, Member: s.ID, Service: service.Namespace + "/" + service.Name, Message: condition.Message}
	if condition.Status != metav1.ConditionTrue {
		problem.Severity, problem.Reason = SeverityError, ReasonAliasNotReady
	}
	problem.Next = "See what it has, and follow its import: kubectl clusterset trace " + problem.Service
	a.add(problem)
}

// problemOfAgent reports that the agent of a member is not ready. Only its log says why.
func (a *assessment) problemOfAgent(s survey.MemberObjects) {
	if s.IsAgentNotReady {
		a.add(Problem{
			Severity: SeverityWarning, Reason: ReasonAgentNotReady, Member: s.ID,
			Message: "No pod of its agent is ready: it does not run, or cannot do all of its work. For example, rules are missing that were deleted with their CustomResourceDefinition.",
			Next: fmt.Sprintf("See why: kubectl --context %s --namespace %s logs deployment/%s, and the runbook about what it says",
				s.Context, manifests.AgentNamespace, manifests.AgentDeployment),
		})
	}
}
