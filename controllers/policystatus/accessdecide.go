// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// accessView is what the controller decides on.
type accessView struct {
	objects access.Objects
	// exports has the keys of all ServiceExports. imports has those of all ServiceImports, if a policy names services that are imported.
	exports     map[types.NamespacedName]bool
	imports     map[types.NamespacedName]bool
	own         clusterset.ClusterID
	hasGateways bool
	// synced is set if members has all members. Otherwise the conditions that depend on them stay as they are.
	synced  bool
	members map[clusterset.ClusterID]reach.Cluster
}

// ofGrant returns the conditions of a grant. A grant is about all members: those that it does not name are denied.
func (v accessView) ofGrant(g *policyv1alpha1.ServiceExportGrant) []metav1.Condition {
	var accepted []metav1.Condition
	if !v.isKept(g.Spec.To, g.Status.Conditions, g.Generation) {
		accepted = append(accepted, conditions.GrantAccepted(v.missingOfGrant(g)))
	}
	return v.withEnforced(accepted, policyv1alpha1.DirectionExport, nil)
}

// ofPolicy returns the conditions of a policy.
func (v accessView) ofPolicy(p *policyv1alpha1.ClusterServiceAccessPolicy) []metav1.Condition {
	var accepted []metav1.Condition
	if !v.isKept(p.Spec.Peers, p.Status.Conditions, p.Generation) {
		accepted = append(accepted, conditions.PolicyAccepted(p.Spec.Action, access.Check(p), v.missingOfPolicy(p)))
	}
	return v.withEnforced(accepted, p.Spec.Direction, p.Spec.Peers)
}

// withEnforced adds the condition Enforced of a rule about peers.
func (v accessView) withEnforced(accepted []metav1.Condition, direction policyv1alpha1.Direction, peers []policyv1alpha1.Peer) []metav1.Condition {
	if !v.synced && v.hasGateways {
		return accepted
	}
	e := conditions.Enforcement{HasGateways: v.hasGateways}
	for _, id := range slices.Sorted(maps.Keys(v.members)) {
		importer, exporter := v.members[v.own], v.members[id]
		if direction == policyv1alpha1.DirectionExport {
			importer, exporter = exporter, importer
		}
		switch {
		case id == v.own || !access.Concerns(peers, id, v.objects.Properties):
		case reach.IsDirect(importer, exporter):
			e.Direct = append(e.Direct, id)
		default:
			e.ThroughGateways = append(e.ThroughGateways, id)
		}
	}
	return append(accepted, conditions.Enforced(e))
}
