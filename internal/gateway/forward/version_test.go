// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"crypto/tls"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
)

// A connection of version 1 is closed after REFUSED. One of version 2 carries the next stream, and drops what the dialer had sent before it
// got REFUSED, up to the bytes that a dialer may send before an answer.
//
// spec: G6
func TestAfterRefused(t *testing.T) {
	t.Parallel()
	both := trusts(t, "east", "west")
	foreign := web
	foreign.Service = "other"
	_, gateway := exporter(t, both["west"], serve(t, echo).Addr())
	refused, early := wire.Append(nil, wire.TypeOpen, 1, foreign.Encode()), make([]byte, 32<<10)
	next := joined(wire.Append(nil, wire.TypeOpen, 2, web.Encode()), wire.Append(nil, wire.TypeData, 2, []byte("x")))
	data := wire.Append(nil, wire.TypeData, 1, early)
	for name, test := range map[string]struct {
		newest uint16
		sent   []byte
		want   []wire.Type
	}{
		"version 1":                     {1, joined(refused, next), []wire.Type{wire.TypeHello, wire.TypeRefused}},
		"version 2":                     {2, joined(refused, next), []wire.Type{wire.TypeHello, wire.TypeRefused, wire.TypeOpened, wire.TypeData}},
		"version 2, with DATA":          {2, joined(refused, data, data, frame(wire.TypeFin, 1), next), []wire.Type{wire.TypeHello, wire.TypeRefused, wire.TypeOpened, wire.TypeData}},
		"version 2, with too much DATA": {2, joined(refused, data, data, data, next), []wire.Type{wire.TypeHello, wire.TypeRefused}},
		"version 9":                     {9, joined(refused, next), []wire.Type{wire.TypeHello, wire.TypeRefused, wire.TypeOpened, wire.TypeData}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := tls.Client(dial(t, gateway), both["east"].Client("west"))
			check.Must(t, conn.SetDeadline(time.Now().Add(deadline)))
			hello := wire.Append(nil, wire.TypeHello, 0, wire.Hello{Oldest: 1, Newest: test.newest}.Encode())
			_, err := conn.Write(joined(hello, test.sent))
			check.Must(t, err)
			var got []wire.Type
			for len(got) == 0 || got[len(got)-1] != wire.TypeData {
				head := make([]byte, wire.HeaderLength)
				if _, err = io.ReadFull(conn, head); err != nil {
					break
				}
				header, err := wire.ParseHeader(head)
				check.Must(t, err)
				got = append(got, header.Type)
				_, err = io.CopyN(io.Discard, conn, int64(header.Length))
				check.Must(t, err)
			}
			check.Equal(t, "frames", test.want, got)
			if want := test.want[len(test.want)-1] == wire.TypeRefused; want != errors.Is(err, io.EOF) {
				t.Errorf("the connection is closed: %v, want %v", err, want)
			}
		})
	}
}
