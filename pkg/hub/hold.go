// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"maps"
	"slices"
	"time"

	"github.com/tombolo-mcs/tombolo/pkg/breaker"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Hold is a deletion of much of what a member exported, found by listing the hub, that is not believed for now.
type Hold struct {
	Member clusterset.ClusterID
	Since  time.Time
	// Records are the member's records that are missing, by their service.
	Records map[clusterset.ServiceKey][]breaker.Record
}

// Total returns how many records are missing.
func (h Hold) Total() int {
	total := 0
	for _, records := range h.Records {
		total += len(records)
	}
	return total
}

// holds is what the store knows of deletions beyond the records themselves.
type holds struct {
	// listing counts the lists that have been taken in, judged those that have been judged.
	listing, judged int
	// withdrawn are the members' records whose deletion is believed, since it was watched or has been confirmed.
	withdrawn map[clusterset.ClusterID]*withdrawals
	held      map[clusterset.ClusterID]Hold
}

func newHolds() holds {
	return holds{withdrawn: map[clusterset.ClusterID]*withdrawals{}, held: map[clusterset.ClusterID]Hold{}}
}

// withdraw has the deletion of a member's record be believed.
func (h holds) withdraw(id clusterset.ClusterID, r breaker.Record) {
	if h.withdrawn[id] == nil {
		h.withdrawn[id] = &withdrawals{recent: map[breaker.Record]struct{}{}}
	}
	h.withdrawn[id].add(r)
}

// Listing counts the lists of the hub that have been taken in. What it held before the last one, it may have lost.
func (s *Store) Listing() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.holds.listing
}

// Judge compares what this cluster has of each other member with what the hub's last list holds, if that has not been
// done yet, and holds what looks like a loss. Until then nothing that is missing is believed. It returns the holds that
// are new. imported names all that this cluster has; it is read only where there is something to judge.
func (s *Store) Judge(now time.Time, imported func() (map[clusterset.ClusterID][]breaker.Record, error)) ([]Hold, error) {
	s.mu.RLock()
	listing, due := s.holds.listing, s.holds.listing != s.holds.judged && s.synced()
	s.mu.RUnlock()
	if !due {
		return nil, nil
	}
	have, err := imported()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Hold
	for _, id := range slices.Sorted(maps.Keys(have)) {
		earlier, before := s.holds.held[id]
		records := breaker.Held(have[id],
			func(r breaker.Record) bool { return s.missing(id, r) },
			func(k clusterset.ServiceKey) bool { return len(s.endpoints[k][id]) == 0 })
		if len(records) == 0 { // what little is missing of a greater loss is no withdrawal for that
			records = s.stillMissing(earlier, have[id])
		}
		if len(records) == 0 || id == s.own {
			delete(s.holds.held, id)
			continue
		}
		hold := Hold{Member: id, Since: now, Records: records}
		if before {
			hold.Since = earlier.Since
		} else {
			found = append(found, hold)
		}
		s.holds.held[id] = hold
	}
	s.holds.judged = listing
	s.forgetWithdrawn(have)
	return found, nil
}

// stillMissing returns the records of a hold that are still missing, of those that this cluster has.
func (s *Store) stillMissing(hold Hold, have []breaker.Record) map[clusterset.ServiceKey][]breaker.Record {
	result := map[clusterset.ServiceKey][]breaker.Record{}
	for _, r := range have {
		if slices.Contains(hold.Records[r.Key], r) && s.missing(hold.Member, r) {
			result[r.Key] = append(result[r.Key], r)
		}
	}
	return result
}

// forgetWithdrawn forgets the deletions that have taken effect in this cluster. That of an export has when its slices are gone, too.
func (s *Store) forgetWithdrawn(have map[clusterset.ClusterID][]breaker.Record) {
	before := s.holds.withdrawn
	s.holds.withdrawn = map[clusterset.ClusterID]*withdrawals{}
	for id, records := range have {
		for _, r := range records {
			for _, deleted := range []breaker.Record{r, {Key: r.Key}} {
				if before[id].has(deleted) {
					s.holds.withdraw(id, deleted)
				}
			}
		}
	}
}

// missing reports whether the hub does not hold a record, though nobody has been seen to delete it, or the export that it belongs to.
func (s *Store) missing(id clusterset.ClusterID, r breaker.Record) bool {
	if w := s.holds.withdrawn[id]; w.has(r) || w.has(breaker.Record{Key: r.Key}) {
		return false
	}
	if r.Slice == "" {
		return s.services[r.Key][id] == nil
	}
	return s.endpoints[r.Key][id][serviceRecordName(r.Key)+"."+r.Slice] == nil
}

// Holds returns the deletions that are held, sorted by member.
func (s *Store) Holds() []Hold {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []Hold
	for _, id := range slices.Sorted(maps.Keys(s.holds.held)) {
		hold := s.holds.held[id]
		hold.Records = maps.Clone(hold.Records)
		all = append(all, hold)
	}
	return all
}

// returned notes that a record of a member is there; what was held for its sake is held no longer. It may have been there
// all the time.
func (s *Store) returned(id clusterset.ClusterID, r breaker.Record) {
	s.holds.withdrawn[id].remove(r)
	hold, ok := s.holds.held[id]
	if !ok {
		return
	}
	missing := slices.DeleteFunc(slices.Clone(hold.Records[r.Key]), func(held breaker.Record) bool { return held == r }) // others read it
	if hold.Records[r.Key] = missing; len(missing) == 0 {
		delete(hold.Records, r.Key)
	}
	if len(hold.Records) == 0 {
		delete(s.holds.held, id)
	}
}

// heldFor returns the members whose records for a service are missing and not believed to be gone, sorted.
func (s *Store) heldFor(key clusterset.ServiceKey) []clusterset.ClusterID {
	var members []clusterset.ClusterID
	for id, hold := range s.holds.held {
		if len(hold.Records[key]) > 0 {
			members = append(members, id)
		}
	}
	slices.Sort(members)
	return members
}

// Release believes a deletion that was held, and has its services looked at.
func (s *Store) Release(id clusterset.ClusterID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range s.believe(id) {
		s.notify(Event{Key: key, Backlog: true})
	}
}

// believe ends the hold of a member's deletions, and returns the services concerned. A list that is judged before they have taken
// effect does not hold them again.
func (s *Store) believe(id clusterset.ClusterID) []clusterset.ServiceKey {
	hold := s.holds.held[id]
	delete(s.holds.held, id)
	for _, records := range hold.Records {
		for _, r := range records {
			s.holds.withdraw(id, r)
		}
	}
	return slices.Collect(maps.Keys(hold.Records))
}

// isHeld reports whether records of a member for a service are missing and not believed to be gone.
func (s *Store) isHeld(id clusterset.ClusterID, key clusterset.ServiceKey) bool {
	_, held := s.holds.held[id].Records[key]
	return held || s.holds.listing != s.holds.judged
}

// Withdrawn reports whether a member's slice of a service is believed to be gone, however far the member's publication has come. A
// caller who misses the slice in what Service has returned asks afterwards: then it has not come meanwhile.
func (s *Store) Withdrawn(id clusterset.ClusterID, key clusterset.ServiceKey, slice string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.isWithdrawn(id, breaker.Record{Key: key, Slice: slice})
}

// isWithdrawn reports whether the deletion of a record is believed: it was watched, or has been confirmed.
func (s *Store) isWithdrawn(id clusterset.ClusterID, r breaker.Record) bool {
	return s.synced() && s.holds.listing == s.holds.judged && s.holds.withdrawn[id].has(r)
}

// isRefused reports whether the hub holds a member's export of a service, as one that is not accepted.
func (s *Store) isRefused(id clusterset.ClusterID, key clusterset.ServiceKey) bool {
	record, member := s.services[key][id], s.members[id]
	if record == nil || member == nil || !s.synced() {
		return false
	}
	p, err := newPolicy(member, s.denied)
	if err == nil {
		_, err = decodeService(record, p)
	}
	return err != nil
}
