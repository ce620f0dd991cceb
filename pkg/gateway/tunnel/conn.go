// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tunnel exchanges the frames of the gateway protocol over TLS (G6). docs/gateway-protocol.md specifies the protocol.
package tunnel

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/identity"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/wire"
)

// handshakeTimeout is the time for the TLS handshake and both HELLOs.
const handshakeTimeout = 10 * time.Second

// closeTimeout is the time for which a closing side reads on, so that its last frame arrives.
const closeTimeout = 5 * time.Second

// Conn is a connection to a gateway of another cluster. One goroutine at a time may call Next; the other methods may be called by any.
type Conn struct {
	// Cluster is the cluster of the other gateway, as its certificate says.
	Cluster clusterset.ClusterID

	tls      *tls.Conn
	socket   *socket
	buffers  *Buffers
	writing  sync.Mutex
	isClosed atomic.Bool
	unblock  atomic.Pointer[func()] // see SetUnblock

	// plain is the part of the buffer that Next has not returned.
	plain  []byte
	buffer *buffer
	// payload is the part of the current DATA frame that has not been read.
	payload wire.Header
	next    int // the size of the next buffer
	// more is set if TLS may have bytes for which no record is read.
	more bool
}

// Client returns a connection that opens streams. It takes over the TCP connection, and closes it after an error.
func Client(ctx context.Context, tcp *net.TCPConn, config *tls.Config, buffers *Buffers) (*Conn, error) {
	return handshake(ctx, tcp, func(c net.Conn) *tls.Conn { return tls.Client(c, config) }, buffers)
}

// Server returns a connection that accepts streams. It takes over the TCP connection, and closes it after an error.
func Server(ctx context.Context, tcp *net.TCPConn, config *tls.Config, buffers *Buffers) (*Conn, error) {
	return handshake(ctx, tcp, func(c net.Conn) *tls.Conn { return tls.Server(c, config) }, buffers)
}

// handshake waits for TLS and for HELLO of the peer, which says that the peer has accepted the certificate.
func handshake(ctx context.Context, tcp *net.TCPConn, over func(net.Conn) *tls.Conn, buffers *Buffers) (*Conn, error) {
	socket, err := newSocket(tcp, buffers)
	if err == nil {
		err = tcp.SetDeadline(time.Now().Add(handshakeTimeout))
	}
	if err != nil {
		tcp.Close()
		return nil, err
	}
	c := &Conn{tls: over(socket), socket: socket, buffers: buffers}
	if err := c.greet(ctx); err != nil {
		c.Release()
		return nil, fmt.Errorf("handshake with %s: %w", tcp.RemoteAddr(), err)
	}
	return c, nil
}

func (c *Conn) greet(ctx context.Context) (err error) {
	if err := c.tls.HandshakeContext(ctx); err != nil {
		return err
	}
	c.socket.whole = true
	if c.Cluster, err = identity.PeerCluster(c.tls.ConnectionState()); err != nil {
		return err
	}
	ours := wire.Hello{Oldest: wire.Version, Newest: wire.Version, Role: wire.RoleDialerOpens}
	if err := c.Send(wire.TypeHello, 0, ours.Encode()); err != nil {
		return err
	}
	first, err := c.Next()
	switch {
	case err != nil:
		return err
	case first.Type != wire.TypeHello:
		return wire.Violation("%s is the first frame, not HELLO", first.Type)
	}
	theirs, err := wire.DecodeHello(first.Payload)
	if err != nil {
		return err
	}
	if _, err := wire.Negotiate(ours, theirs); err != nil {
		return err
	}
	return c.SetDeadline(time.Time{})
}

// RemoteAddr returns the address of the other gateway; nil if c is nil.
func (c *Conn) RemoteAddr() net.Addr {
	if c == nil {
		return nil
	}
	return c.socket.RemoteAddr()
}

// SetReadDeadline sets the time until which Next waits; the zero time means without end.
func (c *Conn) SetReadDeadline(t time.Time) error { return c.socket.SetReadDeadline(t) }

// SetDeadline sets the time until which Next and Send wait.
func (c *Conn) SetDeadline(t time.Time) error { return c.socket.SetDeadline(t) }

// Frame is a frame, or a part of a DATA frame. Its payload is valid until the next call of Next.
type Frame struct {
	wire.Header
	Payload []byte
}

// Next waits for the next frame and returns it. DATA is returned in parts, as it arrives. The error is io.EOF if the peer has closed
// the connection, and a *wire.ProtocolError if the peer violates the protocol. After an error the caller must call Release.
func (c *Conn) Next() (Frame, error) {
	for {
		frame, complete, err := c.parse()
		if err != nil || complete {
			return frame, err
		}
		if err := c.fill(); err != nil {
			return Frame{}, err
		}
	}
}

// parse returns the next frame of what has been read, and false if that does not contain a whole one.
func (c *Conn) parse() (Frame, bool, error) {
	if c.payload.Length == 0 {
		if len(c.plain) < wire.HeaderLength {
			return Frame{}, false, nil
		}
		header, err := wire.ParseHeader(c.plain)
		if err != nil {
			return Frame{}, false, err
		}
		if header.Type != wire.TypeData {
			end := wire.HeaderLength + header.Length
			if len(c.plain) < end {
				return Frame{}, false, nil
			}
			frame := Frame{header, c.plain[wire.HeaderLength:end]}
			c.plain = c.plain[end:]
			return frame, true, nil
		}
		c.payload, c.plain = header, c.plain[wire.HeaderLength:]
	}
	part := Frame{c.payload, c.plain[:min(c.payload.Length, len(c.plain))]}
	part.Length = len(part.Payload)
	c.payload.Length -= part.Length
	c.plain = c.plain[part.Length:]
	return part, part.Length > 0, nil
}

// fill waits until something is there, and reads it. It holds no buffer while it waits.
func (c *Conn) fill() error {
	partial := slices.Clone(c.plain) // of a header or a frame of at most wire.MaxControl bytes
	c.release()
	for {
		if !c.more {
			if err := c.socket.await(); err != nil {
				return err
			}
		}
		c.buffer = c.buffers.take(c.next)
		start := copy(c.buffer.data, partial)
		n, err := c.read(c.buffer.data[start:])
		if n > 0 {
			c.plain, c.next = c.buffer.data[:start+n], nextSize(n, len(c.buffer.data)-start)
			return nil
		}
		c.release()
		if !errors.Is(err, errNoRecord) {
			return err
		}
	}
}

// read reads into b as long as that does not block.
func (c *Conn) read(b []byte) (n int, err error) {
	for n < len(b) && err == nil {
		var read int
		read, err = c.tls.Read(b[n:])
		n += read
	}
	c.more = n == len(b)
	return n, err
}

func (c *Conn) release() {
	c.buffers.release(c.buffer)
	c.buffer, c.plain = nil, nil
}

// Send sends a frame other than DATA.
func (c *Conn) Send(t wire.Type, stream uint32, payload []byte) error {
	return c.SendFrames(wire.Append(nil, t, stream, payload))
}

// SendData sends a chunk as a frame, and releases the chunk.
func (c *Conn) SendData(stream uint32, chunk Chunk) error {
	defer chunk.Release()
	wire.Header{Type: wire.TypeData, Length: chunk.n, Stream: stream}.Put(chunk.buffer.data)
	return c.SendFrames(chunk.buffer.data[:wire.HeaderLength+chunk.n])
}

// SendFrames sends frames that are encoded.
func (c *Conn) SendFrames(b []byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	return c.socket.together(len(b), func() error {
		_, err := c.tls.Write(b)
		return err
	})
}

// Finish closes the connection after a last frame. It reads on until the peer has closed the connection too, because the kernel would
// discard the frame if bytes of the peer were unread. It is for the goroutine that calls Next, and replaces Release.
func (c *Conn) Finish() {
	defer c.Release()
	if c.socket.SetDeadline(time.Now().Add(closeTimeout)) == nil && c.tls.CloseWrite() == nil && c.socket.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, c.socket.TCPConn)
	}
}

// Release closes the connection and gives its buffers back. The goroutine that calls Next must call it at last.
func (c *Conn) Release() {
	c.Close()
	c.release()
	c.socket.in = nil
	c.socket.releaseEmpty()
}

// Close closes the connection, so that Next and Send return an error.
func (c *Conn) Close() {
	c.socket.Close()
	c.isClosed.Store(true)
	if unblock := c.unblock.Load(); unblock != nil {
		(*unblock)()
	}
}

// SetUnblock sets what Close calls, at once if the connection is closed already: it ends what the goroutine that calls Next waits for
// besides. It must not block, and may be called several times.
func (c *Conn) SetUnblock(unblock func()) {
	c.unblock.Store(&unblock)
	if c.isClosed.Load() {
		unblock()
	}
}
