// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/record"
)

// Service is what the hub is known to hold about one service.
type Service struct {
	// Exports and Slices are those of the other members, sorted, as far as they are acceptable.
	Exports []clusterset.Export
	Slices  []clusterset.Slice
	// Refused are the records and endpoints that are not, and why: of each member the first 10, and how many more there are.
	Refused []error
	// RefusedTotal is how many there are.
	RefusedTotal int
	// LocalMember is this cluster's own Member; nil where none is known. It must not be changed.
	LocalMember *hubv1alpha1.Member
	// Local and LocalEndpoints are this cluster's own records; nil where there are none. They must not be changed.
	Local          *hubv1alpha1.PublishedService
	LocalEndpoints []*hubv1alpha1.PublishedEndpoints
	// LocalExport is what the others take from Local; nil where they take nothing.
	LocalExport *clusterset.Export
	// NotAllowed is why this cluster's Member keeps it from publishing the service, so that nobody else takes its export, and what to
	// do; nil where it does not, or none is known.
	NotAllowed error
	// Missing is what the hub does not hold of that which this cluster has imported, though nothing says that it is deleted.
	Missing map[clusterset.ClusterID]Missing
	// Listed says that the hub's records of all kinds had been seen.
	Listed bool
}

// Synced reports whether the hub's records of all kinds had been seen, this cluster's own Member among them: Store.Synced at
// the moment of which all the rest is.
func (s Service) Synced() bool { return s.Listed && s.LocalMember != nil }

// LocalRanges returns the addresses that this cluster may announce, as its own Member says; nothing where none is known.
func (s Service) LocalRanges() clusterset.AddressRanges {
	if s.LocalMember == nil {
		return clusterset.AddressRanges{}
	}
	p, err := record.NewPolicy(s.LocalMember, clusterset.AddressRanges{})
	if err != nil { // the hub admits no such Member: nothing may pass
		return clusterset.AddressRanges{}
	}
	return p.Ranges
}

// Service returns what the hub is known to hold about a service. Records of clusters that are no members, or are suspended, are
// not looked at.
func (s *Store) Service(key clusterset.ServiceKey) Service {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.service(key)
}

// Import is Service for a caller that imports it, and has this of it already: what the hub lacks of that, though nothing says that
// it is deleted, is missing. Both are of one moment, because a list that comes in between would make what was not yet known look
// deleted. The service is looked at again when more is known of what is missing.
func (s *Store) Import(key clusterset.ServiceKey, have Imported) Service {
	s.mu.RLock()
	defer s.mu.RUnlock()
	result := s.service(key)
	result.Missing = s.missing(key, have)
	s.wait(key, result.Missing)
	return result
}

func (s *Store) service(key clusterset.ServiceKey) Service {
	result := Service{
		LocalMember: s.members[s.own], Local: s.services[key][s.own], LocalExport: s.localExport(key), NotAllowed: s.notAllowed(key), Listed: s.isListed(),
	}
	for _, name := range slices.Sorted(maps.Keys(s.endpoints[key][s.own])) {
		result.LocalEndpoints = append(result.LocalEndpoints, s.endpoints[key][s.own][name])
	}
	for _, id := range slices.Sorted(maps.Keys(s.services[key])) {
		if id == s.own || s.members[id] == nil || s.isGone(id) || s.services[key][id].Spec.Inactive {
			continue
		}
		s.addSource(&result, key, id)
	}
	return result
}

// localExport returns the export that other clusters read from the local record; nil if there is no record, or none that they accept.
func (s *Store) localExport(key clusterset.ServiceKey) *clusterset.Export {
	own, member := s.services[key][s.own], s.members[s.own]
	if own == nil || own.Spec.Inactive || member == nil {
		return nil
	}
	p, err := record.NewPolicy(member, clusterset.AddressRanges{})
	if err != nil { // the hub admits no such Member
		return nil
	}
	export, err := record.DecodeService(own, p)
	if err != nil { // the hub admits no such record
		return nil
	}
	return &export
}

// notAllowed returns why the local Member does not allow this cluster to publish a service, in the words of the hub's policy; nil if it
// does, or if the Member is not known.
func (s *Store) notAllowed(key clusterset.ServiceKey) error {
	member := s.members[s.own]
	if member == nil {
		return nil
	}
	if member.Spec.Suspended {
		return fmt.Errorf("the Member of cluster %s is suspended: an administrator of the hub sets spec.suspended to false", s.own)
	}
	p, err := record.NewPolicy(member, clusterset.AddressRanges{})
	if err != nil { // the hub admits no such Member
		return err
	}
	if !p.Allows(hubv1alpha1.NamespaceName(key.Namespace)) {
		return fmt.Errorf("the Member of cluster %s does not allow namespace %s: do not export from it, or let an administrator of the hub add it to the Member",
			s.own, key.Namespace)
	}
	return nil
}

// addSource adds the records of one member to result.
func (s *Store) addSource(result *Service, key clusterset.ServiceKey, id clusterset.ClusterID) {
	refused := refusals{cluster: id}
	s.decode(result, &refused, key)
	result.Refused = append(result.Refused, refused.told()...)
	result.RefusedTotal += refused.total
}

// decode adds the export and the slices of one member to result, as far as they are acceptable. Endpoints count only beside an
// acceptable service record. What is too much is not even decoded.
func (s *Store) decode(result *Service, refused *refusals, key clusterset.ServiceKey) {
	id := refused.cluster
	p, err := record.NewPolicy(s.members[id], s.denied)
	if err != nil {
		refused.add(err)
		return
	}
	published := s.services[key][id]
	export, err := record.DecodeService(published, p)
	if err != nil {
		refused.addRecord(published.Name, err)
		return
	}
	result.Exports = append(result.Exports, export)
	records := slices.SortedFunc(maps.Values(s.endpoints[key][id]), func(a, b *hubv1alpha1.PublishedEndpoints) int {
		return strings.Compare(a.Name, b.Name)
	})
	bounded, err := clusterset.Bounded(records, announced)
	if err != nil {
		refused.add(fmt.Errorf("refused of what cluster %s contributes to service %s: %w", id, key, err))
	}
	for _, published := range bounded {
		slice, errs := record.DecodeEndpoints(published, p)
		for _, err := range errs {
			refused.addRecord(published.Name, err)
		}
		if slice != nil {
			result.Slices = append(result.Slices, *slice)
		}
	}
}

// announced returns how many endpoints a record announces, whether or not they are acceptable. A group counts for one at
// least, as it takes looking at.
func announced(record *hubv1alpha1.PublishedEndpoints) int {
	count := 0
	for _, group := range record.Spec.Groups {
		count += max(1, len(group.Addresses)/max(1, int(group.AddressesPerEndpoint)))
	}
	return count
}

// maxReasons is how many reasons are kept of what is refused of one member and service. All that a member may write
// could be refused piece by piece, and everybody would hold a reason for each.
const maxReasons = 10

// refusals are why records of one member, or parts of them, are not accepted.
type refusals struct {
	cluster clusterset.ClusterID
	reasons []error
	total   int
}

func (r *refusals) add(err error) {
	r.total++
	if r.total <= maxReasons {
		r.reasons = append(r.reasons, RefusalError{r.cluster, err})
	}
}

// addRecord adds why a record is refused, or a part of it. What it quotes of the record may be long.
func (r *refusals) addRecord(name string, err error) {
	if r.total < maxReasons {
		err = fmt.Errorf("record %s/%s on the hub is refused: %.500w", r.cluster.HubNamespace(), name, err)
	}
	r.add(err)
}

// told returns the first reasons, and how many more there are.
func (r *refusals) told() []error {
	more := r.total - len(r.reasons)
	if more == 0 {
		return r.reasons
	}
	return append(r.reasons, RefusalError{r.cluster, fmt.Errorf("%d more records and endpoints of cluster %s are refused", more, r.cluster)})
}

// RefusalError is why a record of a member, or part of it, is not accepted.
type RefusalError struct {
	Cluster clusterset.ClusterID
	error
}

// Unwrap returns the reason.
func (r RefusalError) Unwrap() error { return r.error }
