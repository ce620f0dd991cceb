// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

// networkCheck is what "kubectl clusterset check-network" has pods of two clusters find out: whether they reach each other
// by their own addresses.
type networkCheck struct {
	// listen is where to send back what comes; reach are the addresses of others that do, comma-separated.
	listen, reach string
	// within is how long a connection may take, from its beginning until all has come back; 0 for networkCheckTimeout.
	within time.Duration
}

// payload does not fit into a packet: a network whose packets are smaller than their senders believe lets connections begin
// and then stand still.
const payload = 64 << 10

const networkCheckTimeout = 5 * time.Second

// reached is what became of one address; the field names are read by cmd/kubectl-clusterset/cli.
type reached struct {
	Address string `json:"address"`
	// Error is empty where all came back.
	Error string `json:"error,omitempty"`
}

func (c networkCheck) run(ctx context.Context, out io.Writer) error {
	within := cmp.Or(c.within, networkCheckTimeout)
	if c.listen != "" {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.listen)
		if err != nil {
			return fmt.Errorf("--check-network-listen: %w", err)
		}
		return echo(ctx, listener, within)
	}
	return json.NewEncoder(out).Encode(reachAll(ctx, strings.Split(c.reach, ","), within))
}

// echo sends back what comes, until ctx ends.
func echo(ctx context.Context, listener net.Listener, within time.Duration) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() }) // what it says is what Accept says
	defer stop()
	for {
		connection, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		go func() {
			defer connection.Close()
			if connection.SetDeadline(time.Now().Add(within)) == nil {
				_, _ = io.Copy(connection, io.LimitReader(connection, payload)) // the other side sees what is missing
			}
		}()
	}
}

// reachAll tries all addresses at once and returns what became of them, in their order.
func reachAll(ctx context.Context, addresses []string, within time.Duration) []reached {
	results := make([]reached, len(addresses))
	var group sync.WaitGroup
	for i, address := range addresses {
		group.Go(func() {
			results[i].Address = address
			if err := reach(ctx, address, within); err != nil {
				results[i].Error = err.Error()
			}
		})
	}
	group.Wait()
	return results
}

// reach returns nil where all that is sent to an address comes back in time.
func reach(ctx context.Context, address string, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	connection, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer connection.Close()
	deadline, _ := ctx.Deadline()
	if err := connection.SetDeadline(deadline); err != nil {
		return err
	}
	sent := bytes.Repeat([]byte("tombolo "), payload/8)
	failed := make(chan error, 1)
	go func() {
		_, err := connection.Write(sent)
		failed <- err
	}()
	received := make([]byte, payload)
	n, err := io.ReadFull(connection, received)
	if err := errors.Join(err, <-failed); err != nil {
		return fmt.Errorf("a connection began, but only %d of %d bytes came back: %w", n, payload, err)
	}
	if !bytes.Equal(sent, received) {
		return errors.New("what came back is not what was sent: another program answers there")
	}
	return nil
}
