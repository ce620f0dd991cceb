// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package breaker tells a withdrawal from a loss: when a list of the hub lacks much of what a source had, it is more
// likely that the hub has lost it than that the source has withdrawn it (design decision 7). It is pure.
package breaker

import (
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// fewRecords is how many records may be missing whatever share of all they are.
const fewRecords = 20

// Record is something that an importing cluster has of a source: its export of a service, or one slice of that.
type Record struct {
	Key clusterset.ServiceKey
	// Slice is empty for the export itself.
	Slice string
}

// Held returns the records, of those that imported names, that are missing and must not be taken for withdrawn, by their
// service: all that are missing, where these are more than 20 and more than half, otherwise none.
func Held(imported []Record, missing func(Record) bool) map[clusterset.ServiceKey][]Record {
	held := map[clusterset.ServiceKey][]Record{}
	count := 0
	for _, record := range imported {
		if missing(record) {
			held[record.Key] = append(held[record.Key], record)
			count++
		}
	}
	if count <= max(fewRecords, len(imported)/2) {
		return nil
	}
	return held
}
