// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package autoexport

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/export"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/internal/record"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// View is what the automatic exports of a namespace depend on.
type View struct {
	Cluster clusterset.ClusterID
	// Labels are those of the Namespace.
	Labels   map[string]string
	Services []*corev1.Service
	Exports  []*mcsv1beta1.ServiceExport
	// Limit is as in Reconciler.
	Limit int
	// Asked is when the agent first saw that a label asks for the export of a Service that has none, by the Service's name, and Now is the
	// time. A Service that is not in Asked does not wait.
	Asked map[string]time.Time
	Now   time.Time
}

// The time between the label and the creation. A chart, or another tool that fails if an object exists already, may be about to create
// the ServiceExport itself: Helm creates custom resources last.
const (
	delay        = 5 * time.Second
	releaseDelay = 30 * time.Second
)

// annotationRelease is set by Helm on all objects of a release.
const annotationRelease = "meta.helm.sh/release-name"

// Delay returns how long after the label the export of a Service is created.
func Delay(service *corev1.Service) time.Duration {
	if service.Annotations[annotationRelease] != "" {
		return releaseDelay
	}
	return delay
}

// decision is what to write.
type decision struct {
	changes []plan.Change[*mcsv1beta1.ServiceExport]
	// created are the Services of the exports to create, waiting those whose exports are created later, and leftOut those beyond the
	// limit, in the order in which they would be exported.
	created, waiting, leftOut []*corev1.Service
	// after is the time until the first one of waiting is created.
	after time.Duration
}

// decide returns the automatic exports to create and to delete. An export that exists stays if its Service is still labelled, also
// beyond the limit. Exports of users are not changed, and do not count: an automatic one that another field manager has written is the
// user's. It is pure.
func decide(v View) decision {
	exports := map[string]*mcsv1beta1.ServiceExport{}
	var managed []*mcsv1beta1.ServiceExport
	for _, e := range v.Exports {
		exports[e.Name] = e
		if clusterset.IsAutomatic(e) {
			managed = append(managed, e)
		}
	}
	var desired []*mcsv1beta1.ServiceExport
	var missing []*corev1.Service
	for _, s := range v.Services {
		switch existing := exports[s.Name]; {
		case !v.isExported(s):
		case existing == nil:
			missing = append(missing, s)
		case clusterset.IsAutomatic(existing):
			desired = append(desired, existing)
		}
	}
	slices.SortFunc(missing, compareUrgency)
	free := min(max(0, v.Limit-len(desired)), len(missing))
	result := decision{leftOut: missing[free:]}
	for _, s := range missing[:free] {
		switch wait := v.wait(s); {
		case wait <= 0:
			result.created = append(result.created, s)
		case result.after == 0 || wait < result.after:
			result.after = wait
			fallthrough
		default:
			result.waiting = append(result.waiting, s)
		}
	}
	for _, s := range result.created {
		desired = append(desired, newExport(s))
	}
	result.changes = plan.ServiceExports(desired, managed)
	return result
}

// wait returns the time until the export of a Service is created.
func (v View) wait(service *corev1.Service) time.Duration {
	asked, known := v.Asked[service.Name]
	if !known {
		return 0
	}
	return asked.Add(Delay(service)).Sub(v.Now)
}

// isExported reports whether a Service is labelled and can be exported. An export of any other one would only be invalid.
func (v View) isExported(service *corev1.Service) bool {
	return v.isLabelled(service) && v.obstacle(service) == ""
}

// isLabelled reports whether a label asks to export a Service.
func (v View) isLabelled(service *corev1.Service) bool {
	if !clusterset.IsAutoExported(service.Labels, v.Labels) || !service.DeletionTimestamp.IsZero() {
		return false
	}
	return hasOwnLabel(service) || !clusterset.IsAlias(service) || len(service.Spec.Selector) > 0 // otherwise it has no endpoints of this cluster
}

// obstacle returns why a Service cannot be exported; empty if it can.
func (v View) obstacle(service *corev1.Service) string {
	decided, rejection := export.Decide(v.Cluster, newExport(service), service)
	if rejection != nil {
		return rejection.Message
	}
	if err := record.Check(decided); err != nil {
		return err.Error()
	}
	return ""
}

func hasOwnLabel(service *corev1.Service) bool {
	_, ok := service.Labels[clusterset.LabelAutoExport]
	return ok
}

// compareUrgency orders the Services of a namespace that are not exported yet: first those with a label of their own, then older ones.
func compareUrgency(a, b *corev1.Service) int {
	own := func(s *corev1.Service) int {
		if hasOwnLabel(s) {
			return 0
		}
		return 1
	}
	return cmp.Or(
		cmp.Compare(own(a), own(b)),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

func newExport(service *corev1.Service) *mcsv1beta1.ServiceExport {
	return &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{
		Namespace: service.Namespace, Name: service.Name,
		Labels: map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy},
	}}
}
