// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tunnel exchanges the frames of the gateway protocol over TLS (G6). docs/gateway-protocol.md specifies the protocol.
package tunnel

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// handshakeTimeout is the time for the TLS handshake and both HELLOs.
const handshakeTimeout = 10 * time.Second

// Conn is a connection to a gateway of another cluster. After Attach, only its loop uses it, except for Check and IsTrusted.
type Conn struct {
	// Cluster is the cluster of the other gateway, as its certificate says.
	Cluster clusterset.ClusterID
	// Version is that of the protocol.
	Version uint16

	tls    *tls.Conn
	config *tls.Config
	// own is the certificate that the peer has verified.
	own     *x509.Certificate
	socket  *socket
	remote  net.Addr
	buffers *Buffers
	steps   Steps

	// plain is the part of the buffer that Next has not returned, or partial while there is no buffer.
	plain   []byte
	buffer  *buffer
	partial []byte
	// payload is the part of the current DATA frame that has not been read.
	payload wire.Header
	next    int // the size of the next buffer
	// sent is the number of bytes that were sent since the stream sending has begun.
	sent    int
	sending uint32
	// mayHold is set if TLS may have bytes for which no record is read.
	mayHold bool
}

// Client returns a connection that opens streams. It takes over the TCP connection, and closes it after an error.
func Client(ctx context.Context, tcp *net.TCPConn, config *tls.Config, buffers *Buffers) (*Conn, error) {
	c := &Conn{config: config.Clone(), buffers: buffers}
	if get := config.GetClientCertificate; get != nil {
		c.config.GetClientCertificate = func(request *tls.CertificateRequestInfo) (*tls.Certificate, error) { return c.present(get(request)) }
	}
	return c.handshake(ctx, tcp, tls.Client)
}

// Server returns a connection that accepts streams. It takes over the TCP connection, and closes it after an error. Steps may be empty.
func Server(ctx context.Context, tcp *net.TCPConn, config *tls.Config, buffers *Buffers, steps Steps) (*Conn, error) {
	c := &Conn{config: config.Clone(), buffers: buffers, steps: steps}
	if get := config.GetCertificate; get != nil {
		c.config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return c.present(get(hello)) }
	}
	return c.handshake(ctx, tcp, tls.Server)
}

// handshake waits for TLS and for HELLO of the peer, which says that the peer has accepted the certificate.
func (c *Conn) handshake(ctx context.Context, tcp *net.TCPConn, over func(net.Conn, *tls.Config) *tls.Conn) (*Conn, error) {
	c.socket, c.remote = &socket{TCPConn: tcp, buffers: c.buffers, steps: c.steps}, tcp.RemoteAddr()
	c.tls = over(c.socket, c.config)
	err := tcp.SetDeadline(time.Now().Add(handshakeTimeout))
	if err == nil {
		err = c.greet(ctx)
	}
	if err != nil {
		tcp.Close()
		c.release()
		c.socket.release()
		return nil, fmt.Errorf("handshake with %s: %w", c.remote, err)
	}
	return c, nil
}

func (c *Conn) greet(ctx context.Context) (err error) {
	if err := c.tls.HandshakeContext(ctx); err != nil {
		return err
	}
	c.socket.steps = Steps{}
	if c.Cluster, err = identity.PeerCluster(c.tls.ConnectionState()); err != nil {
		return err
	}
	if err := c.steps.verified(c.Cluster); err != nil {
		return err
	}
	ours := wire.Hello{Oldest: wire.OldestVersion, Newest: wire.Version, Role: wire.RoleDialerOpens}
	if err := c.Send(wire.TypeHello, 0, ours.Encode()); err != nil {
		return err
	}
	first, _, err := c.Next()
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
	if c.Version, err = wire.Negotiate(ours, theirs); err != nil {
		return err
	}
	if err := c.Check(); err != nil { // the peer may have waited before HELLO
		return err
	}
	return c.SetDeadline(time.Time{})
}

// Attach hands the connection over to a loop, which must be the caller. The connection is closed after an error. The first frames may be
// there already, although no event will say so.
func (c *Conn) Attach(l *loop.Loop, handler loop.Handler) error {
	fd, err := detach(c.socket.TCPConn)
	if err == nil {
		c.socket.loop, err = l.Add(fd, handler)
	}
	return err
}

// RemoteAddr returns the address of the other gateway; nil if c is nil.
func (c *Conn) RemoteAddr() net.Addr {
	if c == nil {
		return nil
	}
	return c.remote
}

// Socket returns the socket in the loop.
func (c *Conn) Socket() *loop.Socket { return c.socket.loop }

// Queued returns the number of bytes that the kernel has not taken.
func (c *Conn) Queued() int { return c.socket.queued() }

// Flush writes what is queued.
func (c *Conn) Flush() { c.socket.flush() }

// Frame is a frame, or a part of a DATA frame. Its payload is valid until the next call of Next.
type Frame struct {
	wire.Header
	Payload []byte
}

// Next returns the next frame, and false if none is there now. DATA is returned in parts, as it arrives. The error is io.EOF if the peer has
// closed the connection, and a *wire.ProtocolError if the peer violates the protocol.
func (c *Conn) Next() (Frame, bool, error) {
	for {
		frame, complete, err := c.parse()
		if err != nil || complete {
			return frame, complete, err
		}
		switch err := c.fill(); {
		case errors.Is(err, errNothing):
			return Frame{}, false, nil
		case err != nil:
			return Frame{}, false, err
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

// fill reads what is there. It keeps no buffer if that is nothing.
func (c *Conn) fill() error {
	if len(c.plain) > 0 {
		c.partial = slices.Clone(c.plain) // of a header or a frame of at most wire.MaxControl bytes
	}
	c.release()
	if s := c.socket; s.loop != nil && !s.loop.Readable && len(s.in) == 0 && !c.mayHold {
		return errNothing
	}
	b := c.buffers.take(c.next)
	start := copy(b.data, c.partial)
	n, err := c.read(b.data[start:])
	if n == 0 {
		c.buffers.release(b)
		return err
	}
	c.buffer, c.partial = b, nil
	c.plain, c.next = b.data[:start+n], nextSize(n, len(b.data)-start)
	return nil
}

// read reads into b what is there. During the handshake it waits for the first bytes.
func (c *Conn) read(b []byte) (n int, err error) {
	for n < len(b) && err == nil && (c.socket.loop != nil || n == 0) {
		var read int
		read, err = c.tls.Read(b[n:])
		n += read
	}
	c.mayHold = !errors.Is(err, errNothing)
	return n, err
}

func (c *Conn) release() {
	c.buffers.release(c.buffer)
	c.buffer, c.plain = nil, nil
}

// Finish says that this side sends nothing more. CloseWrite of the socket is to follow when nothing is queued.
func (c *Conn) Finish() { _ = c.tls.CloseWrite() }

// Discard drops what is there, and reports whether the peer has closed the connection. The kernel would discard the last frame if bytes of
// the peer were unread.
func (c *Conn) Discard() bool {
	s := c.socket
	s.in, c.plain = nil, nil
	s.left = 0
	for s.loop.Readable {
		s.move(s.buffers.take(smallSize))
		n, err := s.loop.Read(s.buffer.data)
		s.releaseEmpty()
		if n == 0 && err == nil || s.loop.Failed {
			return true
		}
	}
	return false
}

// SetDeadline sets the time until which Next and Send wait, before Attach.
func (c *Conn) SetDeadline(t time.Time) error { return c.socket.SetDeadline(t) }

// Release closes the connection and gives its buffers back.
func (c *Conn) Release() {
	if c.socket.loop != nil {
		c.socket.loop.Close()
	} else {
		c.socket.Close()
	}
	c.release()
	c.socket.release()
}
