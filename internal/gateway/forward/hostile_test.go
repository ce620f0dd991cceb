// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/budget"
	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	"github.com/tombolo-mcs/tombolo/internal/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
)

// peer connects to a gateway as a gateway of another member does, and sends only HELLO.
func peer(t *testing.T, trust identity.Trust, address string) remotePeer {
	t.Helper()
	tcp := dial(t, address)
	conn, err := tunnel.Client(t.Context(), tcp, trust.Client("west"), tunnel.NewBuffers(1))
	check.Must(t, err)
	t.Cleanup(conn.Release)
	check.Must(t, tcp.SetReadDeadline(time.Now().Add(deadline)))
	return remotePeer{conn}
}

// remotePeer is a gateway of another member as tests write it: without a loop, so that it waits.
type remotePeer struct{ *tunnel.Conn }

// Next waits for the next frame.
func (p remotePeer) Next() (tunnel.Frame, error) {
	frame, _, err := p.Conn.Next()
	return frame, err
}

func frame(kind wire.Type, stream uint32, payload ...byte) []byte {
	return wire.Append(nil, kind, stream, payload)
}

func joined(frames ...[]byte) (all []byte) {
	for _, frame := range frames {
		all = append(all, frame...)
	}
	return all
}

// answers returns what a gateway sends until it closes the connection or refuses a stream, as names of frames with the code of a refusal.
func answers(t *testing.T, conn remotePeer) (result string) {
	t.Helper()
	for {
		frame, err := conn.Next()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("after %q: the gateway does not close the connection", result)
		}
		if err != nil {
			return result
		}
		result += frame.Type.String() + " "
		if refusal, err := wire.DecodeRefusal(frame.Payload); err == nil && frame.Type == wire.TypeRefused {
			result += refusal.Code.String()
			if !slices.Contains([]wire.Code{wire.CodeReconnect, wire.CodeShutdown, wire.CodeMalformedOpen}, refusal.Code) {
				return result // the connection is kept
			}
		}
	}
}

// A member with a valid certificate violates the protocol, or asks for what is not exported. spec: G6, G12
//
//nolint:tparallel // they share a stream that must not be affected
func TestHostileDialer(t *testing.T) {
	t.Parallel()
	listener := serve(t, echo)
	both := trusts(t, "east", "west")
	e, gateway := exporter(t, both["west"], listener.Addr())
	_, beside := importer(t, both["east"], gateway)
	well := dial(t, beside)
	say(t, well)
	foreign := web
	foreign.Service = "other"
	open := wire.Append(nil, wire.TypeOpen, 1, web.Encode())
	var pings []byte
	for range maxPings + 1 {
		pings = wire.Append(pings, wire.TypePing, 0, make([]byte, wire.PingLength))
	}
	for name, test := range map[string]struct {
		frames []byte
		want   string
	}{
		"a service that is not exported":  {wire.Append(nil, wire.TypeOpen, 1, foreign.Encode()), "REFUSED NotExported"},
		"a malformed OPEN":                {frame(wire.TypeOpen, 1, 129), "REFUSED MalformedOpen"},
		"a stream after a refusal":        {joined(frame(wire.TypeOpen, 1, 129), wire.Append(nil, wire.TypeOpen, 2, web.Encode())), "REFUSED MalformedOpen"},
		"the wrong number":                {wire.Append(nil, wire.TypeOpen, 2, web.Encode()), ""},
		"two streams at a time":           {joined(open, wire.Append(nil, wire.TypeOpen, 2, web.Encode())), "OPENED "},
		"DATA without a stream":           {frame(wire.TypeData, 1, 'x'), ""},
		"DATA of another stream":          {joined(open, frame(wire.TypeData, 2, 'x')), "OPENED "},
		"DATA after FIN":                  {joined(open, frame(wire.TypeFin, 1), frame(wire.TypeData, 1, 'x')), "OPENED "},
		"two FINs":                        {joined(open, frame(wire.TypeFin, 1), frame(wire.TypeFin, 1)), "OPENED "},
		"RESET without a stream":          {frame(wire.TypeReset, 1, 0, 1), ""},
		"RESET of a stream":               {joined(open, frame(wire.TypeReset, 1, 0, 1)), "OPENED "},
		"a second HELLO":                  {frame(wire.TypeHello, 0, 0, 1, 0, 1, 0), ""},
		"frames that only exporters send": {frame(wire.TypeGoaway, 0), ""},
		"OPENED":                          {joined(open, frame(wire.TypeOpened, 1)), "OPENED "},
		"garbage":                         {[]byte("GET / HTTP/1.1\r\n\r\n"), ""},
		"a frame that is too long":        {[]byte{byte(wire.TypeOpen), 0, 0xff, 0xff, 0, 0, 0, 1}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			conn := peer(t, both["east"], gateway)
			check.Must(t, conn.SendFrames(test.frames))
			// The echo of FIN can come before the gateway reads what violates the protocol.
			if got := answers(t, conn); !slices.Contains([]string{test.want, test.want + "FIN ", test.want + "FIN DONE "}, got) {
				t.Errorf("the gateway answers %q, want %q, and closes the connection", got, test.want)
			}
			say(t, well)
		})
	}
	t.Run("a service whose endpoints do not accept", func(t *testing.T) {
		_, gateway := exporter(t, both["west"], refusing(t))
		conn := peer(t, both["east"], gateway)
		check.Must(t, conn.SendFrames(open))
		frame, err := conn.Next()
		check.Must(t, err)
		refusal, err := wire.DecodeRefusal(frame.Payload)
		check.Must(t, err)
		if refusal.Text != "none of 1 endpoints has accepted the connection" { // no address
			t.Errorf("the refusal says %q", refusal.Text)
		}
	})
	t.Run("too many PINGs", func(t *testing.T) {
		conn := peer(t, both["east"], gateway)
		check.Must(t, conn.SendFrames(pings))
		if got := len(answers(t, conn)); got > maxPings*len("PONG ") {
			t.Errorf("%d bytes of answers", got)
		}
		say(t, well)
	})
	t.Run("too many connections", func(t *testing.T) {
		release := full(e.Connections, func(int) string { return "east" })
		defer release()
		check.Equal(t, "the gateway answers", "", answers(t, peer(t, both["east"], gateway)))
		say(t, well)
	})
	t.Run("handshakes that are not complete", func(t *testing.T) {
		hello := wire.Append(nil, wire.TypeHello, 0, wire.Hello{Oldest: wire.Version, Newest: wire.Version, Role: wire.RoleDialerOpens}.Encode())
		var verified []*tls.Conn
		for range runtime.GOMAXPROCS(0) + 2 { // more than handshakes may compute
			conn := tls.Client(dial(t, gateway), both["east"].Client("west"))
			check.Must(t, conn.Handshake())
			_, err := io.ReadFull(conn, make([]byte, len(hello))) // the certificate is accepted
			check.Must(t, err)
			verified = append(verified, conn)
		}
		for range 300 {
			dial(t, gateway)
		}
		for _, conn := range verified {
			_, err := conn.Write(joined(hello, frame(wire.TypePing, 0, make([]byte, wire.PingLength)...)))
			if err == nil {
				_, err = conn.Read(make([]byte, 1))
			}
			if err != nil {
				t.Errorf("a peer that is verified is closed because of others: %v", err)
			}
		}
		peer(t, both["east"], gateway)
		say(t, well)
	})
}

// A member with a valid certificate sends frames that an exporter may not send: its clients are reset, others are not affected. spec: G6
func TestHostileExporter(t *testing.T) {
	t.Parallel()
	both := trusts(t, "east", "west")
	opened, data := frame(wire.TypeOpened, 1), frame(wire.TypeData, 1, 'x')
	for name, frames := range map[string][]byte{
		"DATA before OPENED":     data,
		"OPENED twice":           joined(opened, opened),
		"DONE before FIN":        joined(opened, frame(wire.TypeDone, 1)),
		"DATA after FIN":         joined(opened, frame(wire.TypeFin, 1), data),
		"DATA of another stream": joined(opened, frame(wire.TypeData, 2, 'x')),
		"OPEN":                   wire.Append(nil, wire.TypeOpen, 1, web.Encode()),
		"PONG without PING":      frame(wire.TypePong, 0, make([]byte, wire.PingLength)...),
		"REFUSED after OPENED":   joined(opened, wire.Append(nil, wire.TypeRefused, 1, (&wire.Refusal{Code: wire.CodeLimit}).Encode())),
		"RESET that is too long": {byte(wire.TypeReset), 0, 0, 3, 0, 0, 0, 1, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener := serve(t, func(tcp *net.TCPConn) {
				conn, err := tunnel.Server(context.Background(), tcp, both["west"].Server(), tunnel.NewBuffers(1), tunnel.Steps{})
				if err != nil {
					return
				}
				defer conn.Release()
				if _, _, err := conn.Next(); err == nil && conn.SendFrames(frames) == nil {
					for err == nil {
						_, _, err = conn.Next()
					}
				}
			})
			_, address := importer(t, both["east"], listener.Addr().String())
			client, err := tunnel.DialTCP(t.Context(), address, deadline, nil)
			if err == nil { // the reset can be faster than the client
				t.Cleanup(func() { client.Close() })
				_, err = client.Write([]byte("request"))
			}
			if err == nil {
				_, err = readAll(t, client)
			}
			if !isReset(err) && (err != nil || name != "DATA after FIN") {
				t.Errorf("the client got %v, want a reset", err)
			}
		})
	}
}

// Peers that are no member of the clusterset reach nothing. spec: G5
func TestUnknownPeers(t *testing.T) {
	t.Parallel()
	both, others := trusts(t, "east", "west"), trusts(t, "east", "west", "north")
	_, gateway := exporter(t, both["west"])
	for name, trust := range map[string]identity.Trust{"a forged certificate": others["east"], "another cluster": others["north"]} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := trust.Client("west")
			config.VerifyConnection = func(tls.ConnectionState) error { return nil }
			if _, err := tunnel.Client(t.Context(), dial(t, gateway), config, tunnel.NewBuffers(1)); err == nil {
				t.Error("the gateway accepts it")
			}
		})
	}
}

// full acquires until a limit is reached. The result releases what was acquired.
func full(limits *budget.Limits, of func(n int) string) (release func()) {
	var acquired []func()
	for n := 0; ; n++ {
		free, err := limits.Acquire(of(n))
		if err != nil {
			break
		}
		acquired = append(acquired, free)
	}
	return func() {
		for _, free := range acquired {
			free()
		}
	}
}

// spec: G12
//
//nolint:tparallel // each uses up the limits
func TestLimits(t *testing.T) {
	t.Parallel()
	i, e, address := pair(t, echo)
	say(t, dial(t, address))
	for name, side := range map[string]struct {
		limits *budget.Limits
		of     string
	}{"of the importing gateway": {i.Limits, web.Client.String()}, "of the exporting gateway": {e.Limits, "east"}} {
		for kind, of := range map[string]func(n int) string{"in total": strconv.Itoa, "of each": func(int) string { return side.of }} {
			t.Run(name+" "+kind, func(t *testing.T) {
				release := full(side.limits, of)
				_, err := request(t, address)
				checkReset(t, "the client beyond the limit", err)
				release()
				if got, err := request(t, address); got != "request" || err != nil {
					t.Errorf("within the limit: %q, %v", got, err)
				}
			})
		}
	}
}

// TestClose: a gateway that ends closes the connections that are still open, on either side.
//
// spec: G5
func TestClose(t *testing.T) {
	t.Parallel()
	for name, closeAll := range map[string]func(*Importer, *Exporter){
		"the importing gateway": func(i *Importer, _ *Exporter) { i.Pool.Close() },
		"the exporting gateway": func(_ *Importer, e *Exporter) { e.closeAll() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, e, address := pair(t, echo)
			client := dial(t, address)
			say(t, client)
			closeAll(i, e)
			_, err := readAll(t, client)
			checkReset(t, "the client", err)
		})
	}
}

// TestUnknownCodes: another gateway cannot create series of metrics with codes of its choice.
//
// spec: G11, G12
func TestUnknownCodes(t *testing.T) {
	t.Parallel()
	m := NewMetrics("import")
	for code := range 1000 {
		m.refused("west", wire.Code(1000+code))
	}
	check.Equal(t, "series", 1, testutil.CollectAndCount(m.refusedTotal))
}
