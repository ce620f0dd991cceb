// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package handshakes

import (
	"sync"
	"time"
)

// watch takes each connection for one whose ClientHello is complete: gateways run on Linux, and elsewhere only in tests and the demo.
type watch struct {
	added chan *peer
	once  sync.Once
	done  chan struct{}
}

func newWatch() (*watch, error) {
	return &watch{added: make(chan *peer), done: make(chan struct{})}, nil
}

func (w *watch) close() { w.once.Do(func() { close(w.done) }) }

func (w *watch) add(c *peer) error {
	select {
	case w.added <- c:
	case <-w.done:
	}
	return nil
}

func (w *watch) remove(*peer) {}

func (w *watch) wait(until time.Time) ([]*peer, error) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case c := <-w.added:
		return []*peer{c}, nil
	case <-timer.C:
		return nil, nil
	}
}

func (c *peer) progress() stage { return complete }
