// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"fmt"
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestUnknownIsBounded: members can write any number of values, so the number of stored settings is bounded.
//
// spec: D6
func TestUnknownIsBounded(t *testing.T) {
	unknown := NewUnsupportedSettings()
	value := func(i int) clusterset.Setting {
		return clusterset.Setting{Field: clusterset.FieldTrafficDistribution, Value: fmt.Sprint(i)}
	}
	for i := range maxUnsupported {
		before := unknown.settings()
		unknown.add(map[clusterset.Setting]bool{value(i): true})
		if len(before) != i || !unknown.settings()[value(i)] || !unknown.settings()[value(0)] {
			t.Fatalf("after %d: %d before, now %v", i, len(before), unknown.settings())
		}
	}
	unknown.add(map[clusterset.Setting]bool{value(maxUnsupported): true})
	check.Equal(t, "one more than are remembered", map[clusterset.Setting]bool{value(maxUnsupported): true}, unknown.settings())
}
