// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"slices"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// maxDeleted bounds the deleted records that are stored for a member, and is a multiple of its quota. If there are more, they are
// cleared, and the imports of these records stay until the member is confirmed.
const maxDeleted = 10_000

// deletions are the deleted records of one member: for each service the IDs of the slices, and "" for the export.
type deletions struct {
	records map[clusterset.ServiceKey]map[string]struct{}
	count   int
}

func (d *deletions) add(r recordKey) {
	if d.records == nil || d.count >= maxDeleted {
		*d = deletions{records: map[clusterset.ServiceKey]map[string]struct{}{}}
	}
	if d.records[r.key] == nil {
		d.records[r.key] = map[string]struct{}{}
	}
	d.records[r.key][r.slice] = struct{}{}
	d.count++
}

func (d *deletions) has(r recordKey) bool {
	if d == nil {
		return false
	}
	_, found := d.records[r.key][r.slice]
	return found
}

func (d *deletions) remove(r recordKey) {
	if !d.has(r) {
		return
	}
	d.count--
	delete(d.records[r.key], r.slice)
	if len(d.records[r.key]) == 0 {
		delete(d.records, r.key)
	}
}

// noteDeleted stores a deletion that a watch reported. A list that follows makes the member unconfirmed, maybe before the import is
// deleted.
func (s *Store) noteDeleted(id clusterset.ClusterID, r recordKey) {
	if s.deleted[id] == nil {
		s.deleted[id] = &deletions{}
	}
	if !s.deleted[id].has(r) {
		s.deleted[id].add(r)
	}
}

func (s *Store) isDeleted(id clusterset.ClusterID, r recordKey) bool { return s.deleted[id].has(r) }

// removeDeletions removes the deletions of the records of a service of which this cluster has nothing imported.
func (s *Store) removeDeletions(key clusterset.ServiceKey, have Imported) {
	for id, deleted := range s.deleted {
		ids, imported := have[id]
		for slice := range deleted.records[key] {
			if !imported || slice != "" && !slices.Contains(ids, slice) {
				deleted.remove(recordKey{key, slice})
			}
		}
		if deleted.count == 0 {
			delete(s.deleted, id)
		}
	}
}

// hasDeletions reports whether deletions of records of a service are stored.
func (s *Store) hasDeletions(key clusterset.ServiceKey) bool {
	for _, deleted := range s.deleted {
		if deleted.records[key] != nil {
			return true
		}
	}
	return false
}
