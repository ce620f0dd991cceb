// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"crypto/sha256"
	"encoding/hex"
	"hash/adler32"
	"strconv"
	"strings"
)

const derivedPrefix = "derived-"

// ShortDerivedName returns the derived Service's usual name, `derived-<adler32sum>` in decimal as sprig prints it
// (spec D2). Different services may share it.
func ShortDerivedName(service string) string {
	return derivedPrefix + strconv.FormatUint(uint64(adler32.Checksum([]byte(service))), 10)
}

// LongDerivedName returns the derived Service's name for when the short one is taken: 160 bits of SHA-256, which no
// two services share in practice.
func LongDerivedName(service string) string {
	sum := sha256.Sum256([]byte(service))
	return derivedPrefix + hex.EncodeToString(sum[:20])
}

// DerivedNameOf returns the name of the derived Service that an object is, or belongs to, by its own name; false where it can be neither.
func DerivedNameOf(object string) (string, bool) {
	sum, ok := strings.CutPrefix(object, derivedPrefix)
	sum, _, _ = strings.Cut(sum, "-")
	return derivedPrefix + sum, ok
}

// sliceIDLength is how many hexadecimal digits a slice's ID has.
const sliceIDLength = 10

// SliceID returns a short, stable name for a source EndpointSlice among the slices of its service.
func SliceID(sliceName string) string {
	sum := sha256.Sum256([]byte(sliceName))
	return hex.EncodeToString(sum[:])[:sliceIDLength]
}

// IsSliceID reports whether an ID has the form of those that SliceID returns. What another cluster calls its slices must
// have it: with a hyphen in it, slice `eu-0123456789` of cluster prod would be mirrored under the name of slice `0123456789` of
// cluster prod-eu.
func IsSliceID(id string) bool {
	return len(id) == sliceIDLength && strings.Trim(id, "0123456789abcdef") == ""
}

// MirroredSliceName returns the name under which a source slice is mirrored beside a derived Service (spec D4). No two slices
// have the same, as neither a derived Service's name behind its prefix nor a slice's ID has a hyphen.
func MirroredSliceName(derived string, source ClusterID, sliceID string) string {
	return derived + "-" + string(source) + "-" + sliceID
}
