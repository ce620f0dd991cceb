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
