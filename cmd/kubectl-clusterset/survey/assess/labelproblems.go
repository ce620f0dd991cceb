// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"fmt"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/phrase"
	"github.com/tombolo-mcs/tombolo/controllers/autoexport"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// problemsOfLabels adds one problem if the agent exports nothing by label, one for each namespace that is beyond the limit, and one for
// each Service that cannot be exported. What the agent may be about to export is no problem.
func (a *assessment) problemsOfLabels(s survey.MemberObjects) {
	type group struct {
		reason autoexport.Reason
		of     string
	}
	groups, order := map[group][]survey.LabelGap{}, []group(nil)
	for _, gap := range s.Gaps {
		g := group{reason: gap.Reason}
		switch gap.Reason {
		case autoexport.ReasonPending:
			continue
		case autoexport.ReasonBeyondLimit:
			g.of = gap.Service.Namespace
		case autoexport.ReasonNotExportable:
			g.of = gap.Service.Namespace + "/" + gap.Service.Name
		case autoexport.ReasonDisabled:
		}
		if len(groups[g]) == 0 {
			order = append(order, g)
		}
		groups[g] = append(groups[g], gap)
	}
	for _, g := range order {
		first, count := groups[g][0], len(groups[g])
		what := first.Key().String()
		problem := Problem{
			Severity: SeverityWarning, Reason: ReasonNotExportedByLabel, Member: s.ID, Service: what,
			Next: "See what to do: kubectl clusterset trace " + what,
		}
		if g.reason == autoexport.ReasonDisabled { // in several namespaces
			problem.Service = ""
		}
		if count > 1 {
			what += " and " + phrase.Counted(count-1, "more Service")
		}
		problem.Message = fmt.Sprintf("A label (%s) asks to export %s, but %s.", clusterset.LabelAutoExport, what, first.Why())
		a.add(problem)
	}
}
