// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package policystatus

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// missingOfGrant returns what a grant names and nothing has. The namespaces and accounts of its clients are in other clusters, which this
// cluster does not know.
func (v accessView) missingOfGrant(g *policyv1alpha1.ServiceExportGrant) conditions.Missing {
	result := v.missingClusters(g.Spec.To)
	for _, name := range g.Spec.Exports {
		if !v.exports[types.NamespacedName{Namespace: g.Namespace, Name: string(name)}] {
			result.Exports = append(result.Exports, string(name))
		}
	}
	return result
}

// missingOfPolicy returns what a policy names and nothing has. If the direction is Import, its clients are in this cluster.
func (v accessView) missingOfPolicy(p *policyv1alpha1.ClusterServiceAccessPolicy) conditions.Missing {
	result := v.missingClusters(p.Spec.Peers)
	services := v.exports
	if p.Spec.Direction == policyv1alpha1.DirectionImport {
		services = v.imports
		for _, peer := range p.Spec.Peers {
			for _, name := range peer.Namespaces {
				if _, exists := v.objects.Namespaces[string(name)]; !exists {
					result.Namespaces = append(result.Namespaces, string(name))
				}
			}
		}
	}
	namespaces := v.selected(p)
	result.NoNamespace = p.Spec.NamespaceSelector != nil && len(namespaces) == 0
	for _, name := range p.Spec.Services {
		if !slices.ContainsFunc(namespaces, func(n string) bool { return services[types.NamespacedName{Namespace: n, Name: string(name)}] }) {
			result.Services = append(result.Services, string(name))
		}
	}
	return result
}

// selected returns the namespaces that a policy selects: all if its selector is not valid, because it is reported otherwise.
func (v accessView) selected(p *policyv1alpha1.ClusterServiceAccessPolicy) []string {
	selector := labels.Everything()
	if p.Spec.NamespaceSelector != nil && access.Check(p) == nil {
		selector, _ = metav1.LabelSelectorAsSelector(p.Spec.NamespaceSelector)
	}
	var result []string
	for name, all := range v.objects.Namespaces {
		if selector.Matches(all) {
			result = append(result, name)
		}
	}
	return result
}

// missingClusters returns the clusters that peers name and that are no members, and the properties that no other member has. In a peer with
// both, one of its clusters must have the properties.
func (v accessView) missingClusters(peers []policyv1alpha1.Peer) conditions.Missing {
	if !v.synced {
		return conditions.Missing{Unread: namesClusters(peers)}
	}
	var result conditions.Missing
	for i, peer := range peers {
		for _, id := range peer.Clusters {
			if _, isMember := v.members[clusterset.ClusterID(id)]; !isMember {
				result.Clusters = append(result.Clusters, string(id))
			}
		}
		matches := func(id clusterset.ClusterID) bool {
			return id != v.own && access.Concerns(peers[i:i+1], id, v.objects.Properties)
		}
		if peer.PropertySelector != nil && !slices.ContainsFunc(slices.Collect(maps.Keys(v.members)), matches) {
			result.Properties = append(result.Properties, describeProperties(peer.PropertySelector.MatchProperties))
		}
	}
	return result
}

// namesClusters reports whether it depends on the members whether peers match any client.
func namesClusters(peers []policyv1alpha1.Peer) bool {
	return slices.ContainsFunc(peers, func(p policyv1alpha1.Peer) bool { return len(p.Clusters) > 0 || p.PropertySelector != nil })
}

func describeProperties(properties map[string]policyv1alpha1.PropertyValue) string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		texts = append(texts, fmt.Sprintf("%s=%s", name, properties[name]))
	}
	return strings.Join(texts, " and ")
}

// isKept reports whether the condition Accepted stays as it is: it depends on the members, which are not known, and is about this generation.
func (v accessView) isKept(peers []policyv1alpha1.Peer, existing []metav1.Condition, generation int64) bool {
	accepted := meta.FindStatusCondition(existing, policyv1alpha1.ConditionAccepted)
	return !v.synced && namesClusters(peers) && accepted != nil && accepted.ObservedGeneration == generation
}
