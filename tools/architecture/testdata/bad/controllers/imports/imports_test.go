// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"testing"
	clock "time"
)

func TestSleep(*testing.T) {
	clock.Sleep(clock.Second) // want: sleep
}

func TestTimers(t *testing.T) {
	<-clock.After(clock.Second) // want: sleep
	<-clock.Tick(clock.Second)  // want: sleep
	timer := clock.NewTimer(clock.Second)
	<-timer.C // want: sleep
	ticker := clock.NewTicker(clock.Second)
	for range 2 {
		<-ticker.C // want: sleep
	}
	events := make(chan int)
	select {
	case <-events:
		t.Error("something happened")
	case <-clock.After(clock.Second): // want: sleep
	}
	timer.Reset(clock.Second)
	select {
	case <-events:
		t.Error("something happened")
	case <-timer.C: // want: sleep
	}
}
