// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"fmt"
	"strconv"
	"strings"
)

// State is what an Allocator must know after a restart besides the ports that slices record.
type State struct {
	// Cursor is the next port to allocate.
	Cursor int32
	// Free are the ranges of ports that were free and not in quarantine, in ascending order.
	Free []Range
}

// Range is a range of ports.
type Range struct{ First, Last int32 }

// maxRanges is the number of ranges that are stored, the lowest ones. What is not stored is in quarantine after a restart.
const maxRanges = 2000

// Unused is the State of a cluster that has never allocated a port.
func Unused() State { return State{Cursor: First, Free: []Range{{First, Last}}} }

// add adds the next free port, which is higher than all before.
func (s *State) add(port int32) {
	if n := len(s.Free); n > 0 && s.Free[n-1].Last == port-1 {
		s.Free[n-1].Last = port
	} else if n < maxRanges {
		s.Free = append(s.Free, Range{port, port})
	}
}

func (s *State) isFree(port int32) bool {
	for _, r := range s.Free {
		if port >= r.First && port <= r.Last {
			return true
		}
	}
	return false
}

// FormatFree returns the free ports as text, such as "10000-10099,12000-29999".
func (s *State) FormatFree() string {
	var parts []string
	for _, r := range s.Free {
		parts = append(parts, fmt.Sprintf("%d-%d", r.First, r.Last))
	}
	return strings.Join(parts, ",")
}

// ParseState returns a stored State. What cannot be read is left out: the cursor is then First, and no port is known to be free.
func ParseState(cursor, free string) State {
	next, _ := strconv.ParseInt(cursor, 10, 32)
	result := State{Cursor: int32(next)}
	for part := range strings.SplitSeq(free, ",") {
		var r Range
		if _, err := fmt.Sscanf(part, "%d-%d", &r.First, &r.Last); err == nil && len(result.Free) < maxRanges {
			result.Free = append(result.Free, r)
		}
	}
	return result
}
