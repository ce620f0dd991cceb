// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"sync"
	"sync/atomic"
	"time"
)

// serial is the SOA serial number of a zone: the time of the last change, in ticks since 1970. Publications are at least a tick
// apart, so the number is never ahead of the clock, and does not decrease after a restart. It wraps every 2.7 years, as serial
// numbers may (RFC 1982).
type serial struct{ last atomic.Uint32 }

// Tick is the unit of serial numbers: no zone changes more often than 50 times a second.
const Tick = 20 * time.Millisecond

// maxPause is the longest wait before the next change, in ticks.
const maxPause = 10

// serials are shared by the instances of the plugin: during a reload the old and the new one both follow the API server, and the
// serial number must not decrease.
var serials sync.Map

// serialOf returns the serial number of a zone.
func serialOf(zone string) *serial {
	s, _ := serials.LoadOrStore(zone, &serial{})
	return s.(*serial) // nothing else is stored
}

func ticks(t time.Time) uint32 {
	return uint32(t.UnixMilli() / Tick.Milliseconds())
}

// Newer reports whether a is greater than b (RFC 1982, section 3.2).
func Newer(a, b uint32) bool { return int32(a-b) > 0 }

func (s *serial) load() uint32 { return s.last.Load() }

// advance sets the number to the current time, or increases it if that is not later. It returns how long the next change must wait
// so that the number is not ahead of the clock: at most maxPause ticks, as the clock may have been set back.
func (s *serial) advance(now time.Time) time.Duration {
	for {
		last := s.last.Load()
		next := ticks(now)
		if last != 0 && !Newer(next, last) {
			next = last + 1
		}
		if s.last.CompareAndSwap(last, next) {
			return Tick * time.Duration(min(next-ticks(now)+1, maxPause))
		}
	}
}
