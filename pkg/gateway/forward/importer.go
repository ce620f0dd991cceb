// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/tunnel"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/wire"
)

const (
	// maxBuffered is the number of client bytes that are sent without an answer, and buffered for another attempt.
	maxBuffered = 64 << 10
	// maxAttempts is the number of connections on which a stream is tried.
	maxAttempts = 4
	// openTimeout is the time in which a stream must be open, with all attempts.
	openTimeout = 20 * time.Second
)

// Importer forwards clients of this cluster to other clusters.
type Importer struct {
	Pool *Pool
	// Permissions is nil if every stream is allowed.
	Permissions *Permissions
	Buffers     *tunnel.Buffers
	Metrics     *Metrics
	Limits      *Limits
	Access      AccessLog // nil for none

	openTimeout time.Duration // for tests; 0 means the constant
}

// Serve forwards a client to a service of a cluster, until both have closed the connection. The error says why the client was reset.
func (i *Importer) Serve(ctx context.Context, client *net.TCPConn, cluster clusterset.ClusterID, request wire.Open) error {
	local, err := tunnel.NewLocal(client, i.Buffers)
	if err != nil {
		client.Close()
		return err
	}
	record := i.Access.begin(Importing, cluster, request)
	release, err := i.Limits.acquire(request.Client.String())
	if err != nil {
		local.Abort()
		record.finish(nil, Result(wire.CodeLimit.String()))
		i.Metrics.refused(cluster, wire.CodeLimit)
		return err
	}
	defer release()
	within := cmp.Or(i.openTimeout, openTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, within, errOpenTimeout)
	defer cancel()
	o := &outgoing{
		stream:   stream{local: local, bytes: record.counting(i.Metrics.bytes(cluster)), over: make(chan struct{})},
		importer: i, cluster: cluster, request: request, started: time.Now(), ctx: ctx,
	}
	o.changed = sync.NewCond(&o.mu)
	defer context.AfterFunc(ctx, o.expire)()
	o.answerTimeout = within / 2
	o.unanswered = time.AfterFunc(o.answerTimeout, o.replace)
	defer o.unanswered.Stop()
	defer o.begin()()
	if o.sendEarly() == open && !o.eof {
		o.send()
	}
	<-o.over
	record.finish(o.conn.RemoteAddr(), o.result)
	if o.closed != nil {
		o.closed()
	}
	return o.err
}

var errOpenTimeout = &wire.Refusal{Code: wire.CodeTimeout, Text: "no gateway of the other cluster has opened the stream in time"}

// outgoing is the stream of a client. Until it is open, its connection to a gateway can be replaced by another.
type outgoing struct {
	stream
	importer *Importer
	cluster  clusterset.ClusterID
	request  wire.Open
	started  time.Time
	ctx      context.Context //nolint:containedctx // of the attempts, which several goroutines make

	// sending is held, before mu, while client bytes are sent that are also buffered.
	sending sync.Mutex
	// changed says that the state is no longer opening.
	changed *sync.Cond
	// buffered are the client's bytes until the stream is open, and eof says that it has sent all.
	buffered []byte
	eof      bool
	// sent is set if the current connection may have carried client bytes.
	sent bool
	// unanswered calls replace answerTimeout after OPEN was sent, which was at asked. silent is set if it has closed the connection.
	unanswered    *time.Timer
	answerTimeout time.Duration
	asked         time.Time
	silent        bool
	attempts      int
	failed        string // the address of the last gateway that did not open the stream
	err           error
	closed        func() // for the metrics; nil if the stream was never open
}

// attempt starts the stream on a connection. cause is why the one before did not open it.
func (o *outgoing) attempt(cause error) {
	for {
		l, err := o.importer.Pool.get(o.ctx, o.cluster, o.failed, o.choice())
		o.attempts++
		switch {
		case err == nil && o.start(l):
			return
		case o.attempts >= maxAttempts || o.ctx.Err() != nil:
			o.fail(errors.Join(cause, cmp.Or(err, errLost)))
			return
		}
	}
}

// start sends OPEN and the bytes that are buffered. It returns false if another connection is needed, because this one was lost while idle.
func (o *outgoing) start(l *link) bool {
	o.sending.Lock()
	defer o.sending.Unlock()
	frames, ok := o.firstFrames(l)
	if len(frames) > 0 && l.conn.SendFrames(frames) != nil {
		l.conn.Close() // its reader calls lost
	}
	return ok
}

func (o *outgoing) firstFrames(l *link) ([]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state != opening {
		o.importer.Pool.put(l)
		return nil, true
	}
	number, ok := l.begin(o)
	if !ok {
		return nil, false
	}
	o.conn, o.number, o.sent, o.silent = l.conn, number, len(o.buffered) > 0, false
	o.asked = time.Now()
	o.unanswered.Reset(o.answerTimeout)
	frames := wire.Append(nil, wire.TypeOpen, number, o.request.Encode())
	if len(o.buffered) > 0 {
		frames = wire.Append(frames, wire.TypeData, number, o.buffered)
	}
	if o.eof {
		frames = wire.Append(frames, wire.TypeFin, number, nil)
	}
	return frames, true
}

// sendEarly keeps and sends the client's bytes until the stream is open or has ended, and returns which of them.
func (o *outgoing) sendEarly() state {
	for {
		o.mu.Lock()
		for o.state == opening && (o.eof || len(o.buffered) == maxBuffered) {
			o.changed.Wait()
		}
		current, limit := o.state, maxBuffered-len(o.buffered)
		o.mu.Unlock()
		if current != opening {
			return current
		}
		chunk, err := o.local.Read(limit)
		if err != nil && !errors.Is(err, io.EOF) {
			o.reset(wire.CodeSocketReset)
			return ended
		}
		if err != nil {
			o.sendEnd()
		} else {
			o.keep(chunk)
		}
	}
}

// keep keeps and sends a chunk of the client's bytes.
func (o *outgoing) keep(chunk tunnel.Chunk) {
	o.sending.Lock()
	defer o.sending.Unlock()
	o.mu.Lock()
	if o.state == opening {
		o.buffered = append(o.buffered, chunk.Bytes()...)
		o.sent = true
	}
	conn, number := o.connNow()
	o.mu.Unlock()
	o.bytes(len(chunk.Bytes()), 0)
	if conn == nil { // they are sent with OPEN
		chunk.Release()
		return
	}
	if conn.SendData(number, chunk) != nil {
		conn.Close()
	}
}

// sendEnd says that the client has sent all.
func (o *outgoing) sendEnd() {
	o.sending.Lock()
	defer o.sending.Unlock()
	o.mu.Lock()
	o.eof, o.finSent = true, true
	conn, number := o.connNow()
	o.mu.Unlock()
	if conn != nil && conn.Send(wire.TypeFin, number, nil) != nil {
		conn.Close()
	}
}

// connNow returns the connection of the stream; nil if it has none now, or has ended. The caller holds the lock.
func (o *outgoing) connNow() (*tunnel.Conn, uint32) {
	if o.state == ended {
		return nil, 0
	}
	return o.conn, o.number
}

// isOpen handles OPENED.
func (o *outgoing) isOpen() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.silent { // too late: the connection is closed
		return errSilent
	}
	switch o.state {
	case opening:
		o.state, o.buffered = open, nil
		o.conn.SetUnblock(o.local.StopWriting)
		o.closed = o.importer.Metrics.opened(o.cluster)
		o.changed.Broadcast()
		observe(o.importer.Metrics.openSeconds, o.cluster, time.Since(o.started))
		return nil
	case ended: // RESET is on its path
		return nil
	default:
		return wire.Violation("OPENED twice")
	}
}

// isDone handles DONE.
func (o *outgoing) isDone() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state != open || !o.finSent || !o.finReceived {
		return wire.Violation("DONE before both FINs, or after RESET")
	}
	o.end()
	return nil
}

// expire resets the client if the stream is not open when its time is over.
func (o *outgoing) expire() {
	o.mu.Lock()
	expired := o.state == opening
	o.mu.Unlock()
	if expired {
		o.fail(context.Cause(o.ctx))
	}
}

// fail resets the client, unless the stream has ended.
func (o *outgoing) fail(cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.state == ended {
		return
	}
	if o.state == opening {
		code := wire.CodeUnreachable
		if refusal := refusalOf(cause); refusal != nil {
			code = refusal.Code
		}
		o.importer.Metrics.refused(o.cluster, code)
	}
	o.err = cause
	o.abort(resultOf(cause))
	o.changed.Broadcast()
	if o.conn != nil {
		o.conn.Close()
	}
}
