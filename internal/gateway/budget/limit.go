// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"io/fs"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// DefaultLimit is the memory limit, in bytes, if there is none.
const DefaultLimit = 1 << 30

// SetLimit sets the limit at which Go collects garbage more often to 75 % of the memory limit of the container, and returns the memory for
// streams, and for each of large and small buffers, in bytes: 55 % and 5 % of that limit. The rest is for the kernel's buffers of sockets and the
// caches. The limit is GOMEMLIMIT, otherwise that of the cgroup, otherwise DefaultLimit, which limits only the streams and buffers.
func SetLimit() (streams, buffers int64) {
	limit := limitOf(debug.SetMemoryLimit(-1), os.DirFS("/sys/fs/cgroup"))
	if limit == 0 {
		limit = DefaultLimit
	} else {
		debug.SetMemoryLimit(limit / 100 * 75)
	}
	return limit / 100 * 55, limit / 100 * 5
}

// limitOf returns the memory limit of the process; 0 if there is none. goLimit is the limit of the Go runtime, which GOMEMLIMIT sets.
func limitOf(goLimit int64, cgroup fs.FS) int64 {
	if goLimit < math.MaxInt64 {
		return goLimit
	}
	for _, name := range []string{"memory.max", "memory/memory.limit_in_bytes"} { // of cgroup v2 and v1
		text, err := fs.ReadFile(cgroup, name)
		if err != nil {
			continue
		}
		const none = 1 << 60 // or more, with cgroup v1
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && limit > 0 && limit < none {
			return limit
		}
	}
	return 0
}
