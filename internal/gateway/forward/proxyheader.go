// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net"
	"net/netip"

	"github.com/pires/go-proxyproto"

	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// The types of the values that say who the client is, in the range for custom use of the PROXY protocol, version 2, section 2.2.
const (
	proxyCluster   proxyproto.PP2Type = 0xE0
	proxyNamespace proxyproto.PP2Type = 0xE1
	proxyAccount   proxyproto.PP2Type = 0xE2
)

// proxyHeader returns the PROXY protocol header of a stream, version 2, with a checksum. The source is the client as its cluster states it. The
// destination is the Service port at the unspecified address, because the address that the client has used is not known (G14).
func proxyHeader(cluster clusterset.ClusterID, request wire.Open) ([]byte, error) {
	transport, unspecified := proxyproto.TCPv4, netip.IPv4Unspecified()
	if request.Client.Is6() {
		transport, unspecified = proxyproto.TCPv6, netip.IPv6Unspecified()
	}
	header := proxyproto.Header{
		Version: 2, Command: proxyproto.PROXY, TransportProtocol: transport,
		SourceAddr:      net.TCPAddrFromAddrPort(netip.AddrPortFrom(request.Client, request.ClientPort)),
		DestinationAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(unspecified, request.Port)),
	}
	values := []proxyproto.TLV{
		{Type: proxyproto.PP2_TYPE_CRC32C, Value: make([]byte, crc32.Size)}, // of the header with this value
		{Type: proxyCluster, Value: []byte(cluster)},
	}
	if request.ClientNamespace != "" {
		values = append(values, proxyproto.TLV{Type: proxyNamespace, Value: []byte(request.ClientNamespace)})
	}
	if request.ServiceAccount != "" {
		values = append(values, proxyproto.TLV{Type: proxyAccount, Value: []byte(request.ServiceAccount)})
	}
	if err := header.SetTLVs(values); err != nil {
		return nil, fmt.Errorf("PROXY protocol header: %w", err)
	}
	empty, err := header.Format()
	if err != nil {
		return nil, fmt.Errorf("PROXY protocol header: %w", err)
	}
	binary.BigEndian.PutUint32(values[0].Value, crc32.Checksum(empty, crc32.MakeTable(crc32.Castagnoli)))
	if err := header.SetTLVs(values); err != nil {
		return nil, fmt.Errorf("PROXY protocol header: %w", err)
	}
	return header.Format()
}
