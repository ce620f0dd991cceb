// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// NeedsClient reports whether a rule that can decide about clients of a cluster names namespaces or service accounts: then it matters who a
// client is (A3). Properties are those of the cluster, so a rule that names only these decides about all of its clients alike.
func (r *Rules) NeedsClient(service Service, id clusterset.ClusterID) bool {
	labels, known := r.namespaces[service.Key.Namespace]
	if !known {
		return false
	}
	decided, needs := r.tierNeedsClient(r.admin, service, id, labels)
	if decided || needs {
		return needs
	}
	var granted, all, some bool
	for _, g := range r.grants[service.Key.Namespace] {
		if containsOrEmpty(g.exports, service.Key.Name) {
			granted = true
			everyone, named := r.matches(g.to, id, accepts)
			all, some = all || everyone, some || named
		}
	}
	if granted || service.GrantedOnly {
		return some && !all
	}
	_, needs = r.tierNeedsClient(r.baseline, service, id, labels)
	return needs
}

// effect is what a step does with what is not known (A3).
type effect int

const (
	accepts effect = iota // or passes
	denies
)

// tierNeedsClient reports whether a tier decides about all clients of a cluster alike, or whether it matters who they are.
func (r *Rules) tierNeedsClient(policies []policy, service Service, id clusterset.ClusterID, labels labels.Set) (decided, needs bool) {
	for _, p := range policies {
		if !containsOrEmpty(p.services, service.Key.Name) || !p.namespaces.Matches(labels) {
			continue
		}
		does := accepts
		if !p.step.pass && !p.step.verdict.Allowed {
			does = denies
		}
		switch everyone, named := r.matches(p.peers, id, does); {
		case everyone:
			return !p.step.pass, false
		case named:
			return false, true
		}
	}
	return false, false
}

// matches reports whether peers are all clients of a cluster, and whether they name namespaces of some.
func (r *Rules) matches(peers []peer, id clusterset.ClusterID, does effect) (everyone, named bool) {
	everyone = len(peers) == 0
	for _, p := range peers {
		has, known := r.properties.match(id, p.properties)
		switch {
		case !containsOrEmpty(p.clusters, string(id)), !has && (known || does == accepts):
		case len(p.namespaces) == 0:
			everyone = true
		default:
			named = true
		}
	}
	return everyone, named
}
