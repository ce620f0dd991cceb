// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package tunnel

import (
	"net"
	"time"
)

// setUserTimeout does nothing: gateways run on Linux, and elsewhere only in tests and the demo.
func setUserTimeout(*net.TCPConn, time.Duration) error { return nil }
