// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/resourceversion"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
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

// caughtUp reports whether as much of a member's records has been seen as its heartbeat says that there is. Each kind is watched
// by itself, so a heartbeat may overtake the records of which it speaks.
func (s *Store) caughtUp(beat *hubv1alpha1.Heartbeat) bool {
	return s.hasSeen(kindService, beat.Spec.ServicesVersion) && s.hasSeen(kindEndpoints, beat.Spec.EndpointsVersion)
}

// hasSeen reports whether the records of a kind have been seen up to a version; true where versions cannot be compared.
func (s *Store) hasSeen(k kind, version string) bool {
	order, err := resourceversion.CompareResourceVersion(s.seen[k], version)
	return err != nil || order >= 0
}

// compareHeartbeats finds which members are behind. What a heartbeat says may have been read before there was a list to compare it
// with.
func (s *Store) compareHeartbeats() {
	clear(s.behind)
	for id, beat := range s.heartbeats {
		if !s.caughtUp(beat) {
			s.behind[id] = struct{}{}
		}
	}
}

// advance notes that a record of a kind has been seen at a version, and returns what is to be looked at because of it.
func (s *Store) advance(k kind, version string) []Event {
	s.seen[k] = latest(s.seen[k], version)
	before := len(s.behind)
	maps.DeleteFunc(s.behind, func(id clusterset.ClusterID, _ struct{}) bool {
		beat := s.heartbeats[id]
		return beat == nil || s.caughtUp(beat)
	})
	if len(s.behind) == before {
		return nil
	}
	return []Event{{All: true, Backlog: true}}
}

// Keys returns the services that any member, this cluster included, has records of. Those whose records were written last come
// first.
func (s *Store) Keys() []clusterset.ServiceKey {
	s.mu.RLock()
	defer s.mu.RUnlock()
	last := make(map[clusterset.ServiceKey]string, len(s.services))
	note := func(key clusterset.ServiceKey, version string) {
		if before, known := last[key]; !known || isLater(version, before) {
			last[key] = version
		}
	}
	for key, records := range s.services {
		for _, record := range records {
			note(key, record.ResourceVersion)
		}
	}
	for key, members := range s.endpoints {
		for _, records := range members {
			for _, record := range records {
				note(key, record.ResourceVersion)
			}
		}
	}
	return slices.SortedFunc(maps.Keys(last), func(a, b clusterset.ServiceKey) int {
		if order, err := resourceversion.CompareResourceVersion(last[b], last[a]); err == nil {
			return order
		}
		return 0
	})
}
