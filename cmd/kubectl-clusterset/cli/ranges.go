// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// ranges are the address ranges of one cluster.
type ranges struct{ pods, nodes, services []netip.Prefix }

// rangesOf returns the ranges of a Member. It leaves out invalid CIDRs, which the hub does not admit.
func rangesOf(spec hubv1alpha1.MemberSpec) ranges {
	parse := func(cidrs []hubv1alpha1.CIDR) (result []netip.Prefix) {
		for _, c := range cidrs {
			if prefix, err := netip.ParsePrefix(string(c)); err == nil {
				result = append(result, prefix.Masked())
			}
		}
		return result
	}
	return ranges{parse(spec.PodCIDRs), parse(spec.NodeCIDRs), parse(spec.ServiceCIDRs)}
}

// overlap is a pair of ranges that have addresses in common.
type overlap struct {
	ours, theirs                netip.Prefix
	kind, otherKind, otherOwner string
}

func (o overlap) String() string {
	return fmt.Sprintf("%s %s overlap with %s %s of %s", o.kind, o.ours, o.otherKind, o.theirs, o.otherOwner)
}

// overlaps returns the overlaps of a cluster's pod and node ranges with its own Service ranges, and with all ranges of other
// clusters. With overlaps, packets may go to the wrong cluster.
func overlaps(own ranges, others map[clusterset.ClusterID]ranges) []overlap {
	result := own.overlapsWith(own.services, "service CIDR", "this cluster itself")
	ids := make([]clusterset.ClusterID, 0, len(others))
	for id := range others {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		other, otherOwner := others[id], "member "+string(id)
		result = append(result, own.overlapsWith(other.pods, "pod CIDR", otherOwner)...)
		result = append(result, own.overlapsWith(other.nodes, "node CIDR", otherOwner)...)
		result = append(result, own.overlapsWith(other.services, "service CIDR", otherOwner)...)
	}
	return result
}

func (r ranges) overlapsWith(theirs []netip.Prefix, otherKind, otherOwner string) []overlap {
	var result []overlap
	for kind, ours := range map[string][]netip.Prefix{"pod CIDR": r.pods, "node CIDR": r.nodes} {
		for _, a := range ours {
			for _, b := range theirs {
				if a.Overlaps(b) {
					result = append(result, overlap{a, b, kind, otherKind, otherOwner})
				}
			}
		}
	}
	slices.SortFunc(result, func(a, b overlap) int { return strings.Compare(a.String(), b.String()) })
	return result
}

// compact returns the prefixes sorted, without those that another one contains.
func compact(prefixes []netip.Prefix) []netip.Prefix {
	sorted := slices.Clone(prefixes)
	slices.SortFunc(sorted, func(a, b netip.Prefix) int {
		if a.Addr() != b.Addr() {
			return a.Addr().Compare(b.Addr())
		}
		return a.Bits() - b.Bits()
	})
	var result []netip.Prefix
	for _, p := range sorted {
		if n := len(result); n == 0 || !result[n-1].Overlaps(p) {
			result = append(result, p)
		}
	}
	return result
}

// notCovered returns the prefixes that none of the others contains.
func notCovered(prefixes, others []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(prefixes), func(p netip.Prefix) bool {
		return slices.ContainsFunc(others, func(o netip.Prefix) bool { return o.Bits() <= p.Bits() && o.Contains(p.Addr()) })
	})
}

// commas returns prefixes as the value of a flag.
func commas(prefixes []netip.Prefix) string {
	texts := make([]string, 0, len(prefixes))
	for _, p := range prefixes {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, ",")
}

// list returns prefixes for a message, and of many only the first ones.
func list(prefixes []netip.Prefix) string {
	const shown = 8
	texts := make([]string, 0, len(prefixes))
	for _, p := range prefixes[:min(shown, len(prefixes))] {
		texts = append(texts, p.String())
	}
	if more := len(prefixes) - shown; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, ", ")
}
