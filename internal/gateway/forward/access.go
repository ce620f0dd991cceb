// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/gateway/stream"
	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Direction says whether a stream is that of a client of this cluster or of another one.
type Direction string

// The directions.
const (
	Importing Direction = "importing"
	Exporting Direction = "exporting"
)

// Result is how a stream has ended: one of these, or the code with which it was refused.
type Result string

// The results of streams that were open.
const (
	ResultDone           Result = "Done"           // all bytes of both directions were forwarded
	ResultLocalReset     Result = "LocalReset"     // the client of an Importer, or the backend of an Exporter, has reset its connection
	ResultRemoteReset    Result = "RemoteReset"    // the other gateway has reset the stream, because its side was reset
	ResultConnectionLost Result = "ConnectionLost" // the connection between the gateways has ended
	ResultProtocolError  Result = "ProtocolError"  // the other gateway has violated the protocol
)

// Access describes a stream that has ended. No field has text that another cluster has chosen, except for names that are valid.
type Access struct {
	Direction Direction
	// Cluster is the other cluster, and Stream what was asked for; it is empty if the other gateway has sent a malformed OPEN.
	Cluster clusterset.ClusterID
	Stream  wire.Open
	// Peer is the address of the gateway of the other cluster, or of the backend; empty if there was no connection.
	Peer string
	// Sent and Received count the bytes to the other cluster and from it.
	Sent, Received int64
	Duration       time.Duration
	Result         Result
}

// AccessLog is called with each stream that has ended. If it is nil, nothing is counted for it.
type AccessLog func(Access)

// access is a stream that has not ended. It is nil without an AccessLog.
type access struct {
	Access
	log            AccessLog
	started        time.Time
	sent, received atomic.Int64
}

func (l AccessLog) begin(direction Direction, cluster clusterset.ClusterID, request wire.Open) *access {
	if l == nil {
		return nil
	}
	return &access{Access: Access{Direction: direction, Cluster: cluster, Stream: request}, log: l, started: time.Now()}
}

// counting returns a function that counts bytes and calls next.
func (a *access) counting(next func(sent, received int)) func(sent, received int) {
	if a == nil {
		return next
	}
	return func(sent, received int) {
		a.sent.Add(int64(sent))
		a.received.Add(int64(received))
		next(sent, received)
	}
}

// finish is called when the stream has ended. peer is nil if there was no connection.
func (a *access) finish(peer fmt.Stringer, result Result) {
	if a == nil {
		return
	}
	if peer != nil {
		a.Peer = peer.String()
	}
	a.Result, a.Duration = result, time.Since(a.started)
	a.Sent, a.Received = a.sent.Load(), a.received.Load()
	a.log(a.Access)
}

// resultOf returns the result of a stream that an error has ended; nil means that nothing has.
func resultOf(err error) Result {
	var violation *wire.ProtocolError
	var reset stream.ResetError
	var denied denied
	switch refusal := refusalOf(err); {
	case err == nil:
		return ResultDone
	case errors.Is(err, stream.ErrLocal):
		return ResultLocalReset
	case errors.As(err, &denied):
		return Result(denied.refusal.Code.String())
	case refusal != nil:
		return Result(refusal.Code.String())
	case errors.As(err, &reset):
		return ResultRemoteReset
	case errors.As(err, &violation):
		return ResultProtocolError
	}
	return ResultConnectionLost
}
