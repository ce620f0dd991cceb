// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/autoexport"
	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// LabelGap is a Service that a label asks to export, and that has no ServiceExport.
type LabelGap struct {
	autoexport.Gap
	// Limit is that of the agent; 0 if it exports nothing by label.
	Limit int
}

// Key returns the namespace and the name of the Service.
func (g LabelGap) Key() clusterset.ServiceKey { return client.ObjectKeyFromObject(g.Service) }

// Why returns why there is no ServiceExport, as the end of a sentence.
func (g LabelGap) Why() string {
	switch g.Reason {
	case autoexport.ReasonDisabled:
		return "the agent exports nothing by label"
	case autoexport.ReasonBeyondLimit:
		return fmt.Sprintf("the agent exports at most %s of a namespace by label", counted(g.Limit, "Service"))
	case autoexport.ReasonNotExportable:
		return strings.TrimSuffix(g.Obstacle, ".")
	case autoexport.ReasonPending:
	}
	return "the agent has not created its ServiceExport"
}

// Fix returns what to do about a gap in the cluster of a context; empty if Why says it, or if its agent has to do it.
func (g LabelGap) Fix(kubeContext string) string {
	export := fmt.Sprintf("kubectl clusterset export %s --namespace %s --context %s", g.Service.Name, g.Service.Namespace, kubeContext)
	switch g.Reason {
	case autoexport.ReasonDisabled:
		return export + ", or let the agent export by label (join --auto-export)"
	case autoexport.ReasonBeyondLimit:
		return export + ", or raise the agent's --auto-export-limit"
	case autoexport.ReasonNotExportable, autoexport.ReasonPending:
	}
	return ""
}

// gapsOf returns the gaps of a namespace with these labels; none if the flags of the agent are not known, because it does not run in
// the member.
func (m *Member) gapsOf(
	namespace string, labels map[string]string, services []*corev1.Service, exports []*mcsv1beta1.ServiceExport,
) []LabelGap {
	if m.Agent == nil || namespace == manifests.AgentNamespace {
		return nil
	}
	limit := m.Settings.AutoExportLimit
	if !m.Settings.AutoExport {
		limit = 0
	}
	var gaps []LabelGap
	for _, gap := range autoexport.Gaps(autoexport.View{Cluster: m.ID, Labels: labels, Services: services, Exports: exports, Limit: limit}) {
		gaps = append(gaps, LabelGap{gap, limit})
	}
	return gaps
}

// allGaps returns the gaps of all namespaces, sorted.
func (m *Member) allGaps(namespaces []corev1.Namespace, services []corev1.Service, exports []mcsv1beta1.ServiceExport) []LabelGap {
	labels, ending := map[string]map[string]string{}, terminating(namespaces)
	for i := range namespaces {
		labels[namespaces[i].Name] = namespaces[i].Labels
	}
	servicesIn, exportsIn := map[string][]*corev1.Service{}, map[string][]*mcsv1beta1.ServiceExport{}
	for _, s := range caches.Pointers(services) {
		servicesIn[s.Namespace] = append(servicesIn[s.Namespace], s)
	}
	for _, e := range caches.Pointers(exports) {
		exportsIn[e.Namespace] = append(exportsIn[e.Namespace], e)
	}
	var gaps []LabelGap
	for _, namespace := range slices.Sorted(maps.Keys(servicesIn)) {
		if ending.Has(namespace) {
			continue // the agent leaves it alone
		}
		gaps = append(gaps, m.gapsOf(namespace, labels[namespace], servicesIn[namespace], exportsIn[namespace])...)
	}
	return gaps
}

// problemsOfLabels adds one problem if the agent exports nothing by label, one for each namespace that is beyond the limit, and one for
// each Service that cannot be exported. What the agent may be about to export is no problem.
func (a *assessment) problemsOfLabels(s MemberObjects) {
	type group struct {
		reason autoexport.Reason
		of     string
	}
	groups, order := map[group][]LabelGap{}, []group(nil)
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
			what += " and " + counted(count-1, "more Service")
		}
		problem.Message = fmt.Sprintf("A label (%s) asks to export %s, but %s.", clusterset.LabelAutoExport, what, first.Why())
		a.add(problem)
	}
}

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
