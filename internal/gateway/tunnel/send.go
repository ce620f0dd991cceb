// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import "github.com/tombolo-mcs/tombolo/internal/gateway/wire"

// Send sends a frame other than DATA.
func (c *Conn) Send(t wire.Type, stream uint32, payload []byte) error {
	return c.SendFrames(wire.Append(nil, t, stream, payload))
}

// SendData sends a chunk as a frame, and releases the chunk.
func (c *Conn) SendData(stream uint32, chunk Chunk) error {
	defer chunk.Release()
	if stream != c.sending {
		c.sending, c.sent = stream, 0
	}
	wire.Header{Type: wire.TypeData, Length: chunk.n, Stream: stream}.Put(chunk.buffer.data)
	return c.SendFrames(chunk.buffer.data[:wire.HeaderLength+chunk.n])
}

// SendFrames sends frames that are encoded, or queues what the kernel does not take.
func (c *Conn) SendFrames(b []byte) error {
	return c.socket.together(len(b), func() error {
		for len(b) > 0 {
			n, err := c.tls.Write(b[:min(len(b), c.recordSize())])
			if err != nil {
				return err
			}
			c.sent += n
			b = b[n:]
		}
		return nil
	})
}

// The TLS of the other side keeps a buffer of the size of the longest record that it has received, as long as the connection is open. So the
// first firstBytes of a stream are sent in records of shortRecord bytes: a stream that carries little takes little memory afterwards, and one that
// carries much is as fast.
const firstBytes, shortRecord, longRecord = 256 << 10, 4 << 10, 16 << 10

func (c *Conn) recordSize() int {
	if c.sent < firstBytes {
		return shortRecord
	}
	return longRecord
}
