// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// policy is a ClusterServiceAccessPolicy.
type policy struct {
	name       string
	priority   int32
	namespaces labels.Selector
	services   []string
	peers      []peer
	step       step
}

// grant is a ServiceExportGrant.
type grant struct {
	exports []string
	to      []peer
	rule    string
	object  *corev1.ObjectReference
}

// peer matches clients. Empty lists match all; there are accounts only with namespaces. properties are those that a cluster must have.
type peer struct {
	clusters, namespaces, accounts []string
	properties                     map[string]policyv1alpha1.PropertyValue
}

// Objects are the objects that Rules are made of.
type Objects struct {
	Policies []policyv1alpha1.ClusterServiceAccessPolicy
	Grants   []policyv1alpha1.ServiceExportGrant
	// Namespaces are the labels of this cluster's namespaces.
	Namespaces map[string]labels.Set
	// Properties are those of the other clusters. A cluster without an entry is not known.
	Properties Properties
}

// Properties are the properties of clusters (A5).
type Properties map[clusterset.ClusterID]map[string]string

// match reports whether a cluster has properties, and whether that is known.
func (p Properties) match(id clusterset.ClusterID, want map[string]policyv1alpha1.PropertyValue) (matches, known bool) {
	if len(want) == 0 {
		return true, true
	}
	properties, known := p[id]
	for name, value := range want {
		if properties[name] != string(value) {
			return false, known
		}
	}
	return known, known
}

// New returns the rules of one direction, and which objects are not valid. A policy that is not valid denies whatever it may be about,
// unless it would accept: then it is left out.
func New(direction policyv1alpha1.Direction, objects Objects) (*Rules, error) {
	r := &Rules{namespaces: objects.Namespaces, properties: objects.Properties, grants: map[string][]grant{}, chains: map[chainKey]chain{}}
	var invalid []error
	for i := range objects.Policies {
		spec := &objects.Policies[i].Spec
		if spec.Direction != direction {
			continue
		}
		p, err := newPolicy(&objects.Policies[i])
		if err != nil {
			invalid = append(invalid, err)
			if spec.Action == policyv1alpha1.ActionAccept {
				continue
			}
			p.step.pass = false
		}
		if spec.Tier == policyv1alpha1.TierAdmin {
			r.admin = append(r.admin, p)
		} else {
			r.baseline = append(r.baseline, p)
		}
	}
	slices.SortFunc(r.admin, comparePolicies)
	slices.SortFunc(r.baseline, comparePolicies)
	if direction == policyv1alpha1.DirectionExport {
		for i := range objects.Grants {
			g := &objects.Grants[i]
			r.grants[g.Namespace] = append(r.grants[g.Namespace], grant{
				exports: strings(g.Spec.Exports), to: peersOf(g.Spec.To), rule: ruleOf(g), object: reference("ServiceExportGrant", g),
			})
		}
		for _, grants := range r.grants {
			slices.SortFunc(grants, func(a, b grant) int { return cmp.Compare(a.rule, b.rule) })
		}
	}
	return r, errors.Join(invalid...)
}

// Check returns why a policy is not valid; nil if it is.
func Check(object *policyv1alpha1.ClusterServiceAccessPolicy) error {
	_, err := newPolicy(object)
	return err
}

// Concerns reports whether clients of a cluster can match peers. Without peers, all clients match.
func Concerns(peers []policyv1alpha1.Peer, id clusterset.ClusterID, properties Properties) bool {
	return len(peers) == 0 || slices.ContainsFunc(peersOf(peers), func(p peer) bool {
		matches, known := properties.match(id, p.properties)
		return containsOrEmpty(p.clusters, string(id)) && (matches || !known)
	})
}

// newPolicy returns a policy. If it is not valid, the result selects all namespaces.
func newPolicy(object *policyv1alpha1.ClusterServiceAccessPolicy) (policy, error) {
	spec := &object.Spec
	p := policy{
		name: object.Name, priority: spec.Priority, namespaces: labels.Everything(), services: strings(spec.Services), peers: peersOf(spec.Peers),
		step: step{
			verdict: Verdict{
				Allowed: spec.Action == policyv1alpha1.ActionAccept, Rule: "ClusterServiceAccessPolicy " + object.Name,
				Object: reference("ClusterServiceAccessPolicy", object),
			},
			pass: spec.Action == policyv1alpha1.ActionPass,
		},
	}
	if spec.NamespaceSelector == nil {
		return p, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.NamespaceSelector)
	if err != nil {
		return p, fmt.Errorf("ClusterServiceAccessPolicy %s: spec.namespaceSelector: %w", object.Name, err)
	}
	p.namespaces = selector
	return p, nil
}

// reference returns a reference to a grant or a policy.
func reference(kind string, object metav1.Object) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: policyv1alpha1.GroupVersion.String(), Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
	}
}

// comparePolicies orders the policies of a tier. Of equal priority, those that deny come first, and those that accept last.
func comparePolicies(a, b policy) int {
	return cmp.Or(cmp.Compare(a.priority, b.priority), cmp.Compare(a.actionOrder(), b.actionOrder()), cmp.Compare(a.name, b.name))
}

func (p policy) actionOrder() int {
	switch {
	case p.step.pass:
		return 1
	case p.step.verdict.Allowed:
		return 2
	}
	return 0
}

func peersOf(peers []policyv1alpha1.Peer) []peer {
	var result []peer
	for _, p := range peers {
		converted := peer{clusters: strings(p.Clusters), namespaces: strings(p.Namespaces), accounts: strings(p.ServiceAccounts)}
		if p.PropertySelector != nil {
			converted.properties = p.PropertySelector.MatchProperties
		}
		result = append(result, converted)
	}
	return result
}

func strings[T ~string](list []T) []string {
	var result []string
	for _, s := range list {
		result = append(result, string(s))
	}
	return result
}
