// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"fmt"
	"maps"
	"slices"
	stdstrings "strings"
)

// Applied is a rule that decides about clients of a service.
type Applied struct {
	// Rule is the kind and the name of an object, or one of the rules that are no objects.
	Rule string
	// Action is Accept, Deny or Pass, and Clients are those that the rule decides about, if none before it does.
	Action  string
	Clients string
}

// Applying returns the rules that can decide about clients of a service, in the order in which they are asked (A2). The last one decides
// about all that are left.
func (r *Rules) Applying(service Service) []Applied {
	labels, known := r.namespaces[service.Key.Namespace]
	if !known {
		return []Applied{{NamespaceUnknown, "Deny", everyone}}
	}
	tier := func(policies []policy) []Applied {
		var result []Applied
		for _, p := range policies {
			if containsOrEmpty(p.services, service.Key.Name) && p.namespaces.Matches(labels) {
				result = append(result, Applied{p.step.verdict.Rule, p.step.action(), describe(p.peers)})
			}
		}
		return result
	}
	result := tier(r.admin)
	granted := false
	for _, g := range r.grants[service.Key.Namespace] {
		if containsOrEmpty(g.exports, service.Key.Name) {
			granted = true
			result = append(result, Applied{g.rule, "Accept", describe(g.to)})
		}
	}
	switch {
	case granted:
		return append(result, Applied{NotGranted, "Deny", everyone})
	case service.GrantedOnly:
		return append(result, Applied{GrantedOnly, "Deny", everyone})
	}
	return append(append(result, tier(r.baseline)...), Applied{NoRule, "Accept", everyone})
}

// action returns what a step does with the clients that it matches.
func (s step) action() string {
	switch {
	case s.pass:
		return "Pass"
	case s.verdict.Allowed:
		return "Accept"
	}
	return "Deny"
}

// everyone are the clients of a rule without peers.
const everyone = "all"

// describe returns the clients that peers match.
func describe(peers []peer) string {
	var texts []string
	for _, p := range peers {
		var parts []string
		for _, part := range []struct {
			of    string
			names []string
		}{{"clusters", p.clusters}, {"namespaces", p.namespaces}, {"accounts", p.accounts}} {
			if len(part.names) > 0 {
				parts = append(parts, part.of+" "+stdstrings.Join(slices.Sorted(slices.Values(part.names)), ", "))
			}
		}
		for _, name := range slices.Sorted(maps.Keys(p.properties)) {
			parts = append(parts, fmt.Sprintf("property %s=%s", name, p.properties[name]))
		}
		texts = append(texts, stdstrings.Join(parts, " and "))
	}
	if len(texts) == 0 {
		return everyone
	}
	return stdstrings.Join(texts, "; or ")
}
