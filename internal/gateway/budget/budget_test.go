// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"math"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// spec: G12
func TestLimit(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	v2, v1 := "memory.max", "memory/memory.limit_in_bytes"
	for name, test := range map[string]struct {
		goLimit int64
		cgroup  fstest.MapFS
		want    int64
	}{
		"GOMEMLIMIT":          {100, fstest.MapFS{v2: file("200\n")}, 100},
		"cgroup v2":           {math.MaxInt64, fstest.MapFS{v2: file("1073741824\n")}, 1 << 30},
		"cgroup v2, no limit": {math.MaxInt64, fstest.MapFS{v2: file("max\n")}, 0},
		"cgroup v1":           {math.MaxInt64, fstest.MapFS{v1: file("1073741824\n")}, 1 << 30},
		"cgroup v1, no limit": {math.MaxInt64, fstest.MapFS{v1: file("9223372036854771712\n")}, 0},
		"no cgroup":           {math.MaxInt64, fstest.MapFS{}, 0},
	} {
		check.Equal(t, name, test.want, limitOf(test.goLimit, test.cgroup))
	}
}

// The bytes of one client or cluster, and of all, are bounded at any time, and all are free at the end.
//
// spec: G12
func TestBudget(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		const total = 100
		b := New(total)
		held := map[string][]int{}
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			of := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "of")
			used, each := b.Used()
			if n := len(held[of]); n > 0 && rapid.Bool().Draw(t, "release") {
				b.Release(of, held[of][n-1])
				held[of] = held[of][:n-1]
				continue
			}
			n := rapid.IntRange(1, 60).Draw(t, "bytes")
			fits := int(used)+n <= total && int(each[of])+n <= total/2
			check.Equal(t, "acquired", fits, b.Acquire(of, n))
			if fits {
				held[of] = append(held[of], n)
			}
		}
		for of, all := range held {
			for _, n := range all {
				b.Release(of, n)
			}
		}
		used, each := b.Used()
		check.Equal(t, "used at the end", int64(0), used)
		check.Equal(t, "clients at the end", 0, len(each))
	})
	var none *Memory
	check.Equal(t, "without a bound", true, none.Acquire("a", math.MaxInt))
	none.Release("a", math.MaxInt)
}
