// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports come from below the ranges that Linux (from 32768) and macOS (from 49152) use for outgoing connections: a client that reconnects
// must not take the port of a server that restarts.
const firstPort, lastPort = 20000, 32767

// portClaim reserves a TCP port of the loopback interface among labs. kube-apiserver cannot pick a port, so
// one is picked for it, and a picked port must stay reserved while its API server is down. The reservation is the UDP
// port of the same number, which our process holds: it excludes the labs of other processes, and ends with our process.
type portClaim struct {
	number int
	udp    net.PacketConn
}

func claimPort() (*portClaim, error) {
	for range 1000 {
		number := firstPort + rand.IntN(lastPort-firstPort+1)
		udp, err := net.ListenPacket("udp4", loopback(number))
		if err != nil {
			continue
		}
		claim := &portClaim{number: number, udp: udp}
		if tcp, err := net.Listen("tcp4", loopback(number)); err == nil && tcp.Close() == nil {
			return claim, nil
		}
		claim.release() // a process listens on the port
	}
	return nil, errors.New("no free port found on 127.0.0.1")
}

func (p *portClaim) release() {
	_ = p.udp.Close() // cannot fail in a way that matters: the port is free or our process ends
}

// FreePort returns a port of 127.0.0.1 that is free for TCP and UDP at this moment, and that no outgoing connection takes. Whoever listens
// on it next may find that another process has been quicker.
func FreePort() (int, error) {
	claim, err := claimPort()
	if err != nil {
		return 0, err
	}
	claim.release()
	return claim.number, nil
}

// FreeAddresses returns so many addresses of 127.0.0.1 as FreePort finds them, no two of them the same.
func FreeAddresses(n int) ([]string, error) {
	addresses := make([]string, n)
	for i := range addresses {
		claim, err := claimPort()
		if err != nil {
			return nil, err
		}
		defer claim.release() //nolint:gocritic // when all are found
		addresses[i] = loopback(claim.number)
	}
	return addresses, nil
}

// IsPortFree reports whether no process has a port of 127.0.0.1, neither for TCP nor for UDP.
func IsPortFree(port int) bool {
	tcp, err := net.Listen("tcp4", loopback(port))
	if err != nil {
		return false
	}
	defer tcp.Close()
	udp, err := net.ListenPacket("udp4", loopback(port))
	if err != nil {
		return false
	}
	return udp.Close() == nil
}

func loopback(port int) string {
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
}

// HostAddress returns an IPv4 address of this machine that EndpointSlices may contain, none of the loopback; empty if there is none.
func HostAddress() string {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return ""
	}
	for _, address := range addresses {
		if ip, ok := address.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() {
			return ip.IP.String()
		}
	}
	return ""
}
