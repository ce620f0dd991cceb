// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"net/netip"
	"strings"
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

// throughProxied returns where clients connect to a backend that gets a header, and their streams when they have ended.
func throughProxied(t *testing.T, backend net.Addr) (address string, ended chan Access) {
	t.Helper()
	ended = make(chan Access, 1)
	both := trusts(t, "east", "west")
	_, gateway := exporterWith(t, func(e *Exporter) {
		e.Backends, e.Access = proxied{backend}, func(a Access) { ended <- a }
	}, both["west"])
	i, _ := importer(t, both["east"], gateway)
	return accept(t, func(client loop.Accepted) {
		from := web
		from.Client, from.ClientPort = client.Peer.Addr(), client.Peer.Port()
		i.Serve(context.Background(), client, "west", from, func(error) {})
	}).Addr().String(), ended
}

// A backend reads the address of the client from the header, and after it what the client sends, also if the client has sent it before the
// stream was open. It also reads it if the client sends nothing, or waits for the backend. The header is not counted as bytes of the stream.
//
// spec: G14, G11
func TestProxied(t *testing.T) {
	t.Parallel()
	address, ended := throughProxied(t, serve(t, func(conn *net.TCPConn) {
		defer conn.Close()
		reader := bufio.NewReader(conn)
		header, err := proxyproto.Read(reader)
		if err != nil {
			t.Errorf("reading the header: %v", err)
			return
		}
		_, _ = fmt.Fprintln(conn, header.SourceAddr)
		_, _ = io.Copy(conn, reader)
	}).Addr())
	for name, test := range map[string]struct {
		said string
		late bool // the client speaks after the backend
	}{"it speaks first": {said: "hello"}, "it sends nothing": {}, "it speaks last": {"hello", true}, "it sends much": {said: strings.Repeat("much", 1<<18)}} {
		client := dial(t, address)
		say := func() { // the echo shows whether all was sent
			_, _ = io.WriteString(client, test.said)
			_ = client.CloseWrite()
		}
		if !test.late {
			go say()
		}
		reader := bufio.NewReader(client)
		line, err := reader.ReadString('\n')
		check.Must(t, err)
		check.Equal(t, name+": client", client.LocalAddr().String()+"\n", line)
		if test.late {
			say()
		}
		echoed, err := io.ReadAll(reader)
		check.Must(t, err)
		check.Equal(t, name+": echo", test.said, string(echoed))
		check.Equal(t, name+": bytes from the client", int64(len(test.said)), (<-ended).Received)
	}
}

func BenchmarkProxyHeader(b *testing.B) {
	request := wire.Open{Port: 80, Client: netip.MustParseAddr("10.1.0.9"), ClientPort: 4711, ClientNamespace: "shop", ServiceAccount: "front.end"}
	for b.Loop() {
		if _, err := proxyHeader("east", request); err != nil {
			b.Fatal(err)
		}
	}
}
