// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"net/netip"

	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// minMember is the oldest Kubernetes that can be a member: the kinds' schemas use rules that came with it.
var minMember = version.MustParseGeneric("1.30")

// maxNodeRanges is how many the hub's schema admits.
const maxNodeRanges = 64

// check looks at everything that could be wrong. Its error says that it could not look; what is wrong is reported.
func (j *joining) check(ctx context.Context) error {
	if !j.checkHub(ctx) {
		return nil // without a hub there is nothing to compare with
	}
	if j.member.version.LessThan(minMember) {
		j.r.failf("Kubernetes %s is too old for a member: it needs %s", j.member.version, minMember)
	}
	var err error
	if j.uid, err = clusterUID(ctx, j.member); err != nil {
		return err
	}
	for _, look := range []func(context.Context) error{j.checkRuntime, j.checkIdentity, j.checkAdmission, j.checkDefinitions, j.checkRanges, j.checkOverlaps, j.checkWay} {
		if err := look(ctx); err != nil {
			return err
		}
	}
	if j.r.failed > 0 {
		return nil
	}
	return j.checkInside(ctx) // it starts a pod: last, and only if it is worth it
}

func (j *joining) checkHub(ctx context.Context) bool {
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

// checkRuntime takes what is not set from what runs already.
func (j *joining) checkRuntime(ctx context.Context) error {
	agent, err := installed(ctx, j.member, manifests.AgentDeployment)
	if err != nil {
		return err
	}
	dns, err := installed(ctx, j.member, manifests.DNSDeployment)
	if err != nil {
		return err
	}
	j.remember(agent, dns)
	return nil
}

func (j *joining) checkDefinitions(ctx context.Context) error {
	var err error
	j.definitions, err = checkMemberDefinitions(ctx, j.member, keep, j.r)
	return err
}

// checkAdmission finds out whether the ID is free on the hub, or ours already (K2).
func (j *joining) checkAdmission(ctx context.Context) error {
	if j.id == "" {
		return nil
	}
	member := &hubv1alpha1.Member{}
	err := j.hub.client.Get(ctx, client.ObjectKey{Namespace: j.id.HubNamespace(), Name: hubv1alpha1.MemberName}, member)
	switch {
	case isAbsentKind(err):
		j.r.okf("cluster ID %q is free", j.id)
		return nil
	case err != nil:
		return fmt.Errorf("get Member of %s on the hub: %w", j.id, err)
	}
	j.admitted = member
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
	case "":
		j.r.okf("cluster ID %q has been admitted by hand, and no agent has used it yet", j.id)
	default:
		j.r.failf("cluster ID %q is another cluster's (its kube-system has the UID %s, this one's %s): pass another --cluster-id; "+
			"or, if that cluster is gone for good, run \"kubectl clusterset leave --from hub --cluster-id %s\" first", j.id, holder, j.uid, j.id)
	}
	return nil
}

// checkRanges finds the cluster's addresses: as given, else what the hub has already and what the cluster shows.
func (j *joining) checkRanges(ctx context.Context) error {
	var known ranges
	if j.admitted != nil {
		known = rangesOf(j.admitted.Spec)
	}
	for _, part := range []struct {
		name, flag string
		given      []netip.Prefix
		known      []netip.Prefix
		look       source
		into       *[]netip.Prefix
	}{
		{"pod CIDRs", "--pod-cidrs", j.given.pods, known.pods, podRanges, &j.own.pods},
		{"node CIDRs", "--node-cidrs", j.given.nodes, known.nodes, nodeRanges, &j.own.nodes},
		{"service CIDRs", "--service-cidrs", j.given.services, known.services, serviceRanges, &j.own.services},
	} {
		if len(part.given) > 0 {
			*part.into = part.given
			j.r.okf("%s %s (%s)", part.name, list(part.given), part.flag)
			continue
		}
		found, err := part.look(ctx, j.member)
		if err != nil {
			return err
		}
		if len(part.known) > 0 {
			found = finding{compact(append(found.prefixes, part.known...)), "as on the hub already"}
		}
		*part.into = found.prefixes
		switch {
		case len(found.prefixes) == 0 && part.name == "node CIDRs":
			j.r.notef("no node has an address yet: pods on the nodes' network cannot be exported until you run this again, or pass --node-cidrs")
		case len(found.prefixes) == 0:
			j.r.failf("the %s cannot be found in this cluster: pass %s", part.name, part.flag)
		default:
			j.r.okf("%s %s (%s)", part.name, list(found.prefixes), found.where)
		}
	}
	if len(j.own.nodes) > maxNodeRanges {
		j.r.failf("%d node addresses are more than the %d ranges that a member may have: pass --node-cidrs with the networks that the nodes are in", len(j.own.nodes), maxNodeRanges)
	}
	cidrs, err := serviceCIDRs(ctx, j.member)
	j.knowsService = len(cidrs.prefixes) > 0
	return err
}

// checkOverlaps compares the addresses with those of all other members.
func (j *joining) checkOverlaps(ctx context.Context) error {
	members := &hubv1alpha1.MemberList{}
	if err := j.hub.client.List(ctx, members); err != nil {
		return fmt.Errorf("list the members on the hub: %w", err)
	}
	others := map[clusterset.ClusterID]ranges{}
	for _, member := range members.Items {
		if id, ok := clusterset.ClusterIDOfHubNamespace(member.Namespace); ok && id != j.id {
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
		j.r.okf("no pod or node address overlaps with one of the %d other members", len(others))
	}
	return nil
}
