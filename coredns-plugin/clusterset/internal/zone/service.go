// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"iter"
	"slices"
	"strings"
)

// Service is a multi-cluster service. It is immutable and has no copies: its endpoints are those of the records.
type Service struct {
	key ServiceKey

	// Of ClusterSetIP services.
	ips   Addresses
	ports []port

	// Of headless services: the clusters with a ready endpoint, in order of their IDs.
	clusters []cluster
}

// cluster is the part of a headless service from one cluster.
type cluster struct {
	id     string
	slices []*Mirrored // each with at least one ready endpoint, in order of their names
}

// EmptyServices is the policy for ClusterSetIP services without a ready endpoint.
type EmptyServices string

// The policies.
const (
	ServeEmpty  EmptyServices = "serve"
	IgnoreEmpty EmptyServices = "ignore"
)

// NewService returns the service of a ServiceImport and its slices, which may be in any order. It returns nil if there is no name to
// serve: no import, no address, or no ready endpoint (spec N6).
func NewService(i *Imported, from []*Mirrored, empty EmptyServices) *Service {
	if i == nil {
		return nil
	}
	from = slices.DeleteFunc(slices.Clone(from), func(m *Mirrored) bool { return m.cluster == "" || m.size() == 0 })
	if i.headless {
		return headlessService(i.key, from)
	}
	if i.ips.Size() == 0 || (empty == IgnoreEmpty && len(from) == 0) {
		return nil
	}
	return &Service{key: i.key, ips: i.ips, ports: i.ports}
}

func headlessService(key ServiceKey, from []*Mirrored) *Service {
	if len(from) == 0 {
		return nil
	}
	slices.SortFunc(from, func(a, b *Mirrored) int {
		if c := strings.Compare(a.cluster, b.cluster); c != 0 {
			return c
		}
		return strings.Compare(a.object.Name, b.object.Name)
	})
	s := &Service{key: key}
	for _, m := range from {
		if last := len(s.clusters) - 1; last >= 0 && s.clusters[last].id == m.cluster {
			s.clusters[last].slices = append(s.clusters[last].slices, m)
			continue
		}
		s.clusters = append(s.clusters, cluster{id: m.cluster, slices: []*Mirrored{m}})
	}
	return s
}

// Headless reports whether the endpoints are served.
func (s *Service) Headless() bool { return len(s.clusters) > 0 }

// mirrors yields all slices of a headless service.
func (s *Service) mirrors() iter.Seq[*Mirrored] {
	return func(yield func(*Mirrored) bool) {
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
func (s *Service) addresses() Addresses {
	if !s.Headless() {
		return s.ips
	}
	var all Addresses
	for m := range s.mirrors() {
		all.merge(m.byIP)
		for _, e := range m.byName {
			all.Add(e.address)
		}
	}
	all.Sort()
	return all
}

// Endpoints returns the number of addresses behind a headless service, each counted as often as it is mirrored.
func (s *Service) Endpoints() int {
	n := 0
	for m := range s.mirrors() {
		n += m.size()
	}
	return n
}

// allPorts yields the ports of the service: those of its import, or those of its slices.
func (s *Service) allPorts() iter.Seq[port] {
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
func (s *Service) cluster(id string) *cluster {
	i, found := slices.BinarySearchFunc(s.clusters, id, func(c cluster, id string) int { return strings.Compare(c.id, id) })
	if !found {
		return nil
	}
	return &s.clusters[i]
}

// host returns the addresses of "<label>.<cluster>.<service>": of the endpoints with that hostname, and of the endpoint without a
// hostname whose address is the label (spec N3).
func (c *cluster) host(label string) Addresses {
	var found Addresses
	address, isAddress := labelAddress(label)
	for _, m := range c.slices {
		i, _ := slices.BinarySearchFunc(m.byName, label, func(e namedEndpoint, label string) int { return strings.Compare(e.hostname, label) })
		for ; i < len(m.byName) && m.byName[i].hostname == label; i++ {
			found.Add(m.byName[i].address)
		}
		if isAddress && m.byIP.contains(address) {
			found.Add(address)
		}
	}
	found.Sort()
	return found
}
