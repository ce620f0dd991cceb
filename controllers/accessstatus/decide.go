// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package accessstatus

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tombolo-mcs/tombolo/pkg/access"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/conditions"
	"github.com/tombolo-mcs/tombolo/pkg/route"
)

// view is what the controller decides on.
type view struct {
	objects access.Objects
	// exports has the keys of all ServiceExports.
	exports     map[types.NamespacedName]bool
	own         clusterset.ClusterID
	hasGateways bool
	// synced is set if members has all members. Otherwise the condition Enforced stays as it is.
	synced  bool
	members map[clusterset.ClusterID]route.Cluster
}

// ofGrant returns the conditions of a grant. A grant is about all members: those that it does not name are denied.
func (v view) ofGrant(g *policyv1alpha1.ServiceExportGrant) []metav1.Condition {
	var missing []policyv1alpha1.ObjectName
	for _, name := range g.Spec.Exports {
		if !v.exports[types.NamespacedName{Namespace: g.Namespace, Name: string(name)}] {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	return v.withEnforced(conditions.GrantAccepted(missing), policyv1alpha1.DirectionExport, nil)
}

// ofPolicy returns the conditions of a policy.
func (v view) ofPolicy(p *policyv1alpha1.ClusterServiceAccessPolicy) []metav1.Condition {
	return v.withEnforced(conditions.PolicyAccepted(p.Spec.Action, access.Check(p)), p.Spec.Direction, p.Spec.Peers)
}

// withEnforced adds the condition Enforced of a rule about peers.
func (v view) withEnforced(accepted metav1.Condition, direction policyv1alpha1.Direction, peers []policyv1alpha1.Peer) []metav1.Condition {
	if !v.synced && v.hasGateways {
		return []metav1.Condition{accepted}
	}
	e := conditions.Enforcement{HasGateways: v.hasGateways}
	for _, id := range slices.Sorted(maps.Keys(v.members)) {
		importer, exporter := v.members[v.own], v.members[id]
		if direction == policyv1alpha1.DirectionExport {
			importer, exporter = exporter, importer
		}
		switch {
		case id == v.own || !access.Concerns(peers, id, v.objects.Properties):
		case route.IsDirect(importer, exporter):
			e.Direct = append(e.Direct, id)
		default:
			e.ThroughGateways = append(e.ThroughGateways, id)
		}
	}
	return []metav1.Condition{accepted, conditions.Enforced(e)}
}
