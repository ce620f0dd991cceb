// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/phrase"
	"github.com/tombolo-mcs/tombolo/controllers/autoexport"
	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// LabelGap is a Service that a label asks to export, and that has no ServiceExport.
type LabelGap struct {
	autoexport.Gap
	// Limit is the limit of the agent; 0 if the agent exports nothing by label.
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
		return fmt.Sprintf("the agent exports at most %s of a namespace by label", phrase.Counted(g.Limit, "Service"))
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

// Gaps returns the gaps of a namespace with these labels; none if the flags of the agent are not known, because it does not run in
// the member.
func (m *Member) Gaps(
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

// allGaps returns the gaps of all Namespaces, sorted.
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
		gaps = append(gaps, m.Gaps(namespace, labels[namespace], servicesIn[namespace], exportsIn[namespace])...)
	}
	return gaps
}
