// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"maps"
	"slices"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Service is what the hub is known to hold about one service.
type Service struct {
	// Exports and Slices are those of the other members, sorted, as far as they are acceptable.
	Exports []clusterset.Export
	Slices  []clusterset.Slice
	// Refused are the records and endpoints that are not, and why.
	Refused []error
	// Own and OwnEndpoints are this cluster's own records; nil where there are none. They must not be changed.
	Own          *hubv1alpha1.PublishedService
	OwnEndpoints []*hubv1alpha1.PublishedEndpoints
	// OwnExport is what the others take from Own; nil where they take nothing.
	OwnExport *clusterset.Export
	// Knowledge says what it means that a cluster exports nothing here, for those that were asked about.
	Knowledge map[clusterset.ClusterID]Knowledge
	// Held are the members whose records for the service are missing and not believed to be gone, sorted.
	Held []clusterset.ClusterID
	// Listed says that the hub's records of all kinds had been seen.
	Listed bool
}

// Service returns what the hub is known to hold about a service, and what the absence of records of the named clusters
// means: both as of one moment, because a list that comes in between would make what was not yet known look withdrawn.
// Records of clusters that are no members are not looked at.
func (s *Store) Service(key clusterset.ServiceKey, named ...clusterset.ClusterID) Service {
	s.mu.RLock()
	defer s.mu.RUnlock()
	result := Service{
		Own: s.services[key][s.own], OwnExport: s.ownExport(key),
		Knowledge: make(map[clusterset.ClusterID]Knowledge, len(named)), Held: s.heldFor(key),
		Listed: s.isListed(),
	}
	for _, id := range named {
		result.Knowledge[id] = s.knowledgeOf(id, key)
	}
	for _, name := range slices.Sorted(maps.Keys(s.endpoints[key][s.own])) {
		result.OwnEndpoints = append(result.OwnEndpoints, s.endpoints[key][s.own][name])
	}
	for _, id := range slices.Sorted(maps.Keys(s.services[key])) {
		if id == s.own || s.members[id] == nil {
			continue
		}
		s.addSource(&result, key, id)
	}
	return result
}

// ownExport returns the export that our own record stands for; nil where there is none, or none that others accept.
func (s *Store) ownExport(key clusterset.ServiceKey) *clusterset.Export {
	record, member := s.services[key][s.own], s.members[s.own]
	if record == nil || member == nil {
		return nil
	}
	p, err := newPolicy(member, clusterset.Fence{})
	if err != nil { // the hub admits no such Member
		return nil
	}
	export, err := decodeService(record, p)
	if err != nil { // the hub admits no such record
		return nil
	}
	return &export
}

// addSource adds the records of one member to result. Endpoints count only beside an acceptable service record.
func (s *Store) addSource(result *Service, key clusterset.ServiceKey, id clusterset.ClusterID) {
	p, err := newPolicy(s.members[id], s.denied)
	if err != nil {
		result.Refused = append(result.Refused, RefusalError{id, err})
		return
	}
	record := s.services[key][id]
	export, err := decodeService(record, p)
	if err != nil {
		result.Refused = append(result.Refused, refusal(id, record.Name, err))
		return
	}
	result.Exports = append(result.Exports, export)
	var contributed []clusterset.Slice
	for _, name := range slices.Sorted(maps.Keys(s.endpoints[key][id])) {
		slice, errs := decodeEndpoints(s.endpoints[key][id][name], p)
		for _, err := range errs {
			result.Refused = append(result.Refused, refusal(id, name, err))
		}
		if slice != nil {
			contributed = append(contributed, *slice)
		}
	}
	bounded, err := clusterset.Bounded(contributed)
	if err != nil {
		result.Refused = append(result.Refused, RefusalError{id, fmt.Errorf("refused of what cluster %s contributes to service %s: %w", id, key, err)})
	}
	result.Slices = append(result.Slices, bounded...)
}

// RefusalError is why a record of a member, or part of it, is not accepted.
type RefusalError struct {
	Cluster clusterset.ClusterID
	error
}

// Unwrap returns the reason.
func (r RefusalError) Unwrap() error { return r.error }

// refusal names the record that an error is about.
func refusal(id clusterset.ClusterID, name string, err error) error {
	return RefusalError{id, fmt.Errorf("record %s/%s on the hub is refused: %w", id.HubNamespace(), name, err)}
}
