// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package tunnel

import (
	"errors"
	"syscall"
)

// readTCPInfo returns an error: gateways run on Linux, and elsewhere only in tests and the demo.
func readTCPInfo(syscall.RawConn) (tcpInfo, error) { return tcpInfo{}, errors.ErrUnsupported }
