// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package breaker tells a withdrawal from a loss: when a list of the hub lacks much of what a source had, it is more
// likely that the hub has lost it than that the source has withdrawn it (design decision 7). It is pure.
package breaker

import (
	"slices"

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
// service: all that are missing, where the loss is of more than 20 records and more than half, otherwise none. bare says of which
// services the hub holds no slice at all. Exports and slices are listed one after the other, so a service is lost with all its records
// where its export is missing, or its slices are and none has taken their place.
func Held(imported []Record, missing func(Record) bool, bare func(clusterset.ServiceKey) bool) map[clusterset.ServiceKey][]Record {
	held, records := map[clusterset.ServiceKey][]Record{}, map[clusterset.ServiceKey]int{}
	for _, record := range imported {
		records[record.Key]++
		if missing(record) {
			held[record.Key] = append(held[record.Key], record)
		}
	}
	lost := 0
	for key, gone := range held {
		if bare(key) || slices.Contains(gone, Record{Key: key}) {
			lost += records[key]
		} else {
			lost += len(gone)
		}
	}
	if lost <= max(fewRecords, len(imported)/2) {
		return nil
	}
	return held
}
