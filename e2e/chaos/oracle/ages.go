// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"k8s.io/apimachinery/pkg/types"
)

// age is what an export's age on the hub depends on.
type age struct{ export, record types.UID }

// beginAges notes the records of all exports, and returns those exports that had another record before.
func (h *History) beginAges(w World) []Finding {
	var found []Finding
	before := h.ages
	h.ages = map[place]age{}
	for _, c := range w.Clusters {
		for _, e := range c.Exports {
			p := place{c.ID, keyOf(&e)}
			record := w.record(c.ID, p.key)
			if record == nil {
				continue
			}
			h.ages[p] = age{e.UID, record.UID}
			if was, ok := before[p]; ok && was.export == e.UID && was.record != record.UID && !h.acts[Act{c.ID, Key{}, Loss}] {
				found = append(found, Finding{AgeKept, c.ID, p.key, "the export has another record on the hub, and was never withdrawn"})
			}
		}
	}
	return found
}
