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

// networkCheck checks whether pods of two clusters reach each other by their own addresses, for "kubectl clusterset
// check-network".
type networkCheck struct {
	// listen is the address at which data is echoed; reach are the comma-separated addresses to check.
	listen, reach string
	// timeout limits a connection, from dialing until all data is echoed; 0 means networkCheckTimeout.
	timeout time.Duration
}

// payload is larger than a packet: if the MTU is smaller than the senders assume, connections open and then hang.
const payload = 64 << 10

const networkCheckTimeout = 5 * time.Second

// reachResult is the result for one address. cmd/kubectl-clusterset/cli parses the field names.
type reachResult struct {
	Address string `json:"address"`
	// Error is empty if all data was echoed.
	Error string `json:"error,omitempty"`
}

func (c networkCheck) run(ctx context.Context, out io.Writer) error {
	timeout := cmp.Or(c.timeout, networkCheckTimeout)
	if c.listen != "" {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", c.listen)
		if err != nil {
			return fmt.Errorf("--check-network-listen: %w", err)
		}
		return echo(ctx, listener, timeout)
	}
	return json.NewEncoder(out).Encode(reachAll(ctx, strings.Split(c.reach, ","), timeout))
}

// echo echoes the data of all connections, until ctx ends.
func echo(ctx context.Context, listener net.Listener, timeout time.Duration) error {
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() }) // Accept returns the same error
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
			if connection.SetDeadline(time.Now().Add(timeout)) == nil {
				_, _ = io.Copy(connection, io.LimitReader(connection, payload)) // the client detects missing data
			}
		}()
	}
}

// reachAll checks all addresses in parallel and returns the results in their order.
func reachAll(ctx context.Context, addresses []string, timeout time.Duration) []reachResult {
	results := make([]reachResult, len(addresses))
	var group sync.WaitGroup
	for i, address := range addresses {
		group.Go(func() {
			results[i].Address = address
			if err := reach(ctx, address, timeout); err != nil {
				results[i].Error = err.Error()
			}
		})
	}
	group.Wait()
	return results
}

// reach returns nil if all data that is sent to an address is echoed in time.
func reach(ctx context.Context, address string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
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
