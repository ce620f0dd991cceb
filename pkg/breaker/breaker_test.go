// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package breaker_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/tombolo-mcs/tombolo/pkg/breaker"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// served is of services of which the hub holds other slices.
func served(clusterset.ServiceKey) bool { return false }

func TestHeld(t *testing.T) {
	for name, test := range map[string]struct{ imported, missing, held int }{
		"nothing there":                   {0, 0, 0},
		"few, and all of them missing":    {20, 20, 0},
		"one more, and all missing":       {21, 21, 21},
		"half of many":                    {100, 50, 0},
		"more than half of many":          {100, 51, 51},
		"half of an odd number":           {101, 50, 0},
		"more than half of an odd number": {101, 51, 51},
		"many, and none missing":          {1000, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var imported []breaker.Record
			for i := range test.imported {
				imported = append(imported, breaker.Record{Key: clusterset.ServiceKey{Namespace: "shop", Name: fmt.Sprintf("svc-%04d", i)}})
			}
			missing := map[breaker.Record]bool{}
			for _, record := range imported[:test.missing] {
				missing[record] = true
			}
			held := breaker.Held(imported, func(r breaker.Record) bool { return missing[r] }, served)
			if len(held) != test.held {
				t.Fatalf("%d services are held, want %d", len(held), test.held)
			}
			for key, records := range held {
				if len(records) != 1 || records[0].Key != key || !missing[records[0]] {
					t.Errorf("%s is held for %v", key, records)
				}
			}
		})
	}
}

// TestHeldCountsSlices: the export and each of its slices is a record of its own.
func TestHeldCountsSlices(t *testing.T) {
	key := clusterset.ServiceKey{Namespace: "shop", Name: "web"}
	imported := []breaker.Record{{Key: key}}
	for i := range 30 {
		imported = append(imported, breaker.Record{Key: key, Slice: fmt.Sprint(i)})
	}
	held := breaker.Held(imported, func(r breaker.Record) bool { return r.Slice != "" }, served)
	if !slices.Equal(held[key], imported[1:]) {
		t.Errorf("held are %v, want %v", held[key], imported[1:])
	}
}

// TestHeldWhicheverListComesFirst: exports and slices are listed one after the other. The first list says as much of what a source has
// lost as both do.
func TestHeldWhicheverListComesFirst(t *testing.T) {
	for name, test := range map[string]struct{ services, lost, slices, held int }{
		"all of a few":               {services: 10, lost: 10, slices: 1},
		"all":                        {services: 11, lost: 11, slices: 1, held: 11},
		"half":                       {services: 100, lost: 50, slices: 1},
		"more than half":             {services: 100, lost: 51, slices: 1, held: 51},
		"all, of several slices":     {services: 7, lost: 7, slices: 2, held: 7},
		"few, of many slices":        {services: 3, lost: 2, slices: 9},
		"most, of many slices":       {services: 3, lost: 2, slices: 10, held: 2},
		"exports that have no slice": {services: 20, lost: 20},
	} {
		t.Run(name, func(t *testing.T) {
			var imported []breaker.Record
			gone := map[clusterset.ServiceKey]bool{}
			for i := range test.services {
				key := clusterset.ServiceKey{Namespace: "shop", Name: fmt.Sprintf("svc-%04d", i)}
				gone[key] = i < test.lost
				imported = append(imported, breaker.Record{Key: key})
				for j := range test.slices {
					imported = append(imported, breaker.Record{Key: key, Slice: fmt.Sprint(j)})
				}
			}
			for first, missing := range map[string]func(breaker.Record) bool{
				"exports": func(r breaker.Record) bool { return gone[r.Key] && r.Slice == "" },
				"slices":  func(r breaker.Record) bool { return gone[r.Key] && r.Slice != "" },
				"both":    func(r breaker.Record) bool { return gone[r.Key] },
			} {
				bare := func(key clusterset.ServiceKey) bool { return first != "exports" && gone[key] }
				held := breaker.Held(imported, missing, bare)
				if len(held) != test.held {
					t.Errorf("%s first: %d services are held, want %d", first, len(held), test.held)
				}
				for key, records := range held {
					if !gone[key] || slices.ContainsFunc(records, func(r breaker.Record) bool { return !missing(r) }) {
						t.Errorf("%s first: %s is held for %v", first, key, records)
					}
				}
			}
		})
	}
}

// TestReplacedSlicesAreNoLoss: a service whose slices have made room for others has lost no more than these.
func TestReplacedSlicesAreNoLoss(t *testing.T) {
	var imported []breaker.Record
	for i := range 30 {
		key := clusterset.ServiceKey{Namespace: "shop", Name: fmt.Sprintf("svc-%04d", i)}
		imported = append(imported, breaker.Record{Key: key}, breaker.Record{Key: key, Slice: "0"})
	}
	if held := breaker.Held(imported, func(r breaker.Record) bool { return r.Slice != "" }, served); held != nil {
		t.Errorf("held are %v", held)
	}
}
