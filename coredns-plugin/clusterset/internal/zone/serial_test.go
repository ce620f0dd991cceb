// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// A new instance for a zone, as after a reload, continues the serial number of the old one, even at the same time.
func TestSerialAfterReload(t *testing.T) {
	now, zone := time.UnixMilli(1_800_000_000_000), fmt.Sprintf("zone-%d.test.", rand.Uint64())
	s := serialOf(zone)
	s.advance(now)
	s.advance(now)
	before := s.load()
	serialOf(zone).advance(now)
	check.Equal(t, "serial after the reload", before+1, serialOf(zone).load())
	check.Equal(t, "after the fourth change of a tick, the next waits", 4*Tick, s.advance(now))
	for range 100 {
		if wait := s.advance(now.Add(-time.Hour)); wait > 10*Tick {
			t.Fatalf("with a clock that was set back, the next change waits %v", wait)
		}
	}
	var wraps serial
	wraps.last.Store(1<<32 - 1)
	wraps.advance(time.UnixMilli(0).Add(-10 * Tick))
	check.Equal(t, "serial after the greatest number", uint32(0), wraps.load())
}
