// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/autoexport"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// gapSteps returns steps if a label asks for an export that the member does not have. They are broken if no cluster exports the service, or
// if the agent should have created the export.
func (v *memberTrace) gapSteps(t *tracer) []Step {
	if v.gap == nil {
		return nil
	}
	state := Note
	if !t.exported {
		state = Broken
	}
	found, fix := "the label "+clusterset.LabelAutoExport+" asks to export it", v.gap.Fix(v.view.Member.KubeContext.Name)
	if step, due := v.dueStep(HopExport, v.gapWrites); due {
		if v.isWaiting() {
			step = v.step(HopExport, Broken, fmt.Sprintf("its agent creates the ServiceExport %s after the label asked for it, so that a chart can create its own before",
				autoexport.Delay(v.gap.Service)), "trace it again then; if it still has none: "+v.logsCommand())
		}
		return []Step{v.step(HopExport, Note, found, ""), step}
	}
	return []Step{v.step(HopExport, state, found+", but "+v.gap.Why(), cmp.Or(fix, "see the message"))}
}

// isWaiting reports whether nothing prevents the creation of the export: the agent may be waiting.
func (v *memberTrace) isWaiting() bool {
	refused := slices.ContainsFunc(v.gapWrites, func(w apply.DryRunWrite) bool { return w.Err != nil && !errors.Is(w.Err, apply.ErrStale) })
	return !refused && !v.isSilent()
}

// exportedBy returns what the label of a Service or of its Namespace has to do with its ServiceExport; empty if there is no such label.
func exportedBy(export *mcsv1beta1.ServiceExport, service, namespace map[string]string) string {
	_, isLabelled := service[clusterset.LabelAutoExport]
	switch {
	case clusterset.IsAutomatic(export):
		return ", because of the label " + clusterset.LabelAutoExport
	case isLabelled || clusterset.IsAutoExported(service, namespace):
		return ", by a user's ServiceExport: the label " + clusterset.LabelAutoExport + " has no effect"
	}
	return ""
}
