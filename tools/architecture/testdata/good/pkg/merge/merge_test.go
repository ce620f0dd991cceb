// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"
)

var _ cache.Store // tests may import what they need

func TestFakeClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		time.Sleep(time.Second / 2)
		<-time.After(time.Second / 2)
		if time.Since(start) != time.Second {
			t.Error("the clock of a bubble is fake")
		}
	})
}

func TestTimeouts(t *testing.T) {
	done := make(chan struct{})
	time.AfterFunc(time.Millisecond, func() { close(done) })
	limit := time.NewTimer(time.Minute)
	select {
	case <-done:
	case <-limit.C:
		t.Error("it takes too long")
	}
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Error("it takes too long")
	}
	poll := time.NewTicker(time.Millisecond)
	for tries := 0; tries < 2; tries++ {
		select {
		case <-poll.C:
		case <-done:
		}
	}
	<-done
}
