// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/record"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// minMember is the oldest Kubernetes version of a member: the schemas of the kinds use validation rules of this version.
var minMember = version.MustParseGeneric("1.30")

// maxNodeRanges is the maximum in the hub's schema.
const maxNodeRanges = 64

// check runs all checks, and reports the failed ones. It returns an error if a check cannot run.
func (j *joinCommand) check(ctx context.Context) error {
	if !j.checkHub(ctx) {
		return nil // the other checks need the hub
	}
	if j.member.version.LessThan(minMember) {
		j.r.failf("Kubernetes %s is too old for a member: it needs %s", j.member.version, minMember)
	}
	var err error
	if j.uid, err = clusterUID(ctx, j.member); err != nil {
		return err
	}
	for _, run := range []func(context.Context) error{j.checkRuntime, j.checkVersion, j.checkIdentity, j.checkAdmission, j.checkDefinitions, j.checkRanges, j.checkOverlaps, j.checkGateway, j.checkHubAddress} {
		if err := run(ctx); err != nil {
			return err
		}
	}
	if j.r.failed > 0 {
		return nil
	}
	return j.checkInside(ctx) // last, because it starts a pod
}

func (j *joinCommand) checkHub(ctx context.Context) bool {
	if j.invited != nil {
		return j.checkInvitation(ctx)
	}
	err := j.hub.client.List(ctx, &hubv1alpha1.MemberList{}, client.Limit(1))
	switch {
	case isAbsentKind(err):
		j.r.failf("%s is no hub yet: run \"kubectl clusterset init-hub\" with its context first", j.hub.config.Host)
	case err != nil:
		j.r.failf("cannot read the members on the hub (%v): you need an administrator's rights there", err)
	default:
		j.r.okf("Kubernetes %s at %s is a hub", j.hub.version, j.hub.config.Host)
	}
	return err == nil
}

// checkRuntime sets what the flags do not set: from the existing Deployments, else the images of this release.
func (j *joinCommand) checkRuntime(ctx context.Context) error {
	if err := j.read(ctx, j.member); err != nil {
		return err
	}
	j.gateway = j.gatewayFlag
	if !j.gatewayGiven {
		j.gateway = j.running[manifests.GatewayDeployment] != nil
	}
	j.autoExport = j.autoExports()
	j.checkInstaller()
	j.gatewayType = corev1.ServiceType(j.gatewayServiceType)
	j.setDefaults()
	j.keepImages()
	if j.installedBy() != "" {
		return nil
	}
	if err := j.completeImages(); err != nil {
		j.r.failf("%v", err)
	}
	return nil
}

// checkVersion fails if a new member would be newer than its hub. A member that joins again keeps its version.
func (j *joinCommand) checkVersion(ctx context.Context) error {
	if j.agent() == nil {
		version, err := j.hubVersion(ctx)
		checkSkew(j.build.Version, version, err, j.r)
	}
	return nil
}

func (j *joinCommand) checkDefinitions(ctx context.Context) error {
	if j.installedBy() != "" {
		return nil
	}
	var err error
	j.definitions, err = checkMemberDefinitions(ctx, j.member, keepDefinitions, j.r)
	return err
}

// checkAdmission checks that the cluster ID is free on the hub, or is that of this cluster (K2).
func (j *joinCommand) checkAdmission(ctx context.Context) error {
	if j.id == "" {
		return nil
	}
	member, err := j.memberOnHub(ctx, j.id)
	switch {
	case err != nil:
		return fmt.Errorf("get Member of %s on the hub: %w", j.id, err)
	case member == nil:
		j.r.okf("cluster ID %q is free", j.id)
		return nil
	}
	j.admitted = member
	if member.Spec.Suspended {
		j.r.failf("%s", suspendedMember(j.id))
	}
	holder := member.Annotations[annotationClusterUID]
	beat, err := j.heartbeat(ctx)
	if err != nil {
		return err
	}
	if beat != nil {
		holder = beat.Spec.ClusterUID
	}
	switch holder {
	case j.uid:
		j.r.okf("cluster ID %q is this cluster's already", j.id)
		return j.checkCopy(ctx, beat)
	case "":
		j.r.okf("cluster ID %q has been admitted by hand, and no agent has used it yet", j.id)
	default:
		j.r.failf("cluster ID %q is another cluster's (its kube-system has the UID %s, this one's %s): pass another --cluster-id; "+
			"or, if that cluster no longer exists, run \"kubectl clusterset leave --from hub --cluster-id %s\" first", j.id, holder, j.uid, j.id)
	}
	return nil
}

// suspendedMember returns what to do about a suspended Member: join does not undo the suspension by an administrator, or by a
// leave that was interrupted.
func suspendedMember(id clusterset.ClusterID) string {
	return fmt.Sprintf("cluster ID %q is suspended on the hub, so no member imports its services: if \"kubectl clusterset leave\" was interrupted, run it again "+
		"and then join; to keep the member, run, with the hub's context, \"kubectl --namespace %s patch member/%s --type merge --patch '{\"spec\":{\"suspended\":false}}'\" and then join",
		id, id.HubNamespace(), hubv1alpha1.MemberName)
}

// rangeKind is one kind of a cluster's address ranges.
type rangeKind struct {
	name, flag string
	given      []netip.Prefix
	// onHub are the ranges on the hub. If fixed is true, ranges that are found in the cluster are not added to them.
	onHub  []netip.Prefix
	fixed  bool
	find   source
	target *[]netip.Prefix
}

// rangeKinds returns all kinds. The pod and node ranges of an existing Member are only changed by flags, because they are rights.
// Service ranges grant no right, so they are read from the cluster if the hub has none.
func (j *joinCommand) rangeKinds() []rangeKind {
	var known ranges
	isMember := j.admitted != nil
	if isMember {
		known = rangesOf(j.admitted.Spec)
	}
	return []rangeKind{
		{"pod CIDRs", "--pod-cidrs", j.given.pods, known.pods, isMember, podRanges, &j.own.pods},
		{"node CIDRs", "--node-cidrs", j.given.nodes, known.nodes, isMember, nodeRanges, &j.own.nodes},
		{"service CIDRs", "--service-cidrs", j.given.services, known.services, len(known.services) > 0, serviceRanges, &j.own.services},
	}
}

// checkRanges sets the cluster's address ranges.
func (j *joinCommand) checkRanges(ctx context.Context) error {
	for _, kind := range j.rangeKinds() {
		if err := j.checkRange(ctx, kind); err != nil {
			return err
		}
	}
	if len(j.own.nodes) > maxNodeRanges {
		j.r.failf("%d node addresses are more than the %d ranges that a member may have: pass --node-cidrs with the networks that the nodes are in", len(j.own.nodes), maxNodeRanges)
	}
	cidrs, err := serviceCIDRs(ctx, j.member)
	j.hasServiceCIDRs = len(cidrs.prefixes) > 0
	return err
}

// checkRange sets the ranges of one kind: from the flag, else as on the hub, else as found in the cluster. Ranges that are found
// but not on the hub are reported and not added: a cluster must not extend its own rights.
func (j *joinCommand) checkRange(ctx context.Context, kind rangeKind) error {
	if len(kind.given) > 0 {
		*kind.target = kind.given
		j.r.okf("%s %s (%s)", kind.name, list(kind.given), kind.flag)
		return nil
	}
	found, err := kind.find(ctx, j.member)
	if err != nil {
		return err
	}
	taken := found
	if kind.fixed {
		taken = finding{kind.onHub, "as on the hub already"}
	}
	*kind.target = taken.prefixes
	advice := "pass " + kind.flag
	if j.invited != nil {
		advice = `let the hub's administrator run "kubectl clusterset invite" again with ` + kind.flag
	}
	switch {
	case len(taken.prefixes) > 0:
		j.r.okf("%s %s (%s)", kind.name, list(taken.prefixes), taken.where)
	case kind.flag != "--node-cidrs":
		j.r.failf("the %s cannot be found in this cluster: %s", kind.name, advice)
	case len(found.prefixes) == 0:
		j.r.notef("no node has an address yet, so pods on the nodes' network cannot be exported: when it has one, %s", advice)
	}
	if more := notCovered(found.prefixes, taken.prefixes); len(more) > 0 {
		j.r.notef("%s %s of this cluster are not on the hub, and are not added unasked: %s %s to admit them",
			kind.name, list(more), advice, commas(compact(slices.Concat(taken.prefixes, more))))
	}
	return nil
}

// checkOverlaps compares the addresses with those of the other members of the same network. With an invitation, invite has compared them,
// and the command has no right to.
func (j *joinCommand) checkOverlaps(ctx context.Context) error {
	if j.invited != nil {
		return nil
	}
	members := &hubv1alpha1.MemberList{}
	if err := j.hub.client.List(ctx, members); err != nil {
		return fmt.Errorf("list the members on the hub: %w", err)
	}
	others := map[clusterset.ClusterID]ranges{}
	own := record.NetworkOf(&hubv1alpha1.Member{Spec: j.networkOf(j.admitted, nil)})
	for i := range members.Items {
		member := &members.Items[i]
		id, ok := clusterset.ClusterIDOfHubNamespace(member.Namespace)
		if !ok || id == j.id {
			continue
		}
		network := record.NetworkOf(member)
		j.others = append(j.others, network)
		if network == own {
			others[id] = rangesOf(member.Spec)
		}
	}
	found := overlaps(j.own, others)
	for _, o := range found {
		if j.allowOverlap {
			j.r.notef("%s", o)
		} else {
			j.r.failf("%s: packets may go to the wrong cluster; change the addresses, correct the flags, or pass --allow-overlap if you know better", o)
		}
	}
	if len(found) == 0 {
		j.r.okf("no pod or node address overlaps with one of the %d other members of the same network", len(others))
	}
	return nil
}
