// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"net/netip"
	"slices"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/ranges"
)

// maxNodeRanges is the maximum in the hub's schema.
const maxNodeRanges = 64

// rangeKind is one kind of a cluster's address ranges.
type rangeKind struct {
	name, flag string
	given      []netip.Prefix
	// onHub are the ranges on the hub. If fixed is true, ranges that are found in the cluster are not added to them.
	onHub  []netip.Prefix
	fixed  bool
	find   ranges.Source
	target *[]netip.Prefix
}

// rangeKinds returns all kinds. The pod and node ranges of an existing Member are only changed by flags, because they are rights.
// Service ranges grant no right, so they are read from the cluster if the hub has none.
func (j *command) rangeKinds() []rangeKind {
	var known ranges.Set
	isMember := j.Admitted != nil
	if isMember {
		known = ranges.Of(j.Admitted.Spec)
	}
	return []rangeKind{
		{"pod CIDRs", "--pod-cidrs", j.Given.Pods, known.Pods, isMember, ranges.Pods, &j.Own.Pods},
		{"node CIDRs", "--node-cidrs", j.Given.Nodes, known.Nodes, isMember, ranges.Nodes, &j.Own.Nodes},
		{"service CIDRs", "--service-cidrs", j.Given.Services, known.Services, len(known.Services) > 0, ranges.Services, &j.Own.Services},
	}
}

// checkRanges sets the cluster's address ranges.
func (j *command) checkRanges(ctx context.Context) error {
	for _, kind := range j.rangeKinds() {
		if err := j.checkRange(ctx, kind); err != nil {
			return err
		}
	}
	if len(j.Own.Nodes) > maxNodeRanges {
		j.r.Failf("%d node addresses are more than the %d ranges that a member may have: pass --node-cidrs with the networks that the nodes are in", len(j.Own.Nodes), maxNodeRanges)
	}
	cidrs, err := ranges.ServiceCIDRs(ctx, j.member)
	j.hasServiceCIDRs = len(cidrs.Prefixes) > 0
	return err
}

// checkRange sets the ranges of one kind: from the flag, else as on the hub, else as found in the cluster. Ranges that are found
// but not on the hub are reported and not added: a cluster must not extend its own rights.
func (j *command) checkRange(ctx context.Context, kind rangeKind) error {
	if len(kind.given) > 0 {
		*kind.target = kind.given
		j.r.Okf("%s %s (%s)", kind.name, ranges.List(kind.given), kind.flag)
		return nil
	}
	found, err := kind.find(ctx, j.member)
	if err != nil {
		return err
	}
	taken := found
	if kind.fixed {
		taken = ranges.Finding{Prefixes: kind.onHub, Where: "as on the hub already"}
	}
	*kind.target = taken.Prefixes
	advice := "pass " + kind.flag
	if j.invited != nil {
		advice = `let the hub's administrator run "kubectl clusterset invite" again with ` + kind.flag
	}
	switch {
	case len(taken.Prefixes) > 0:
		j.r.Okf("%s %s (%s)", kind.name, ranges.List(taken.Prefixes), taken.Where)
	case kind.flag != "--node-cidrs":
		j.r.Failf("the %s cannot be found in this cluster: %s", kind.name, advice)
	case len(found.Prefixes) == 0:
		j.r.Notef("no node has an address yet, so pods on the nodes' network cannot be exported: when it has one, %s", advice)
	}
	if more := ranges.NotCovered(found.Prefixes, taken.Prefixes); len(more) > 0 {
		j.r.Notef("%s %s of this cluster are not on the hub, and are not added unasked: %s %s to admit them",
			kind.name, ranges.List(more), advice, ranges.Commas(ranges.Compact(slices.Concat(taken.Prefixes, more))))
	}
	return nil
}

// checkOthers compares the addresses with those of the other members. With an invitation, invite has compared them, and the command has no right
// to.
func (j *command) checkOthers(ctx context.Context) error {
	if j.invited != nil {
		return nil
	}
	return j.CheckOverlaps(ctx)
}
