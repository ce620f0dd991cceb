// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import "strings"

// compareExport compares a ServiceExport's conditions with what they must say.
func (w World) compareExport(c Cluster, key Key) []Finding {
	l := &list{cluster: c.ID, key: key}
	found := c.export(key)
	if found == nil || found.DeletionTimestamp != nil {
		return nil
	}
	valid := c.judge(key)
	ready, conflict := "True/Exported", "False/NoConflicts"
	exports := w.exports(key)
	switch {
	case valid.status != "True":
		ready = "False/Pending"
	case !w.mayPublish(c.ID, key.Namespace):
		return nil // the hub refuses it; FewWrites counts the attempts
	default:
		if reasons := conflicts(exports); len(reasons) > 0 {
			conflict = "True/" + strings.Join(reasons, ",")
		}
	}
	want := []string{"Conflict=" + conflict, "Ready=" + ready, "Valid=" + valid.status + "/" + valid.reason}
	l.same(Conditions, "conditions", conditionsText(found.Status.Conditions, found.Generation), want)
	return l.found
}

// compareRecord says where the hub's records are not those of the member's exports.
func (w World) compareRecord(c Cluster, key Key) []Finding {
	l := &list{cluster: c.ID, key: key}
	exporting := false
	for _, e := range w.exports(key) {
		exporting = exporting || e.cluster == c.ID
	}
	record := w.record(c.ID, key)
	if recorded := record != nil && !record.Spec.Inactive; recorded != exporting {
		l.addf(Published, "exported: %t, recorded on the hub: %t", exporting, recorded)
	}
	if record != nil && record.Spec.Inactive && c.export(key) == nil {
		l.addf(Published, "there is an inactive record, and no ServiceExport")
	}
	return l.found
}
