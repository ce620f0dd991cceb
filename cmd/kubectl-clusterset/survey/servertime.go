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
	mu   sync.Mutex
	last time.Time
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
			c.last = at
		}
		return response, nil
	})
}

// now returns the time of the last response, or the local time if there was none.
func (c *serverTime) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.IsZero() {
		return time.Now()
	}
	return c.last
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (r roundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }
