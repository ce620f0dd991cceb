// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Versions are the resource versions of a member's PublishedServices and PublishedEndpoints. Versions of different kinds are not
// compared (KEP-5504).
type Versions struct {
	Services, Endpoints string
}

// Latest returns the higher of two versions, for each kind.
func (v Versions) Latest(other Versions) Versions {
	return Versions{Services: latest(v.Services, other.Services), Endpoints: latest(v.Endpoints, other.Endpoints)}
}

func latest(a, b string) string {
	if a == "" || b != "" && isLater(b, a) {
		return b
	}
	return a
}

// isLater reports whether a resource version is later than another. After a restore of the hub it is not. If versions are not numbers,
// every different version counts as later.
func isLater(version, last string) bool {
	order, err := resourceversion.CompareResourceVersion(version, last)
	if err != nil {
		return version != last
	}
	return order > 0
}

// hasSeen reports whether the records of a kind were read up to a version. It is true if versions cannot be compared.
func (s *Store) hasSeen(k kind, version string) bool {
	order, err := resourceversion.CompareResourceVersion(s.seen[k], version)
	return err != nil || order >= 0
}

// Keys returns the services with records of any member, local ones included. The latest records come first, those of services and of
// endpoints in turn, because versions of different kinds are not compared (KEP-5504).
func (s *Store) Keys() []clusterset.ServiceKey {
	s.mu.RLock()
	defer s.mu.RUnlock()
	written, endpoints := map[clusterset.ServiceKey]string{}, map[clusterset.ServiceKey]string{}
	for key, r := range s.records.all() {
		for _, e := range r.services {
			written[key] = latest(written[key], e.record.ResourceVersion)
		}
		for _, e := range r.endpoints {
			endpoints[key] = latest(endpoints[key], e.record.ResourceVersion)
		}
	}
	rank := map[clusterset.ServiceKey]int{}
	for _, versions := range []map[clusterset.ServiceKey]string{written, endpoints} {
		for i, key := range byVersion(versions) {
			if before, known := rank[key]; !known || i < before {
				rank[key] = i
			}
		}
	}
	return slices.SortedFunc(maps.Keys(rank), func(a, b clusterset.ServiceKey) int { return cmp.Compare(rank[a], rank[b]) })
}

// byVersion returns the keys of a map, latest version first.
func byVersion(versions map[clusterset.ServiceKey]string) []clusterset.ServiceKey {
	return slices.SortedFunc(maps.Keys(versions), func(a, b clusterset.ServiceKey) int {
		if order, err := resourceversion.CompareResourceVersion(versions[b], versions[a]); err == nil {
			return order
		}
		return 0
	})
}

// KeysIn returns the services of a namespace with records of any member, in no order.
func (s *Store) KeysIn(namespace string) []clusterset.ServiceKey {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var keys []clusterset.ServiceKey
	for name := range s.records[namespace] {
		keys = append(keys, clusterset.ServiceKey{Namespace: namespace, Name: name})
	}
	return keys
}
