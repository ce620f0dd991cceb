// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
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
// kube-proxy uses them. This is sufficient to compare them and to choose between slices, and saves memory in caches. Endpoints that are
// already condensed are returned unchanged.
func Condense(endpoints []discoveryv1.Endpoint) []discoveryv1.Endpoint {
	if len(endpoints) == 0 || IsCondensed(endpoints) {
		return endpoints
	}
	return []discoveryv1.Endpoint{{Addresses: []string{digest(endpoints)}, Conditions: bestConditions(endpoints)}}
}

// bestConditions returns no condition if an endpoint is ready, else those of one that still serves while it terminates, or of none.
func bestConditions(endpoints []discoveryv1.Endpoint) discoveryv1.EndpointConditions {
	result := discoveryv1.EndpointConditions{Ready: new(false)}
	for i := range endpoints {
		c := endpoints[i].Conditions
		switch {
		case clusterset.ConditionOf(c.Ready) != clusterset.False:
			return discoveryv1.EndpointConditions{}
		case clusterset.ConditionOf(c.Serving) != clusterset.False && clusterset.ConditionOf(c.Terminating) == clusterset.True:
			result.Serving, result.Terminating = new(true), new(true)
		}
	}
	return result
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
