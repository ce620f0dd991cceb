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

// ShortDerivedName returns the usual name of the derived Service: `derived-<adler32sum>` in decimal, as sprig formats it (spec D2).
// Several services may have the same name.
func ShortDerivedName(service string) string {
	return derivedPrefix + strconv.FormatUint(uint64(adler32.Checksum([]byte(service))), 10)
}

// LongDerivedName returns the name of the derived Service if the short name is taken. It contains 160 bits of SHA-256, so collisions
// are not expected.
func LongDerivedName(service string) string {
	sum := sha256.Sum256([]byte(service))
	return derivedPrefix + hex.EncodeToString(sum[:20])
}

const virtualPrefix = "virtual-"

// VirtualIP identifies the local address for a hostname of a headless service in another cluster (G9).
type VirtualIP struct {
	Service ServiceKey
	Cluster ClusterID
	// Hostname is empty for all endpoints without one.
	Hostname string
}

// Name returns the name of the Service with this address. It contains 160 bits of SHA-256, so collisions are not expected.
func (v VirtualIP) Name() string {
	sum := sha256.Sum256([]byte(v.Service.Name + "." + string(v.Cluster) + "." + v.Hostname)) // none of them contains a dot
	return virtualPrefix + hex.EncodeToString(sum[:20])
}

// IsVirtualIPName reports whether the Service of a virtual IP, or one of its EndpointSlices, can have this name.
func IsVirtualIPName(object string) bool { return strings.HasPrefix(object, virtualPrefix) }

// DerivedNameOf returns the name of the derived Service from the name of the Service itself or of one of its slices, and false if
// the name has another form.
func DerivedNameOf(object string) (string, bool) {
	sum, ok := strings.CutPrefix(object, derivedPrefix)
	sum, _, _ = strings.Cut(sum, "-")
	return derivedPrefix + sum, ok
}

// sliceIDLength is the number of hexadecimal digits of a slice ID.
const sliceIDLength = 10

// SliceID returns a short, stable ID for a source EndpointSlice, unique among the slices of its service.
func SliceID(sliceName string) string {
	sum := sha256.Sum256([]byte(sliceName))
	return hex.EncodeToString(sum[:])[:sliceIDLength]
}

// IsSliceID reports whether an ID has the form that SliceID returns. Slice IDs of other clusters must have this form: an ID with a
// hyphen could collide, because slice `eu-0123456789` of cluster prod and slice `0123456789` of cluster prod-eu have the same
// mirrored name.
func IsSliceID(id string) bool {
	return len(id) == sliceIDLength && strings.Trim(id, "0123456789abcdef") == ""
}

// MirroredSliceName returns the name of the mirrored slice for a source slice (spec D4). The names are unique, because neither the
// hash in the derived Service's name nor a slice ID contains a hyphen.
func MirroredSliceName(derived string, source ClusterID, sliceID string) string {
	return derived + "-" + string(source) + "-" + sliceID
}
