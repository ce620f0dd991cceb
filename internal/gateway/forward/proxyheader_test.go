// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/pires/go-proxyproto"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/balance"
	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// described returns what a header says, and checks its checksum as the PROXY protocol, version 2, section 2.2.3 says.
func described(t *testing.T, raw []byte) string {
	t.Helper()
	header, err := proxyproto.Read(bufio.NewReader(bytes.NewReader(raw)))
	check.Must(t, err)
	values, err := header.TLVs()
	check.Must(t, err)
	result := fmt.Sprintf("%s to %s", header.SourceAddr, header.DestinationAddr)
	for _, v := range values {
		if v.Type != proxyproto.PP2_TYPE_CRC32C {
			result += fmt.Sprintf(" %x=%s", byte(v.Type), v.Value)
			continue
		}
		empty := bytes.Replace(raw, v.Value, make([]byte, crc32.Size), 1)
		check.Equal(t, "checksum", crc32.Checksum(empty, crc32.MakeTable(crc32.Castagnoli)), binary.BigEndian.Uint32(v.Value))
	}
	return result
}

// spec: G14
func TestProxyHeader(t *testing.T) {
	t.Parallel()
	from := func(address string, request wire.Open) wire.Open {
		request.Client = netip.MustParseAddr(address)
		return request
	}
	for want, request := range map[string]wire.Open{
		"10.1.0.9:4711 to 0.0.0.0:80 e0=east e1=shop e2=front.end": from("10.1.0.9", wire.Open{Port: 80, ClientPort: 4711, ClientNamespace: "shop", ServiceAccount: "front.end"}),
		"10.1.0.9:0 to 0.0.0.0:65535 e0=east":                      from("10.1.0.9", wire.Open{Port: 65535}),
		"[fd00::9]:65535 to [::]:80 e0=east e1=shop":               from("fd00::9", wire.Open{Port: 80, ClientPort: 65535, ClientNamespace: "shop"}),
	} {
		raw, err := proxyHeader("east", request)
		check.Must(t, err)
		check.Equal(t, "header", want, described(t, raw))
	}
}

// proxied are endpoints whose connections begin with a header.
type proxied struct{ to net.Addr }

func (p proxied) Endpoints(clusterset.ClusterID, wire.Open) (balance.Endpoints, *wire.Refusal) {
	return balance.Endpoints{Addresses: []netip.AddrPort{p.to.(*net.TCPAddr).AddrPort()}, HasProxyHeader: true}, nil
}

// A backend reads the address of the client from the header, and after it what the client sends, also if the client has sent it before the
// stream was open. The header is not counted as a byte of the stream.
//
// spec: G14, G11
func TestProxied(t *testing.T) {
	t.Parallel()
	backend := serve(t, func(conn *net.TCPConn) {
		defer conn.Close()
		reader := bufio.NewReader(conn)
		header, err := proxyproto.Read(reader)
		if err != nil {
			t.Errorf("reading the header: %v", err)
			return
		}
		body, _ := io.ReadAll(reader)
		_, _ = fmt.Fprintf(conn, "%s said %s", header.SourceAddr, body)
	})
	logged := make(chan Access, 1)
	both := trusts(t, "east", "west")
	_, gateway := exporterWith(t, func(e *Exporter) {
		e.Backends, e.Access = proxied{backend.Addr()}, func(a Access) { logged <- a }
	}, both["west"])
	i, _ := importer(t, both["east"], gateway)
	address := accept(t, func(client loop.Accepted) {
		from := web
		from.Client, from.ClientPort = client.Peer.Addr(), client.Peer.Port()
		i.Serve(t.Context(), client, "west", from, func(error) {})
	}).Addr().String()
	client := dial(t, address)
	_, err := client.Write([]byte("hello"))
	check.Must(t, err)
	check.Must(t, client.CloseWrite())
	answer, err := io.ReadAll(client)
	check.Must(t, err)
	check.Equal(t, "answer", fmt.Sprintf("%s said hello", client.LocalAddr()), string(answer))
	check.Equal(t, "bytes from the client", int64(len("hello")), (<-logged).Received)
}
