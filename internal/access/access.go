// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package access decides who may use a service: (client, service, rules) -> (verdict, rule). Both clusters of a connection decide, each
// by its own rules (A1, A2). It is pure.
package access

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Client is who wants to use a service.
type Client struct {
	// Cluster is the cluster at the other end: the client's if a service is exported, the exporter's if it is imported.
	Cluster clusterset.ClusterID
	// Namespace and ServiceAccount are those of the client's pod; empty if the client is unknown.
	Namespace, ServiceAccount string
}

// Service is what a client wants to use.
type Service struct {
	Key clusterset.ServiceKey
	// GrantedOnly is set if no client may use the export unless a ServiceExportGrant selects it.
	GrantedOnly bool
}

// Verdict says whether a client may use a service, and which rule decides.
type Verdict struct {
	Allowed bool
	// Rule is the kind and the name of the object that decides, or why no object does.
	Rule string
	// Object is what an Event about the verdict belongs to: the object that decides, or a grant or the ServiceExport because of which the
	// client is denied; nil if there is none. It must not be changed. That of a ServiceExport has no UID.
	Object *corev1.ObjectReference
}

// The rules that are no objects.
const (
	// NoRule accepts what no rule decides.
	NoRule = "no rule"
	// NotGranted denies clients that no grant of an export names.
	NotGranted = "no ServiceExportGrant names the client"
	// GrantedOnly denies an export that no grant selects, because of its annotation.
	GrantedOnly = "the ServiceExport is for granted clients only"
	// NamespaceUnknown denies while the cluster does not know the namespace of the service.
	NamespaceUnknown = "the namespace of the service is not known"
)

// Rules are the rules of one cluster for one direction, which New returns.
type Rules struct {
	admin, baseline []policy
	grants          map[string][]grant // by namespace
	namespaces      map[string]labels.Set
	properties      Properties

	mu     sync.RWMutex
	chains map[chainKey]chain // computed when they are first used
}

// Decide returns whether a client may use a service.
func (r *Rules) Decide(service Service, client Client) Verdict {
	c := r.chain(chainKey{service, client.Cluster, client.Namespace})
	for i := 0; i < len(c); {
		step := &c[i]
		switch {
		case !containsOrEmpty(step.accounts, client.ServiceAccount):
			i++
		case step.pass:
			i = step.next
		default:
			return step.verdict
		}
	}
	return Verdict{Allowed: true, Rule: NoRule}
}

// chainKey is what a chain is computed for.
type chainKey struct {
	service   Service
	cluster   clusterset.ClusterID
	namespace string // of the client
}

// chain are the steps for the clients of one namespace, or for unknown ones, in their order.
type chain []step

// step decides about the clients that it matches.
type step struct {
	// accounts are their service accounts; empty if they are all.
	accounts []string
	verdict  Verdict
	// pass is set if the decision is left to what comes after the tier, which begins at next.
	pass bool
	next int
}

// maxChains is the number of chains that are kept. Other clusters say of which namespaces their clients are.
const maxChains = 10_000

func (r *Rules) chain(key chainKey) chain {
	r.mu.RLock()
	known, ok := r.chains[key]
	r.mu.RUnlock()
	if ok {
		return known
	}
	computed := r.compute(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.chains) >= maxChains {
		clear(r.chains)
	}
	r.chains[key] = computed
	return computed
}

// compute returns the steps for a service and the clients of a cluster. A namespace that this cluster does not know has no clients: it
// may have been deleted.
func (r *Rules) compute(key chainKey) chain {
	labels, known := r.namespaces[key.service.Key.Namespace]
	if !known {
		return chain{{verdict: Verdict{Rule: NamespaceUnknown}}}
	}
	result := r.appendTier(nil, r.admin, key, labels)
	if result.decidesAll() {
		return result
	}
	var denied *step // what is left if no grant names the client
	for _, g := range r.grants[key.service.Key.Namespace] {
		if containsOrEmpty(g.exports, key.service.Key.Name) {
			if denied == nil {
				denied = &step{verdict: Verdict{Rule: NotGranted, Object: g.object}}
			}
			result = r.appendStep(result, g.to, key, step{verdict: Verdict{Allowed: true, Rule: g.rule, Object: g.object}})
		}
	}
	switch {
	case denied != nil:
		return append(result, *denied)
	case key.service.GrantedOnly:
		return append(result, step{verdict: Verdict{Rule: GrantedOnly, Object: &corev1.ObjectReference{
			APIVersion: mcsv1beta1.GroupVersion.String(), Kind: "ServiceExport", Namespace: key.service.Key.Namespace, Name: key.service.Key.Name,
		}}})
	}
	return r.appendTier(result, r.baseline, key, labels)
}

// decidesAll reports whether no client gets past the chain: the last step is about all, and no step passes.
func (c chain) decidesAll() bool {
	return len(c) > 0 && len(c[len(c)-1].accounts) == 0 && !slices.ContainsFunc(c, func(s step) bool { return s.pass })
}

// appendTier appends the steps of the policies of a tier that select a service, up to the first one about all clients.
func (r *Rules) appendTier(to chain, policies []policy, key chainKey, labels labels.Set) chain {
	begin := len(to)
	for _, p := range policies {
		if containsOrEmpty(p.services, key.service.Key.Name) && p.namespaces.Matches(labels) {
			to = r.appendStep(to, p.peers, key, p.step)
		}
		if len(to) > begin && len(to[len(to)-1].accounts) == 0 {
			break
		}
	}
	for i := range to[begin:] {
		to[begin+i].next = len(to)
	}
	return to
}

// appendStep appends a step if some of its peers are clients of the key. No peers are all clients. Of an unknown client, a peer with
// namespaces is none, unless the step denies (A3), and of a cluster whose properties are not known likewise one with properties.
func (r *Rules) appendStep(to chain, peers []peer, key chainKey, s step) chain {
	denies := !s.pass && !s.verdict.Allowed
	matches := len(peers) == 0
	for _, p := range peers {
		isUnknown := len(p.namespaces) > 0 && key.namespace == ""
		hasProperties, known := r.properties.match(key.cluster, p.properties)
		switch {
		case !containsOrEmpty(p.clusters, string(key.cluster)), !hasProperties && (known || !denies):
		case isUnknown && !denies, !isUnknown && !containsOrEmpty(p.namespaces, key.namespace):
		case isUnknown || len(p.accounts) == 0: // all of them
			s.accounts = nil
			return append(to, s)
		default:
			matches = true
			s.accounts = append(s.accounts, p.accounts...)
		}
	}
	if matches {
		return append(to, s)
	}
	return to
}

// containsOrEmpty reports whether a list contains a name; an empty list means all names.
func containsOrEmpty(list []string, name string) bool {
	return len(list) == 0 || slices.Contains(list, name)
}
