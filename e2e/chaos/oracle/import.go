// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"crypto/sha256"
	"fmt"
	"hash/adler32"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// list collects findings about one service in one cluster.
type list struct {
	cluster string
	key     Key
	found   []Finding
}

func (l *list) addf(rule Rule, format string, args ...any) {
	l.found = append(l.found, Finding{Rule: rule, Cluster: l.cluster, Key: l.key, Text: fmt.Sprintf(format, args...)})
}

// same adds a finding where two values, printed, are not the same.
func (l *list) same(rule Rule, what string, got, want any) {
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		l.addf(rule, "%s: is %s, must be %s", what, g, w)
	}
}

// compareImport compares what a cluster has imported of a service with what it must have.
func (w World) compareImport(c Cluster, key Key) []Finding {
	l := &list{cluster: c.ID, key: key}
	exports, found := w.exports(key), c.serviceImport(key)
	if found != nil && !isOurImport(*found) {
		return nil // another user's has the name
	}
	derived := c.derived(key)
	if len(exports) == 0 || !c.takes(key.Namespace) {
		if found != nil {
			l.addf(Imported, "there is a ServiceImport, and no cluster exports the service to this one")
		}
		if len(derived) > 0 {
			l.addf(Derived, "there is a derived Service %s, and no cluster exports the service to this one", derived[0].Name)
		}
		if len(c.mirrored(key)) > 0 {
			l.addf(Endpoints, "there are mirrored slices, and no cluster exports the service to this one")
		}
		return l.found
	}
	if found == nil {
		l.addf(Imported, "there is no ServiceImport, and %s exports the service", exports[0].cluster)
		return l.found
	}
	families := c.importFamilies(exports, derived)
	l.compareSpec(found, exports, families)
	l.compareStatus(found, exports, c.ready(exports))
	if len(families) == 0 {
		l.same(Derived, "number of derived Services without a family for them", len(derived), 0)
		return l.found
	}
	if len(derived) != 1 {
		l.addf(Derived, "there are %d derived Services", len(derived))
		return l.found
	}
	l.compareAddresses(found, derived[0])
	l.compareDerived(derived[0], exports, families)
	l.compareEndpoints(w, c, exports, derived[0])
	return l.found
}

// ready returns status and reason of the import's condition Ready: whether the cluster has one of the exporters' families.
func (c Cluster) ready(exports []export) string {
	if len(c.commonFamilies(exports)) > 0 {
		return "True/Ready"
	}
	return "False/IPFamilyNotSupported"
}

// commonFamilies returns the exporters' families: of a service that is not headless, those that the cluster has too.
func (c Cluster) commonFamilies(exports []export) []corev1.IPFamily {
	return filter(familiesOf(exports), func(f corev1.IPFamily) bool { return exports[0].headless() || slices.Contains(c.families(), f) })
}

// importFamilies returns the families that the import must have, in any order: for a headless service the exporters',
// else those that the cluster has too. The first that it ever had stays (spec I5).
func (c Cluster) importFamilies(exports []export, derived []corev1.Service) []corev1.IPFamily {
	result := c.commonFamilies(exports)
	if len(derived) == 1 && !exports[0].headless() {
		if first := derived[0].Spec.IPFamilies[0]; !slices.Contains(result, first) {
			result = append(result, first)
		}
	}
	return result
}

func (l *list) compareSpec(found *mcsv1beta1.ServiceImport, exports []export, families []corev1.IPFamily) {
	oldest, spec := exports[0], found.Spec
	kind := mcsv1beta1.ClusterSetIP
	if oldest.headless() {
		kind = mcsv1beta1.Headless
	}
	l.same(Imported, "type", spec.Type, kind)
	if spec.Ports == nil {
		l.addf(Imported, "ports are null")
	}
	var ports []port
	for _, p := range spec.Ports {
		ports = append(ports, port{name: p.Name, protocol: string(p.Protocol), number: p.Port, app: text(p.AppProtocol)})
	}
	l.same(Imported, "ports", ports, union(exports))
	if len(families) == 0 {
		families = familiesOf(exports)
	}
	if !sameSet(spec.IPFamilies, families) {
		l.addf(Imported, "ipFamilies: are %v, must be %v", spec.IPFamilies, families)
	}
	if !oldest.headless() {
		mode, timeout := oldest.affinity()
		l.same(Imported, "session affinity", affinityText(spec.SessionAffinity, spec.SessionAffinityConfig), fmt.Sprint(mode, timeout))
	}
	l.same(Imported, "internalTrafficPolicy", text(spec.InternalTrafficPolicy), policyOf(oldest))
	l.same(Imported, "trafficDistribution", text(spec.TrafficDistribution), text(oldest.service.Spec.TrafficDistribution))
	l.same(Imported, "labels", found.Labels, with(admitted(oldest.labels), labelManagedBy, ours))
	l.same(Imported, "annotations", found.Annotations, with(admitted(oldest.annotations), annotationDerived, found.Annotations[annotationDerived]))
}

func (l *list) compareStatus(found *mcsv1beta1.ServiceImport, exports []export, ready string) {
	var is, must []string
	for _, s := range found.Status.Clusters {
		is = append(is, s.Cluster)
	}
	for _, e := range exports {
		must = append(must, e.cluster)
	}
	slices.Sort(must)
	l.same(Imported, "status.clusters", is, must)
	l.same(Imported, "status.endpointSliceObjects", found.Status.EndpointSliceObjects, "Present")
	l.same(Imported, "conditions", conditionsText(found.Status.Conditions, found.Generation), []string{"Ready=" + ready})
}

// compareAddresses compares the import's addresses and its word about the derived Service with that Service.
func (l *list) compareAddresses(found *mcsv1beta1.ServiceImport, derived corev1.Service) {
	l.same(Imported, "annotation of the derived Service", found.Annotations[annotationDerived], derived.Name)
	if found.Spec.Type == mcsv1beta1.Headless {
		l.same(Imported, "ips", found.Spec.IPs, []string{})
		return
	}
	l.same(Imported, "ips", found.Spec.IPs, derived.Spec.ClusterIPs)
	l.same(Imported, "ipFamilies beside the derived Service's", found.Spec.IPFamilies, derived.Spec.IPFamilies)
	l.same(Imported, "number of ips", len(found.Spec.IPs), len(found.Spec.IPFamilies))
}

// conditionsText returns "Type=Status/Reason" of each, sorted, and whether it speaks of an older generation.
func conditionsText(conditions []metav1.Condition, generation int64) []string {
	var result []string
	for _, c := range conditions {
		line := fmt.Sprintf("%s=%s/%s", c.Type, c.Status, c.Reason)
		if found := meta.FindStatusCondition(conditions, c.Type); found.ObservedGeneration != generation {
			line += " of generation " + strconv.FormatInt(found.ObservedGeneration, 10)
		}
		result = append(result, line)
	}
	slices.Sort(result)
	return result
}

func affinityText(mode corev1.ServiceAffinity, config *corev1.SessionAffinityConfig) string {
	if config == nil || config.ClientIP == nil || config.ClientIP.TimeoutSeconds == nil {
		return fmt.Sprint(string(mode), int32(0))
	}
	return fmt.Sprint(string(mode), *config.ClientIP.TimeoutSeconds)
}

func policyOf(e export) string {
	if p := text(e.service.Spec.InternalTrafficPolicy); p != "" {
		return p
	}
	return "Cluster"
}

func with(metadata map[string]string, key, value string) map[string]string {
	result := maps.Clone(metadata)
	result[key] = value
	return result
}

// names returns the two names that the derived Service of a service can have (spec D2).
func names(service string) (short, long string) {
	return fmt.Sprintf("derived-%d", adler32.Checksum([]byte(service))), fmt.Sprintf("derived-%x", sha256.Sum256([]byte(service)))[:len("derived-")+40]
}

// compareDerived compares a derived Service with what it must be (spec D1-D3).
func (l *list) compareDerived(s corev1.Service, exports []export, families []corev1.IPFamily) {
	oldest := exports[0]
	if short, long := names(l.key.Name); s.Name != short && s.Name != long {
		l.addf(Derived, "it is called %s, must be called %s or %s", s.Name, short, long)
	}
	labels := with(admitted(oldest.labels), labelManagedBy, ours)
	labels[labelServiceName], labels[labelImported] = l.key.Name, "true"
	l.same(Derived, "labels", s.Labels, labels)
	l.same(Derived, "type", s.Spec.Type, corev1.ServiceTypeClusterIP)
	l.same(Derived, "selector", s.Spec.Selector, map[string]string{})
	l.same(Derived, "is headless", s.Spec.ClusterIP == corev1.ClusterIPNone, oldest.headless())
	if !sameSet(s.Spec.IPFamilies, families) {
		l.addf(Derived, "ipFamilies: are %v, must be %v", s.Spec.IPFamilies, families)
	}
	var must []port
	called := portNames(union(exports))
	for _, p := range union(exports) {
		must = append(must, port{name: called[p.name], protocol: p.protocol, number: p.number, app: p.app})
	}
	l.same(Derived, "ports", portsOf(s), must)
	mode, timeout := oldest.affinity()
	l.same(Derived, "session affinity", affinityText(s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig), fmt.Sprint(mode, timeout))
	l.same(Derived, "internalTrafficPolicy", text(s.Spec.InternalTrafficPolicy), policyOf(oldest))
	l.same(Derived, "trafficDistribution", text(s.Spec.TrafficDistribution), text(oldest.service.Spec.TrafficDistribution))
	l.same(Derived, "publishNotReadyAddresses", s.Spec.PublishNotReadyAddresses, false)
}

// portNames returns what each port is called in the derived Service: the one without a name is "unnamed"; of two that
// want one name the older export's gets it, and the other has "-2" appended (spec R2).
func portNames(ports []port) map[string]string {
	result, taken := map[string]string{}, map[string]bool{}
	for _, p := range ports {
		wanted := p.name
		if wanted == "" {
			wanted = "unnamed"
		}
		name := wanted
		for n := 2; taken[name]; n++ {
			name = wanted + "-" + strconv.Itoa(n)
		}
		taken[name], result[p.name] = true, name
	}
	return result
}
