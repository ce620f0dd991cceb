// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package autoexport

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/plan"
)

// Reason says why a Service that a label asks to export has no ServiceExport.
type Reason string

// The reasons.
const (
	ReasonDisabled      Reason = "Disabled"      // the agent exports nothing by label
	ReasonBeyondLimit   Reason = "BeyondLimit"   // the namespace has as many automatic exports as the agent creates
	ReasonNotExportable Reason = "NotExportable" // a ServiceExport would be invalid
	ReasonPending       Reason = "Pending"       // nothing prevents it
)

// Gap is a Service that a label asks to export, and that has no ServiceExport.
type Gap struct {
	Service *corev1.Service
	Reason  Reason
	// Obstacle says why the Service is NotExportable.
	Obstacle string
}

// Create returns the creation of the ServiceExport.
func (g Gap) Create() []plan.Change[*mcsv1beta1.ServiceExport] {
	return plan.ServiceExports([]*mcsv1beta1.ServiceExport{newExport(g.Service)}, nil)
}

// Gaps returns the gaps of a namespace, sorted by name. v.Limit is 0 if the agent exports nothing by label. The label of a Namespace asks
// only for Services that can be exported. It is pure.
func Gaps(v View) []Gap {
	var gaps []Gap
	missing := func(reason Reason, services []*corev1.Service) {
		for _, s := range services {
			gaps = append(gaps, Gap{Service: s, Reason: reason})
		}
	}
	d := decide(v)
	beyond := ReasonBeyondLimit
	if v.Limit == 0 {
		beyond = ReasonDisabled
	}
	missing(ReasonPending, d.created)
	missing(ReasonPending, d.waiting)
	missing(beyond, d.leftOut)
	exported := map[string]bool{}
	for _, e := range v.Exports {
		exported[e.Name] = true
	}
	for _, s := range v.Services {
		if obstacle := v.obstacle(s); obstacle != "" && v.isLabelled(s) && hasOwnLabel(s) && !exported[s.Name] {
			gaps = append(gaps, Gap{s, ReasonNotExportable, obstacle})
		}
	}
	slices.SortFunc(gaps, func(a, b Gap) int { return cmp.Compare(a.Service.Name, b.Service.Name) })
	return gaps
}
