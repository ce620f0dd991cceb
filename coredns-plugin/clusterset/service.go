// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"iter"
	"slices"
	"strings"
)

// service is what DNS knows of a multi-cluster service. It never changes and holds no copies: its endpoints stay in the
// records that they came in.
type service struct {
	key serviceKey

	// Of ClusterSetIP services.
	ips   addresses
	ports []port

	// Of headless services: the clusters with a ready endpoint, in order of their IDs.
	clusters []cluster
}

// cluster is what one cluster contributes to a headless service.
type cluster struct {
	id     string
	slices []*mirrored // each with at least one ready endpoint, in order of their names
}

// emptyServices says what a ClusterSetIP service without a ready endpoint is.
type emptyServices string

const (
	serveEmpty  emptyServices = "serve"
	ignoreEmpty emptyServices = "ignore"
)

// newService returns the service that a ServiceImport and the slices that bear its name make, in whatever order they
// come. It returns nil if there is no name to serve: no import, no address, or no ready endpoint (spec N6).
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

// headless reports whether the endpoints are what is served.
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

// cluster returns what a cluster contributes, nil if that is nothing.
func (s *service) cluster(id string) *cluster {
	i, found := slices.BinarySearchFunc(s.clusters, id, func(c cluster, id string) int { return strings.Compare(c.id, id) })
	if !found {
		return nil
	}
	return &s.clusters[i]
}

// host returns the addresses at "<label>.<cluster>.<service>": of the endpoints with that hostname, and of the endpoint
// whose address the label spells (spec N3).
func (c *cluster) host(label string) addresses {
	var found addresses
	spelled, spells := labelAddress(label)
	for _, m := range c.slices {
		i, _ := slices.BinarySearchFunc(m.byName, label, func(e namedEnd, label string) int { return strings.Compare(e.hostname, label) })
		for ; i < len(m.byName) && m.byName[i].hostname == label; i++ {
			found.add(m.byName[i].address)
		}
		if spells && m.byIP.contains(spelled) {
			found.add(spelled)
		}
	}
	found.sort()
	return found
}
