// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"encoding/binary"
	"io"
	"net"
	"sync/atomic"
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// Streams that carry 64 KiB, one after the other on one connection, are sent in short TLS records, because the other gateway keeps a buffer of the
// size of the longest one. A stream that carries much is sent in long ones. RFC 8446, section 5: a record has a header of 5 bytes, of which the
// last two are its length.
//
// spec: G6, G12
func TestShortRecords(t *testing.T) {
	t.Parallel()
	const overhead = 1 + 16     // type and authentication tag
	var longest [2]atomic.Int64 // in each direction
	both := trusts(t, "east", "west")
	_, gateway := exporter(t, both["west"], serve(t, echo).Addr())
	between := serve(t, func(conn *net.TCPConn) {
		to := dial(t, gateway)
		go relayRecords(conn, to, &longest[0])
		relayRecords(to, conn, &longest[1])
	})
	_, address := importer(t, both["east"], between.Addr().String())
	for _, stream := range []struct {
		bytes, streams int
		longest        int64
	}{{64 << 10, 10, 4 << 10}, {4 << 20, 1, 16 << 10}} {
		for range stream.streams {
			client := dial(t, address)
			go func() { _, _ = client.Write(make([]byte, stream.bytes)); _ = client.CloseWrite() }()
			got, err := io.Copy(io.Discard, client)
			check.Must(t, err)
			check.Equal(t, "bytes that come back", int64(stream.bytes), got)
		}
		check.Equal(t, "bytes of the longest record", stream.longest+overhead, max(longest[0].Load(), longest[1].Load()))
	}
}

// relayRecords copies TLS records until one side has closed, and notes the length of the longest one.
func relayRecords(to, from *net.TCPConn, longest *atomic.Int64) {
	defer to.Close()
	header := make([]byte, 5)
	for {
		if _, err := io.ReadFull(from, header); err != nil {
			return
		}
		length := int64(binary.BigEndian.Uint16(header[3:]))
		longest.Store(max(longest.Load(), length))
		_, err := to.Write(header)
		if err == nil {
			_, err = io.CopyN(to, from, length)
		}
		if err != nil {
			return
		}
	}
}
