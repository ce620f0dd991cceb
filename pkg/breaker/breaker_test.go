// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package breaker_test

import (
	"fmt"
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
			for key, count := range held {
				if count != 1 || !missing[breaker.Record{Key: key}] {
					t.Errorf("%s is held for %d records", key, count)
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
	if held[key] != 30 {
		t.Errorf("%d records are held, want 30", held[key])
	}
}
