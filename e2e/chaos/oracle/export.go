// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// export is what one cluster exports of a service.
type export struct {
	cluster             string
	silent              bool
	age                 time.Time
	service             *corev1.Service
	labels, annotations map[string]string
}

// verdict is what a ServiceExport must say in its condition Valid.
type verdict struct{ status, reason string }

// judge says whether a ServiceExport exports anything (spec E5, E6, E9, C1).
func (c Cluster) judge(key Key) verdict {
	service := c.service(key)
	switch {
	case isReserved(key.Namespace):
		return verdict{"False", "NamespaceReserved"}
	case key.Namespace == "default" && key.Name == "kubernetes":
		return verdict{"False", "ServiceReserved"}
	case service == nil:
		return verdict{"False", "NoService"}
	case service.Labels[labelManagedBy] == ours, service.Spec.Type == corev1.ServiceTypeExternalName:
		return verdict{"False", "InvalidServiceType"}
	}
	return verdict{"True", "Valid"}
}

// exports returns who exports a service, the oldest first (spec E1, R8).
func (w World) exports(key Key) []export {
	var all []export
	for _, c := range w.Clusters {
		serviceExport := c.export(key)
		if serviceExport == nil || serviceExport.DeletionTimestamp != nil || c.judge(key).status != "True" || !w.mayPublish(c.ID, key.Namespace) {
			continue
		}
		age := serviceExport.CreationTimestamp.Time
		member, record := w.member(c.ID), w.record(c.ID, key)
		if record != nil && member.Spec.ClaimedAges != "Trusted" {
			if earliest := record.CreationTimestamp.Add(-10 * time.Minute); age.Before(earliest) {
				age = earliest
			}
		}
		all = append(all, export{
			cluster: c.ID, silent: c.Silent, age: age, service: c.service(key),
			labels: crossing(serviceExport.Spec.ExportedLabels), annotations: crossing(serviceExport.Spec.ExportedAnnotations),
		})
	}
	slices.SortFunc(all, func(a, b export) int { return cmp.Or(a.age.Compare(b.age), strings.Compare(a.cluster, b.cluster)) })
	return all
}

// mayPublish reports whether the hub's administrator lets a member publish services of a namespace.
func (w World) mayPublish(id, namespace string) bool {
	member := w.member(id)
	return member != nil && (len(member.Spec.Namespaces) == 0 || slices.Contains(member.Spec.Namespaces, hubv1alpha1.NamespaceName(namespace)))
}

// crossing returns the labels or annotations that leave the cluster: the keys of Kubernetes' domains do not (decision 1).
func crossing(metadata map[string]string) map[string]string {
	result := map[string]string{}
	for key, value := range metadata {
		if domain, _, found := strings.Cut(key, "/"); !found || !strings.HasSuffix(domain, "kubernetes.io") {
			result[key] = value
		}
	}
	return result
}

// admitted returns the labels or annotations that importers take over, where none admits any domain: those without one.
func admitted(metadata map[string]string) map[string]string {
	result := map[string]string{}
	for key, value := range metadata {
		if !strings.Contains(key, "/") {
			result[key] = value
		}
	}
	return result
}

func (e export) headless() bool { return e.service.Spec.ClusterIP == corev1.ClusterIPNone }

// port is a port of a Service, as clients know it.
type port struct {
	name, protocol, app string
	number              int32
}

func (e export) ports() []port { return portsOf(*e.service) }

func portsOf(s corev1.Service) []port {
	var result []port
	for _, p := range s.Spec.Ports {
		result = append(result, port{name: p.Name, protocol: string(p.Protocol), number: p.Port, app: text(p.AppProtocol)})
	}
	return result
}

// affinity returns the session affinity and its timeout in seconds.
func (e export) affinity() (string, int32) {
	if e.service.Spec.SessionAffinity != corev1.ServiceAffinityClientIP || e.headless() {
		return "None", 0
	}
	return "ClientIP", *e.service.Spec.SessionAffinityConfig.ClientIP.TimeoutSeconds
}

// union returns the ports of all: no name twice, no protocol and number twice; the older export's port stays (spec R1).
func union(exports []export) []port {
	var all []port
	for _, e := range exports {
		for _, p := range e.ports() {
			taken := func(other port) bool {
				return other.name == p.name || other.protocol == p.protocol && other.number == p.number
			}
			if !slices.ContainsFunc(all, taken) {
				all = append(all, p)
			}
		}
	}
	return all
}

// conflicts returns the reasons of condition Conflict: where any export differs from the oldest (spec C3, C4).
func conflicts(exports []export) []string {
	oldest := exports[0]
	mode, timeout := oldest.affinity()
	bothShared := func(e export) bool { return !oldest.headless() && !e.headless() }
	var reasons []string
	for _, conflict := range []struct {
		reason  string
		differs func(export) bool
	}{
		{"PortConflict", func(e export) bool { return !sameSet(oldest.ports(), e.ports()) }},
		{"TypeConflict", func(e export) bool { return oldest.headless() != e.headless() }},
		{"SessionAffinityConflict", func(e export) bool { other, _ := e.affinity(); return bothShared(e) && mode != other }},
		{"SessionAffinityConfigConflict", func(e export) bool { _, other := e.affinity(); return bothShared(e) && timeout != other }},
		{"LabelsConflict", func(e export) bool { return !maps.Equal(oldest.labels, e.labels) }},
		{"AnnotationsConflict", func(e export) bool { return !maps.Equal(oldest.annotations, e.annotations) }},
		{"InternalTrafficPolicyConflict", func(e export) bool {
			return text(oldest.service.Spec.InternalTrafficPolicy) != text(e.service.Spec.InternalTrafficPolicy)
		}},
		{"TrafficDistributionConflict", func(e export) bool {
			return text(oldest.service.Spec.TrafficDistribution) != text(e.service.Spec.TrafficDistribution)
		}},
		{"IPFamilyConflict", func(e export) bool { return !sameSet(oldest.service.Spec.IPFamilies, e.service.Spec.IPFamilies) }},
	} {
		if slices.ContainsFunc(exports[1:], conflict.differs) {
			reasons = append(reasons, conflict.reason)
		}
	}
	return reasons
}

// familiesOf returns the IP families of all exports, those of the oldest first.
func familiesOf(exports []export) []corev1.IPFamily {
	var all []corev1.IPFamily
	for _, e := range exports {
		for _, f := range e.service.Spec.IPFamilies {
			if !slices.Contains(all, f) {
				all = append(all, f)
			}
		}
	}
	return all
}

// sameSet compares lists without doubles, in whatever order.
func sameSet[T comparable](a, b []T) bool {
	for _, x := range a {
		if !slices.Contains(b, x) {
			return false
		}
	}
	return len(a) == len(b)
}

// text returns what an optional string says; "" where it says nothing.
func text[T ~string](s *T) string {
	if s == nil {
		return ""
	}
	return string(*s)
}

// compareExport compares a ServiceExport's conditions with what they must say.
func (w World) compareExport(c Cluster, key Key) []Finding {
	l := &list{cluster: c.ID, key: key}
	found := c.export(key)
	if found == nil || found.DeletionTimestamp != nil {
		return nil
	}
	valid := c.judge(key)
	ready, conflict := "True/Exported", "False/NoConflicts"
	exports := w.exports(key)
	switch {
	case valid.status != "True":
		ready = "False/Pending"
	case !w.mayPublish(c.ID, key.Namespace):
		return nil // the hub refuses it; FewWrites counts the attempts
	default:
		if reasons := conflicts(exports); len(reasons) > 0 {
			conflict = "True/" + strings.Join(reasons, ",")
		}
	}
	want := []string{"Conflict=" + conflict, "Ready=" + ready, "Valid=" + valid.status + "/" + valid.reason}
	l.same(Conditions, "conditions", conditionsText(found.Status.Conditions, found.Generation), want)
	return l.found
}

// compareRecord says where the hub's records are not those of the member's exports.
func (w World) compareRecord(c Cluster, key Key) []Finding {
	l := &list{cluster: c.ID, key: key}
	exporting := slices.ContainsFunc(w.exports(key), func(e export) bool { return e.cluster == c.ID })
	record := w.record(c.ID, key)
	if recorded := record != nil && !record.Spec.Inactive; recorded != exporting {
		l.addf(Published, "exported: %t, recorded on the hub: %t", exporting, recorded)
	}
	if record != nil && record.Spec.Inactive && c.export(key) == nil {
		l.addf(Published, "there is an inactive record, and no ServiceExport")
	}
	return l.found
}
