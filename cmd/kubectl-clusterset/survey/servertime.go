// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"net/http"
	"sync"
	"time"
)

// serverTime is the clock of an API server, read from the Date header of its responses (RFC 9110), to a second.
type serverTime struct {
	mu sync.Mutex
	// last is the time of the last response by the server's clock, and received by the local clock.
	last, received time.Time
}

func (c *serverTime) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err != nil {
			return nil, err
		}
		if at, err := http.ParseTime(response.Header.Get("Date")); err == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.last, c.received = at, time.Now()
		}
		return response, nil
	})
}

// now returns the time of the last response and what has elapsed since then, or the local time if there was no response.
func (c *serverTime) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.IsZero() {
		return time.Now()
	}
	return c.last.Add(time.Since(c.received))
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
