// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"crypto/sha256"
	"fmt"
	"hash/adler32"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

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
	var ports, must []port
	for _, p := range s.Spec.Ports {
		ports = append(ports, port{name: p.Name, protocol: string(p.Protocol), number: p.Port, app: text(p.AppProtocol)})
	}
	called := portNames(union(exports))
	for _, p := range union(exports) {
		must = append(must, port{name: called[p.name], protocol: p.protocol, number: p.number, app: p.app})
	}
	l.same(Derived, "ports", ports, must)
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
