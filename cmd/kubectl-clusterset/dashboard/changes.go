// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// change is an entry of the list of changes.
type change struct {
	Time metav1.Time `json:"time"`
	// Kind is error or warning for a new problem, solved for one that no longer exists, otherwise changed or gone.
	Kind    string               `json:"kind"`
	Member  clusterset.ClusterID `json:"member,omitempty"`
	Service string               `json:"service,omitempty"`
	Text    string               `json:"text"`
}

// maxChanges is the length of the list of changes.
const maxChanges = 100

// changesOf returns an entry for each change, up to maxChanges.
func changesOf(c assess.Changes) []change {
	at := metav1.NewTime(c.Time)
	var result []change
	add := func(kind string, member clusterset.ClusterID, service, text string) {
		result = append(result, change{at, kind, member, service, text})
	}
	for _, p := range c.Appeared {
		add(string(p.Severity), p.Member, p.Service, fmt.Sprintf("%s: %s", p.Reason, p.Message))
	}
	for _, p := range c.Solved {
		add("solved", p.Member, p.Service, "solved: "+string(p.Reason))
	}
	for _, m := range c.Members {
		add("changed", m.ID, "", memberText(m))
	}
	for _, m := range c.MembersGone {
		add("gone", m.ID, "", "the member has left")
	}
	for _, s := range c.Services {
		add("changed", "", s.Key(), serviceText(s))
	}
	for _, s := range c.ServicesGone {
		add("gone", "", s.Key(), "no member exports it")
	}
	return result[:min(maxChanges, len(result))]
}

func memberText(m assess.MemberStatus) string {
	states := map[survey.State]string{survey.StateConnected: "connected", survey.StateSilent: "silent", survey.StateNeverConnected: "no heartbeat"}
	text := fmt.Sprintf("%s, %d exports", states[m.State], m.Exports)
	if m.Imports != nil {
		text += fmt.Sprintf(", %d imports", *m.Imports)
	}
	if m.Publication != "Complete" {
		text += ", publication " + m.Publication
	}
	return text
}

func serviceText(s assess.ServiceStatus) string {
	var exporters []string
	for _, e := range s.Exporters {
		exporters = append(exporters, fmt.Sprintf("%s (%d/%d ready)", e.Cluster, e.ReadyEndpoints, e.Endpoints))
	}
	if len(exporters) == 0 {
		return "no accepted member exports it"
	}
	text := "exported by " + strings.Join(exporters, ", ")
	if len(s.Importers) > 0 {
		text += fmt.Sprintf(", imported by %d", len(s.Importers))
	}
	return text
}
