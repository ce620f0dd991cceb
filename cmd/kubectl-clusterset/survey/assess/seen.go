// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// If the hub could not be read, a status has what the clusters that were read have of the clusterset.

// memberIDs returns the IDs of the members on the hub, sorted. If the hub was not read, it returns those of the clusters that were read.
func (a *assessment) memberIDs(read []survey.MemberObjects) []clusterset.ClusterID {
	ids := a.hub.Records.Members()
	if !a.hub.IsRead() {
		for _, s := range read {
			ids = append(ids, s.ID)
		}
	}
	slices.Sort(ids)
	return ids
}

// keys returns the services with records on the hub, sorted. If the hub was not read, it returns those that the clusters that were read
// export or import.
func (a *assessment) keys(read []survey.MemberObjects) []clusterset.ServiceKey {
	keys := a.hub.Records.Keys()
	if !a.hub.IsRead() {
		for _, s := range read {
			for i := range s.Exports {
				keys = append(keys, clusterset.ServiceKey{Namespace: s.Exports[i].Namespace, Name: s.Exports[i].Name})
			}
			for i := range s.Imports {
				if clusterset.IsManaged(s.Imports[i].Labels) {
					keys = append(keys, clusterset.ServiceKey{Namespace: s.Imports[i].Namespace, Name: s.Imports[i].Name})
				}
			}
		}
	}
	return slices.Compact(SortedKeys(keys))
}

// addSeen adds to the status of a service what its ServiceExports and ServiceImports show. The numbers of endpoints are not known.
func (a *assessment) addSeen(key clusterset.ServiceKey, s *ServiceStatus) {
	var exporters []clusterset.ClusterID
	for _, id := range sortedIDs(a.objects) {
		objects := a.objects[id]
		for i := range objects.Exports {
			if objects.Exports[i].Namespace == key.Namespace && objects.Exports[i].Name == key.Name {
				exporters = append(exporters, id)
			}
		}
		for i := range objects.Imports {
			object := &objects.Imports[i]
			if object.Namespace != key.Namespace || object.Name != key.Name || !clusterset.IsManaged(object.Labels) {
				continue
			}
			s.Type = cmp.Or(s.Type, object.Spec.Type)
			if len(s.Ports) == 0 {
				s.Ports = portsOf(object)
			}
			for _, c := range object.Status.Clusters {
				exporters = append(exporters, clusterset.ClusterID(c.Cluster))
			}
		}
	}
	slices.Sort(exporters)
	for _, id := range slices.Compact(exporters) {
		s.Exporters = append(s.Exporters, ExporterStatus{Cluster: id, AtLeast: true})
	}
}

func sortedIDs(objects map[clusterset.ClusterID]survey.MemberObjects) []clusterset.ClusterID {
	var ids []clusterset.ClusterID
	for id := range objects {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func portsOf(object *mcsv1beta1.ServiceImport) []string {
	var result []string
	for _, p := range object.Spec.Ports {
		port := clusterset.Port{Name: p.Name, Protocol: p.Protocol, Port: p.Port}
		result = append(result, port.String())
	}
	return result
}

// sentence returns a text as a sentence.
func sentence(text string) string {
	return strings.TrimSuffix(sentenceStart(text), ".") + "."
}

func sentenceStart(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// problemOfUnread adds the problem of an API server that could not be read.
func (a *assessment) problemOfUnread(u survey.Unread) {
	problem := Problem{Severity: SeverityError, Reason: ReasonContextUnreadable, Message: sentence(u.String()), Next: sentenceStart(u.Next)}
	if u.IsHub {
		problem.Reason = ReasonHubUnreadable
		problem.Message += " What the other clusters have is shown; the members that are not read, heartbeats and numbers of endpoints are not known."
	}
	a.add(problem)
}

// problemsOfReading adds the problems of objects of a member that could not be read, one for each next step.
func (a *assessment) problemsOfReading(s survey.MemberObjects) {
	for _, failure := range s.Failures() {
		a.add(Problem{
			Severity: SeverityError, Reason: ReasonMemberUnreadable, Member: s.ID,
			Message: "Not all of its objects could be read: " + failure.Message, Next: sentenceStart(failure.Next),
		})
	}
}

// Unread returns the problems of what could not be read.
func (s Status) Unread() []Problem {
	return slices.DeleteFunc(slices.Clone(s.Problems), func(p Problem) bool {
		return p.Reason != ReasonHubUnreadable && p.Reason != ReasonContextUnreadable && p.Reason != ReasonMemberUnreadable
	})
}

// IsHubRead reports whether the hub could be read.
func (s Status) IsHubRead() bool {
	return !slices.ContainsFunc(s.Problems, func(p Problem) bool { return p.Reason == ReasonHubUnreadable })
}

// IsComplete reports whether everything was read that should be.
func (s Status) IsComplete() bool { return len(s.Unread()) == 0 }
