// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"iter"
	"slices"
	"strings"
)

// service is a multi-cluster service. It is immutable and has no copies: its endpoints are those of the records.
type service struct {
	key serviceKey

	// Of ClusterSetIP services.
	ips   addresses
	ports []port

	// Of headless services: the clusters with a ready endpoint, in order of their IDs.
	clusters []cluster
}

// cluster is the part of a headless service from one cluster.
type cluster struct {
	id     string
	slices []*mirrored // each with at least one ready endpoint, in order of their names
}

// emptyServices is the policy for ClusterSetIP services without a ready endpoint.
type emptyServices string

const (
	serveEmpty  emptyServices = "serve"
	ignoreEmpty emptyServices = "ignore"
)

// newService returns the service of a ServiceImport and its slices, which may be in any order. It returns nil if there is no name to
// serve: no import, no address, or no ready endpoint (spec N6).
func newService(i *imported, from []*mirrored, empty emptyServices) *service {
	if i == nil {
		return nil
	}
	from = slices.DeleteFunc(slices.Clone(from), func(m *mirrored) bool { return m.cluster == "" || m.size() == 0 })
	if i.headless {
		return headlessService(i.key, from)
	}
	if i.ips.size() == 0 || (empty == ignoreEmpty && len(from) == 0) {
		return nil
	}
	return &service{key: i.key, ips: i.ips, ports: i.ports}
}

func headlessService(key serviceKey, from []*mirrored) *service {
	if len(from) == 0 {
		return nil
	}
	slices.SortFunc(from, func(a, b *mirrored) int {
		if c := strings.Compare(a.cluster, b.cluster); c != 0 {
			return c
		}
		return strings.Compare(a.object.name, b.object.name)
	})
	s := &service{key: key}
	for _, m := range from {
		if last := len(s.clusters) - 1; last >= 0 && s.clusters[last].id == m.cluster {
			s.clusters[last].slices = append(s.clusters[last].slices, m)
			continue
		}
		s.clusters = append(s.clusters, cluster{id: m.cluster, slices: []*mirrored{m}})
	}
	return s
}

// headless reports whether the endpoints are served.
func (s *service) headless() bool { return len(s.clusters) > 0 }

// mirrors yields all slices of a headless service.
func (s *service) mirrors() iter.Seq[*mirrored] {
	return func(yield func(*mirrored) bool) {
		for _, c := range s.clusters {
			for _, m := range c.slices {
				if !yield(m) {
					return
				}
			}
		}
	}
}

// addresses returns the addresses at the service's own name (spec N2, N3).
func (s *service) addresses() addresses {
	if !s.headless() {
		return s.ips
	}
	var all addresses
	for m := range s.mirrors() {
		all.merge(m.byIP)
		for _, e := range m.byName {
			all.add(e.address)
		}
	}
	all.sort()
	return all
}

// endpoints returns the number of addresses behind a headless service, each counted as often as it is mirrored.
func (s *service) endpoints() int {
	n := 0
	for m := range s.mirrors() {
		n += m.size()
	}
	return n
}

// allPorts yields the ports of the service: those of its import, or those of its slices.
func (s *service) allPorts() iter.Seq[port] {
	return func(yield func(port) bool) {
		for _, p := range s.ports {
			if !yield(p) {
				return
			}
		}
		for m := range s.mirrors() {
			for _, p := range m.ports {
				if !yield(p) {
					return
				}
			}
		}
	}
}

// cluster returns the part from a cluster, nil if there is none.
func (s *service) cluster(id string) *cluster {
	i, found := slices.BinarySearchFunc(s.clusters, id, func(c cluster, id string) int { return strings.Compare(c.id, id) })
	if !found {
		return nil
	}
	return &s.clusters[i]
}

// host returns the addresses of "<label>.<cluster>.<service>": of the endpoints with that hostname, and of the endpoint without a
// hostname whose address is the label (spec N3).
func (c *cluster) host(label string) addresses {
	var found addresses
	address, isAddress := labelAddress(label)
	for _, m := range c.slices {
		i, _ := slices.BinarySearchFunc(m.byName, label, func(e namedEndpoint, label string) int { return strings.Compare(e.hostname, label) })
		for ; i < len(m.byName) && m.byName[i].hostname == label; i++ {
			found.add(m.byName[i].address)
		}
		if isAddress && m.byIP.contains(address) {
			found.add(address)
		}
	}
	found.sort()
	return found
}
