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

// Versions are resource versions of a member's records, of those of services and those of endpoints: versions of two kinds are
// not compared (KEP-5504).
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

// isLater reports whether a resource version is later than another. One that the hub is back at, as after a restore, is
// not; where versions are no numbers, each other one is.
func isLater(version, last string) bool {
	order, err := resourceversion.CompareResourceVersion(version, last)
	if err != nil {
		return version != last
	}
	return order > 0
}

// hasSeen reports whether the records of a kind have been seen up to a version; true where versions cannot be compared.
func (s *Store) hasSeen(k kind, version string) bool {
	order, err := resourceversion.CompareResourceVersion(s.seen[k], version)
	return err != nil || order >= 0
}

// Keys returns the services that any member, this cluster included, has records of. Those whose records were written last
// come first, services and endpoints in turn: versions of two kinds are not compared (KEP-5504).
func (s *Store) Keys() []clusterset.ServiceKey {
	s.mu.RLock()
	defer s.mu.RUnlock()
	written, endpoints := map[clusterset.ServiceKey]string{}, map[clusterset.ServiceKey]string{}
	for key, records := range s.services {
		for _, record := range records {
			written[key] = latest(written[key], record.ResourceVersion)
		}
	}
	for key, members := range s.endpoints {
		for _, records := range members {
			for _, record := range records {
				endpoints[key] = latest(endpoints[key], record.ResourceVersion)
			}
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

// byVersion returns the keys of a map, those of the latest versions first.
func byVersion(versions map[clusterset.ServiceKey]string) []clusterset.ServiceKey {
	return slices.SortedFunc(maps.Keys(versions), func(a, b clusterset.ServiceKey) int {
		if order, err := resourceversion.CompareResourceVersion(versions[b], versions[a]); err == nil {
			return order
		}
		return 0
	})
}

// KeysIn returns the services of a namespace that any member has records of, in no order.
func (s *Store) KeysIn(namespace string) []clusterset.ServiceKey {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Keys(s.inNamespace[namespace]))
}
