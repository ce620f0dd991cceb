// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/memberdns"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/phrase"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// problemsOfMember adds the problems of a member that the hub's records show.
func (a *assessment) problemsOfMember(m MemberStatus) {
	switch m.State {
	case survey.StateSilent:
		a.add(Problem{
			Severity: SeverityError, Reason: ReasonMemberSilent, Member: m.ID,
			Message: fmt.Sprintf("The hub has received no heartbeat of %s for %s. Other members use its endpoints only if no other exporter serves.", m.ID, m.Silence()),
			Next:    a.nextStepForAgent(m),
		})
	case survey.StateNeverConnected:
		a.add(Problem{
			Severity: SeverityError, Reason: ReasonMemberNeverConnected, Member: m.ID,
			Message: fmt.Sprintf("%s has been admitted, but has never sent a heartbeat.", m.ID),
			Next:    a.nextStepForAgent(m),
		})
	case survey.StateUnknown: // the hub is the problem
	case survey.StateConnected:
		a.problemOfCopy(m)
		if m.Publication == string(hubv1alpha1.PublicationComplete) {
			return
		}
		a.add(Problem{
			Severity: SeverityWarning, Reason: ReasonPublicationPartial, Member: m.ID,
			Message: fmt.Sprintf("%s has not published all that it exports. Until it has, no member treats a service of it as withdrawn.", m.ID),
			Next: fmt.Sprintf("Wait a minute; if it stays so, see what its agent says: kubectl%s -n tombolo-system logs deployment/tombolo-agent",
				phrase.ContextFlag(m.Context)),
		})
	}
}

// problemOfCopy adds a problem if another cluster has the identity of a member. A copy shows itself on the hub when its agent starts.
func (a *assessment) problemOfCopy(m MemberStatus) {
	beat := a.hub.Records.Heartbeat(m.ID)
	if beat == nil || beat.Spec.ContestedAt == nil {
		return
	}
	silence, _ := a.hub.Silence(m.ID)
	if age := silence + beat.Spec.RenewTime.Sub(beat.Spec.ContestedAt.Time); age >= copyReported {
		return
	}
	a.add(Problem{
		Severity: SeverityWarning, Reason: ReasonMemberCopied, Member: m.ID,
		Message: fmt.Sprintf("In the last hour, the agent of another cluster with the identity of %s (kube-system UID %s) has started: one of the two clusters is a copy of the other. "+
			"The cluster with the longer-running agent is the member, and the other one publishes nothing.", m.ID, phrase.Shortened(beat.Spec.ClusterUID)),
		Next: "Find the cluster that was restored from a snapshot of the other one, and run in it: kubectl clusterset leave --from member",
	})
}

// copyReported is how long a copy is reported after its agent has started.
const copyReported = time.Hour

// nextStepForAgent returns what to do about an agent that sends no heartbeats.
func (a *assessment) nextStepForAgent(m MemberStatus) string {
	objects, reached := a.objects[m.ID]
	switch {
	case !reached:
		return fmt.Sprintf("Look whether cluster %s and its agent run: none of the contexts that were read leads there. If it no longer exists: kubectl clusterset leave --from hub --cluster-id %s --hub-context %s",
			m.ID, m.ID, a.hub.KubeContext.Name)
	case objects.Agent == survey.Missing && m.State == survey.StateNeverConnected:
		return fmt.Sprintf("It has no agent. Install it: kubectl clusterset join --context %s --cluster-id %s --hub-context %s", objects.Context, m.ID, a.hub.KubeContext.Name)
	case objects.Agent == survey.Missing:
		return fmt.Sprintf("It has no agent of its own. If it is to run beside the hub, look there: kubectl -n %s get pods. Otherwise: kubectl clusterset join --context %s --cluster-id %s --hub-context %s",
			m.ID.HubNamespace(), objects.Context, m.ID, a.hub.KubeContext.Name)
	}
	return fmt.Sprintf("See what its agent says: kubectl --context %s -n tombolo-system logs deployment/tombolo-agent", objects.Context)
}

// problemsOfService adds the problems that the records of a service show.
func (a *assessment) problemsOfService(key clusterset.ServiceKey, known sources.Hub, s ServiceStatus) {
	explain := "kubectl clusterset explain " + key.String()
	for _, err := range known.Refused {
		a.add(Problem{
			Severity: SeverityError, Reason: ReasonRecordRefused, Service: key.String(), Message: err.Error(),
			Next: "See what is left of the service: " + explain + ". Only an agent of its member, or a client with its token, writes such records; addresses outside of its ranges need them in its Member.",
		})
	}
	if len(s.Conflicts) > 0 {
		a.add(Problem{
			Severity: SeverityWarning, Reason: ReasonConflict, Service: key.String(),
			Message: fmt.Sprintf("The exporters disagree on %s. The oldest export, that of %s, counts.", conflictsOf(s), s.Oldest),
			Next:    "See who says what: " + explain,
		})
	}
	ready := 0
	for _, e := range s.Exporters {
		ready += e.ReadyEndpoints
	}
	if ready == 0 && len(s.Exporters) > 0 && a.hub.IsRead() {
		a.add(Problem{
			Severity: SeverityWarning, Reason: ReasonNoReadyEndpoints, Service: key.String(),
			Message: fmt.Sprintf("None of the clusters that export it (%s) has a ready endpoint.", phrase.IDs(exporterIDs(s))),
			Next:    fmt.Sprintf("Check its pods there: kubectl -n %s get endpointslices -l kubernetes.io/service-name=%s", key.Namespace, key.Name),
		})
	}
}

// conflictsOf describes the conflicts of a service. It limits their number and length; Status.Services has all of them.
func conflictsOf(s ServiceStatus) string {
	const most = 5
	var words []string
	for i, c := range s.Conflicts {
		if i == most {
			words = append(words, fmt.Sprintf("%d more fields", len(s.Conflicts)-most))
			break
		}
		words = append(words, fmt.Sprintf("%s (using %q; %s)", phrase.Shortened(c.Field), phrase.Shortened(c.Using), disagreement(c.Disagree)))
	}
	return strings.Join(words, ", ")
}

func exporterIDs(s ServiceStatus) []clusterset.ClusterID {
	var ids []clusterset.ClusterID
	for _, e := range s.Exporters {
		ids = append(ids, e.Cluster)
	}
	return ids
}

func disagreement(ids []clusterset.ClusterID) string {
	if len(ids) == 1 {
		return string(ids[0]) + " disagrees"
	}
	return phrase.IDs(ids) + " disagree"
}

// problemsOfObjects adds the problems that the objects of a member show.
func (a *assessment) problemsOfObjects(s survey.MemberObjects) {
	a.problemsOfReading(s)
	a.problemOfAgent(s)
	for i := range s.Exports {
		if !isEnding(s, &s.Exports[i]) {
			a.problemsOfExport(s, &s.Exports[i])
		}
	}
	for i := range s.Imports {
		if isEnding(s, &s.Imports[i]) {
			continue
		}
		if clusterset.IsManaged(s.Imports[i].Labels) {
			a.problemsOfImport(s, &s.Imports[i])
		} else {
			a.problemOfUnmanagedImport(s, &s.Imports[i])
		}
	}
	for i := range s.Aliases {
		if !isEnding(s, &s.Aliases[i]) {
			a.problemOfAlias(s, &s.Aliases[i])
		}
	}
	a.problemsOfLabels(s)
	a.problemsOfGateways(s)
	a.problemsOfRules(s)
	a.problemsOfDeletions(s)
	a.problemOfDNS(s)
}

// problemOfDNS reports that names of the clusterset do not resolve in a member. One without imports has no names.
func (a *assessment) problemOfDNS(s survey.MemberObjects) {
	problem := Problem{Member: s.ID, Message: sentence(s.DNS.Message), Next: sentenceStart(s.DNS.Next)}
	if strings.HasPrefix(s.DNS.Next, "kubectl ") {
		problem.Next = "Run: " + s.DNS.Next
	}
	imports := slices.ContainsFunc(s.Imports, func(i mcsv1beta1.ServiceImport) bool { return clusterset.IsManaged(i.Labels) })
	switch {
	case s.DNS.State == memberdns.Stale:
		problem.Severity, problem.Reason = SeverityError, ReasonDNSStale
		problem.Message += " Queries that are sent there are not answered."
	case s.DNS.State == memberdns.NotSet && imports:
		problem.Severity, problem.Reason = SeverityWarning, ReasonDNSNotSet
		problem.Message += " Names of the clusterset do not resolve in this cluster."
	default:
		return
	}
	a.add(problem)
}

// isEnding reports whether an object is being deleted, or its namespace is: then Kubernetes deletes what belongs to it in any order.
func isEnding(s survey.MemberObjects, object metav1.Object) bool {
	return !object.GetDeletionTimestamp().IsZero() || s.Terminating.Has(object.GetNamespace())
}

// problemsOfDeletions reports, once for each member whose confirmation a cluster awaits, how many imports that concerns.
func (a *assessment) problemsOfDeletions(s survey.MemberObjects) {
	if !a.hub.IsRead() {
		return // it is not known which records the hub has
	}
	pending := pendingDeletions(a.hub, s)
	for _, id := range slices.Sorted(maps.Keys(pending)) {
		a.add(Problem{
			Severity: SeverityWarning, Reason: ReasonDeletionPending, Member: s.ID,
			Message: fmt.Sprintf("%s keeps what it has of %s, which the hub no longer lists, in %s until %s's heartbeat confirms that it is gone.",
				s.ID, id, phrase.Counted(len(pending[id]), "import"), id),
			Next: fmt.Sprintf("Check that the agent of %s runs. If %s no longer exists: kubectl clusterset leave --from hub --cluster-id %s --hub-context %s",
				id, id, id, a.hub.KubeContext.Name),
		})
	}
}

// problemsOfVersions adds a problem for each agent that is newer than the hub.
func (a *assessment) problemsOfVersions(hubVersion string, members []MemberStatus) {
	for _, m := range members {
		if clusterset.CompareVersions(m.Version, hubVersion) == clusterset.Newer {
			a.add(Problem{
				Severity: SeverityWarning, Reason: ReasonMemberNewer, Member: m.ID,
				Message: fmt.Sprintf("Its agent is of version %s and the hub of version %s: no member may be newer than its hub, which may refuse or drop what it publishes.", m.Version, hubVersion),
				Next:    "Upgrade the hub with the command of version " + m.Version + ": kubectl clusterset init-hub --context HUB",
			})
		}
	}
}

// problemOfSkew adds a problem if the agents have different versions.
func (a *assessment) problemOfSkew(members []MemberStatus) {
	by := map[string][]clusterset.ClusterID{}
	for _, m := range members {
		if m.Version != "" {
			by[m.Version] = append(by[m.Version], m.ID)
		}
	}
	if len(by) < 2 {
		return
	}
	var words []string
	for _, v := range slices.Sorted(maps.Keys(by)) {
		words = append(words, fmt.Sprintf("%s (%s)", v, phrase.IDs(by[v])))
	}
	a.add(Problem{
		Severity: SeverityWarning, Reason: ReasonVersionSkew,
		Message: "The agents have several versions: " + strings.Join(words, ", ") + ".",
		Next:    "Bring the older ones up: kubectl clusterset upgrade --context CONTEXT",
	})
}
