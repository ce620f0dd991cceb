// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// readTCPInfo returns the kernel's state of a connection. It returns an error if the connection is closed.
func readTCPInfo(raw syscall.RawConn) (tcpInfo, error) {
	var (
		info   *unix.TCPInfo
		failed error
	)
	err := raw.Control(func(fd uintptr) { info, failed = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO) })
	if err != nil {
		return tcpInfo{}, err
	}
	if failed != nil {
		return tcpInfo{}, failed
	}
	return tcpInfo{int(info.Retransmits), int(info.Probes), time.Duration(info.Last_ack_recv) * time.Millisecond}, nil
}
