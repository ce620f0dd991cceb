// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package budget

import (
	"errors"
	"fmt"
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// A cluster that does not answer cannot use up the streams to other clusters, and one cluster alone can use most of them. The numbers of a
// client, of a cluster, and of all return to zero.
//
// spec: G12
func TestStreamsToEachCluster(t *testing.T) {
	t.Parallel()
	l := &Limits{Total: 80, Each: 70}
	var release []func()
	open := func(of string, to ...clusterset.ClusterID) (n int, err error) {
		for {
			done, err := l.Acquire(of, to...)
			if err != nil {
				return n, err
			}
			release = append(release, done)
			n++
		}
	}
	for _, step := range []struct {
		of   string
		to   []clusterset.ClusterID
		n    int
		want string
	}{
		{"10.0.0.1", []clusterset.ClusterID{"west"}, 60, "the gateway has 60 streams, 60 of them to cluster west: the rest is for other clusters"},
		{"10.0.0.2", []clusterset.ClusterID{"west"}, 0, "the gateway has 60 streams, 60 of them to cluster west: the rest is for other clusters"},
		{"10.0.0.1", []clusterset.ClusterID{"north"}, 10, "10.0.0.1 has 70 streams at this gateway, as many as it may have"},
		{"10.0.0.2", []clusterset.ClusterID{"north"}, 0, "the gateway has 70 streams, 10 of them to cluster north: the rest is for other clusters"},
		{"10.0.0.2", []clusterset.ClusterID{"south"}, 10, "the gateway has 80 streams, as many as it may have"},
	} {
		n, err := open(step.of, step.to...)
		what := fmt.Sprintf("streams of %s to %s", step.of, step.to)
		check.Equal(t, what, step.n, n)
		check.Equal(t, what, step.want, check.Message(err))
	}
	for _, done := range release {
		done()
	}
	check.Equal(t, "streams", 0, l.total+len(l.each)+len(l.to))

	n, err := open("east")
	check.Equal(t, "streams that a cluster opens", 70, n)
	check.Equal(t, "error", "east has 70 streams at this gateway, as many as it may have", check.Message(err))
}

// The memory of the streams is bounded for each client, and for each cluster as their number is.
//
// spec: G12
func TestMemoryOfEachCluster(t *testing.T) {
	t.Parallel()
	memory := New(80)
	l := &Limits{Total: 1000, Each: 1000, Memory: memory, Bytes: 2}
	var release []func()
	for _, step := range []struct {
		of   string
		to   clusterset.ClusterID
		n    int
		want string
	}{
		{"10.0.0.1", "west", 20, errMemory.Error()},
		{"10.0.0.2", "west", 10, "the streams of the gateway use three quarters of the memory that they may have, 30 of them to cluster west: the rest is for other clusters"},
		{"10.0.0.3", "north", 5, "the streams of the gateway use three quarters of the memory that they may have, 5 of them to cluster north: the rest is for other clusters"},
		{"10.0.0.4", "south", 5, "the streams of the gateway use three quarters of the memory that they may have, 5 of them to cluster south: the rest is for other clusters"},
		{"10.0.0.5", "far", 0, errMemory.Error()},
	} {
		for i := range step.n + 1 {
			done, err := l.Acquire(step.of, step.to)
			if i < step.n {
				check.Must(t, err)
				release = append(release, done)
				continue
			}
			check.Equal(t, fmt.Sprintf("one more stream of %s to %s", step.of, step.to), step.want, check.Message(err))
		}
	}
	for _, done := range release {
		done()
	}
	used, each := memory.Used()
	check.Equal(t, "bytes at the end", 0, int(used)+len(each))
}

// Streams that take memory beyond the budget of one client or cluster, or of all, are refused. Both directions share it.
//
// spec: G12
func TestMemoryOfStreams(t *testing.T) {
	t.Parallel()
	streams := New(4 * Stream)
	in, out := &Limits{Total: 10, Each: 10, Memory: streams, Bytes: Stream}, &Limits{Total: 10, Each: 10, Memory: streams, Bytes: Stream}
	var release []func()
	for i, step := range []struct {
		limits *Limits
		of     string
		want   error
	}{{in, "a", nil}, {in, "a", nil}, {in, "a", errMemory}, {out, "b", nil}, {in, "c", nil}, {out, "d", errMemory}} {
		free, err := step.limits.Acquire(step.of)
		if !errors.Is(err, step.want) {
			t.Errorf("stream %d: %v, want %v", i, err, step.want)
		}
		if free != nil {
			release = append(release, free)
		}
	}
	for _, free := range release {
		free()
	}
	used, _ := streams.Used()
	check.Equal(t, "bytes at the end", int64(0), used)
}
