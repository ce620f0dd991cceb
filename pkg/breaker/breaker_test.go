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
			held := breaker.Held(imported, func(r breaker.Record) bool { return missing[r] })
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
	held := breaker.Held(imported, func(r breaker.Record) bool { return r.Slice != "" })
	if !slices.Equal(held[key], imported[1:]) {
		t.Errorf("held are %v, want %v", held[key], imported[1:])
	}
}
