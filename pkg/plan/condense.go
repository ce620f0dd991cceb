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
)

// digestPrefix marks a digest. It is part of no address: the API server takes none that has a colon but those of IPv6.
const digestPrefix = "sha256:"

// Condense returns what is enough of endpoints to compare them with others: one that bears a digest of them all, in place of
// its address. It is for caches that hold what is only compared, and returns what is condensed already as it is.
func Condense(endpoints []discoveryv1.Endpoint) []discoveryv1.Endpoint {
	if len(endpoints) == 0 || IsCondensed(endpoints) {
		return endpoints
	}
	return []discoveryv1.Endpoint{{Addresses: []string{digest(endpoints)}}}
}

// IsCondensed reports whether endpoints are a digest, which must not be written.
func IsCondensed(endpoints []discoveryv1.Endpoint) bool {
	return len(endpoints) > 0 && slices.ContainsFunc(endpoints[0].Addresses, func(a string) bool { return strings.HasPrefix(a, digestPrefix) })
}

// digest returns a digest of endpoints as they go over the wire.
func digest(endpoints []discoveryv1.Endpoint) string {
	content, err := (&discoveryv1.EndpointSlice{Endpoints: endpoints}).Marshal()
	if err != nil { // its fields are strings, numbers and booleans, of which none can fail
		panic(fmt.Sprintf("encode endpoints: %v", err))
	}
	sum := sha256.Sum256(content)
	return digestPrefix + base64.RawStdEncoding.EncodeToString(sum[:])
}

// sameEndpoints reports whether two lists of endpoints, of which each may be condensed, are of the same.
func sameEndpoints(a, b []discoveryv1.Endpoint) bool {
	if len(a) == 0 || len(b) == 0 {
		return len(a) == len(b)
	}
	return Condense(a)[0].Addresses[0] == Condense(b)[0].Addresses[0]
}
