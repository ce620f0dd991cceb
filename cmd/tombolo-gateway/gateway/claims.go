// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// claims know where each listening port leads, by the slices of gateways. An event of a slice changes only the ports of that slice.
type claims struct {
	// changed is called when a slice of gateways has changed.
	changed func()

	mu     sync.Mutex
	slices map[client.ObjectKey][]claim
	ports  map[int32][]claim     // the oldest first
	leads  map[int32]ports.Owner // where the oldest claims lead
	// clusters counts the ports that lead to each cluster.
	clusters map[clusterset.ClusterID]int
	// invalid and refused are why slices, and claims of ports, are left out.
	invalid map[client.ObjectKey]error
	refused map[int32][]error
	// news are the ports of which leads has changed since the last call of take.
	news map[int32]ports.Owner
}

func newClaims(changed func()) *claims {
	return &claims{
		changed: changed, slices: map[client.ObjectKey][]claim{}, ports: map[int32][]claim{}, leads: map[int32]ports.Owner{},
		clusters: map[clusterset.ClusterID]int{}, invalid: map[client.ObjectKey]error{}, refused: map[int32][]error{}, news: map[int32]ports.Owner{},
	}
}

// claim is a listening port of a slice.
type claim struct {
	slice   client.ObjectKey
	created time.Time
	owner   ports.Owner
	number  int32
}

func (c claim) compare(other claim) int {
	return cmp.Or(c.created.Compare(other.created), cmp.Compare(c.slice.Namespace, other.slice.Namespace),
		cmp.Compare(c.slice.Name, other.slice.Name), cmp.Compare(c.owner.Port, other.owner.Port))
}

// observe notes the state of a slice, which is nil if it was deleted.
func (c *claims) observe(key client.ObjectKey, slice *discoveryv1.EndpointSlice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, was := c.slices[key]
	is := slice != nil && slice.Labels[clusterset.LabelGateway] == "true"
	if !was && !is {
		return
	}
	delete(c.slices, key)
	delete(c.invalid, key)
	for _, old := range before {
		c.ports[old.number] = slices.DeleteFunc(c.ports[old.number], func(other claim) bool { return other.compare(old) == 0 })
	}
	var now []claim
	if is {
		listen, err := render.ListeningPorts(slice)
		if err != nil {
			c.invalid[key] = fmt.Errorf("EndpointSlice %s is not as the agent has written it: %w", key, err)
		}
		for owner, number := range listen {
			added := claim{key, slice.CreationTimestamp.Time, owner, number}
			at, _ := slices.BinarySearchFunc(c.ports[number], added, claim.compare)
			c.ports[number] = slices.Insert(c.ports[number], at, added)
			now = append(now, added)
		}
		c.slices[key] = now
	}
	for _, claim := range slices.Concat(before, now) {
		c.decide(claim.number)
	}
	c.changed()
}

// decide notes where a port leads: where its oldest claim says (G2).
func (c *claims) decide(number int32) {
	all, owner := c.ports[number], ports.Owner{}
	delete(c.refused, number)
	switch {
	case len(all) == 0:
		delete(c.ports, number)
	case number < ports.First || number > ports.Last:
		c.refuse(number, fmt.Errorf("EndpointSlice %s has port %d, which is none of gateways", all[0].slice, number))
	default:
		owner = all[0].owner
	}
	for _, late := range all {
		if late.owner != all[0].owner {
			c.refuse(number, fmt.Errorf("EndpointSlice %s has port %d, which EndpointSlice %s had before", late.slice, number, all[0].slice))
		}
	}
	before, led := c.leads[number]
	if before == owner {
		return
	}
	if led {
		c.clusters[before.Cluster]--
		if c.clusters[before.Cluster] == 0 {
			delete(c.clusters, before.Cluster)
		}
		delete(c.leads, number)
	}
	if owner != (ports.Owner{}) {
		c.clusters[owner.Cluster]++
		c.leads[number] = owner
	}
	c.news[number] = owner
}

func (c *claims) refuse(number int32, err error) { c.refused[number] = append(c.refused[number], err) }

// take returns where the ports lead that have led elsewhere at the last call, or nowhere; the zero Owner for a port that leads nowhere now.
// The other results are to which clusters ports lead, and which slices and ports are left out, both sorted.
func (c *claims) take() (news map[int32]ports.Owner, clusters []clusterset.ClusterID, leftOut []error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	news, c.news = c.news, map[int32]ports.Owner{}
	for cluster := range c.clusters {
		clusters = append(clusters, cluster)
	}
	for _, err := range c.invalid {
		leftOut = append(leftOut, err)
	}
	for _, errs := range c.refused {
		leftOut = append(leftOut, errs...)
	}
	slices.Sort(clusters)
	slices.SortFunc(leftOut, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
	return news, clusters, leftOut
}
