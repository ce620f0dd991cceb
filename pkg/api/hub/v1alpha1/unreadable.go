// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "k8s.io/apimachinery/pkg/util/json"

// What members write is decoded one spec at a time, and one that this version cannot read is an empty one: otherwise a
// single record that a hub lets through, by a schema of another version, would keep every list of its kind from being
// read, and with it the records of all others. An empty spec claims nothing: a publication that is not Complete, and no
// service at all.

// UnmarshalJSON takes over a spec, or an empty one where the text cannot be read. It returns no error.
func (s *HeartbeatSpec) UnmarshalJSON(text []byte) error {
	type plain HeartbeatSpec
	*s = HeartbeatSpec(readable[plain](text))
	return nil
}

// UnmarshalJSON takes over a spec, or an empty one where the text cannot be read. It returns no error.
func (s *PublishedServiceSpec) UnmarshalJSON(text []byte) error {
	type plain PublishedServiceSpec
	*s = PublishedServiceSpec(readable[plain](text))
	return nil
}

// UnmarshalJSON takes over a spec, or an empty one where the text cannot be read. It returns no error.
func (s *PublishedEndpointsSpec) UnmarshalJSON(text []byte) error {
	type plain PublishedEndpointsSpec
	*s = PublishedEndpointsSpec(readable[plain](text))
	return nil
}

// UnmarshalJSON takes over a spec, or an empty one where the text cannot be read. It returns no error.
func (s *PublishedGatewaySpec) UnmarshalJSON(text []byte) error {
	type plain PublishedGatewaySpec
	*s = PublishedGatewaySpec(readable[plain](text))
	return nil
}

// readable returns what a text says, and nothing of it where a part cannot be read.
func readable[T any](text []byte) T {
	var read, empty T
	if json.Unmarshal(text, &read) != nil {
		return empty
	}
	return read
}
