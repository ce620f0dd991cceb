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
		time.Sleep(time.Second)
		if time.Since(start) != time.Second {
			t.Error("the clock of a bubble is fake")
		}
	})
}
