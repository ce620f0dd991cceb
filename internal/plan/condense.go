// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// digestPrefix is the prefix of a digest. No address starts with it, because the API server accepts a colon only in IPv6 addresses.
const digestPrefix = "sha256:"

// Condense replaces endpoints by a single one whose address is a digest of them all, and whose conditions are those of the best one, as
// kube-proxy uses them. It has the node of one of the endpoints with these conditions that has a node, a zone if all of them have one, and
// hints if an endpoint has. This is sufficient to compare them and to choose between slices, and saves memory in caches. Endpoints that are already condensed are returned unchanged.
func Condense(endpoints []discoveryv1.Endpoint) []discoveryv1.Endpoint {
	if len(endpoints) == 0 || IsCondensed(endpoints) {
		return endpoints
	}
	result := discoveryv1.Endpoint{Addresses: []string{digest(endpoints)}}
	ready, terminating := ofState(endpoints, isReady), ofState(endpoints, isTerminating)
	switch {
	case ready.exists:
		result.NodeName, result.Zone = ready.node, ready.zone
	case terminating.exists:
		result.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
		result.NodeName, result.Zone = terminating.node, terminating.zone
	default:
		result.Conditions.Ready = new(false)
	}
	for _, endpoint := range endpoints {
		result.Hints = cmp.Or(result.Hints, endpoint.Hints)
	}
	return []discoveryv1.Endpoint{result}
}

// state says whether there are endpoints in a state, on which node one of them is, and the zone of the last one if all have one.
type state struct {
	exists     bool
	node, zone *string
}

func ofState(endpoints []discoveryv1.Endpoint, is func(discoveryv1.EndpointConditions) bool) state {
	var result state
	zoneless := false
	for i := range endpoints {
		if is(endpoints[i].Conditions) {
			result.exists = true
			result.node, result.zone = cmp.Or(result.node, endpoints[i].NodeName), endpoints[i].Zone
			zoneless = zoneless || endpoints[i].Zone == nil
		}
	}
	if zoneless {
		result.zone = nil
	}
	return result
}

func isReady(c discoveryv1.EndpointConditions) bool {
	return clusterset.ConditionOf(c.Ready) != clusterset.False
}

// isTerminating reports whether an endpoint still serves while it terminates.
func isTerminating(c discoveryv1.EndpointConditions) bool {
	return clusterset.ConditionOf(c.Serving) != clusterset.False && clusterset.ConditionOf(c.Terminating) == clusterset.True
}

// IsCondensed reports whether endpoints are a digest, which must not be written.
func IsCondensed(endpoints []discoveryv1.Endpoint) bool {
	return len(endpoints) > 0 && slices.ContainsFunc(endpoints[0].Addresses, func(a string) bool { return strings.HasPrefix(a, digestPrefix) })
}

// digest returns a digest of the serialized endpoints.
func digest(endpoints []discoveryv1.Endpoint) string {
	content, err := (&discoveryv1.EndpointSlice{Endpoints: endpoints}).Marshal()
	if err != nil { // cannot happen: the fields are strings, numbers and booleans
		panic(fmt.Sprintf("encode endpoints: %v", err))
	}
	sum := sha256.Sum256(content)
	return digestPrefix + base64.RawStdEncoding.EncodeToString(sum[:])
}

// sameEndpoints reports whether two lists of endpoints are equal. Either may be condensed.
func sameEndpoints(a, b []discoveryv1.Endpoint) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return Condense(a)[0].Addresses[0] == Condense(b)[0].Addresses[0]
}
