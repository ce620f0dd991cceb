// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// Clock is the clock of an API server, read from the Date header of its responses (RFC 9110), to a second.
type Clock struct {
	mu sync.Mutex
	// last is the time of the last response by the server's clock, and received by the local clock.
	last, received time.Time
}

// Wrap returns a RoundTripper that reads the clock from each response. It is for rest.Config.Wrap.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(request *http.Request) (*http.Response, error) {
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

// Now returns the time of the last response and what has elapsed since then, or the local time if there was no response.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.IsZero() {
		return time.Now()
	}
	return c.last.Add(time.Since(c.received))
}

// RoundTripper is a function that sends a request.
type RoundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (r RoundTripper) RoundTrip(request *http.Request) (*http.Response, error) { return r(request) }

// Time returns the time of an API server.
func Time(ctx context.Context, config *rest.Config) (time.Time, error) {
	var clock Clock
	config = rest.CopyConfig(config)
	config.Wrap(clock.Wrap)
	c, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return time.Time{}, err
	}
	if _, err := c.RESTClient().Get().AbsPath("/version").DoRaw(ctx); err != nil {
		return time.Time{}, fmt.Errorf("get the version of %s: %w", config.Host, err)
	}
	return clock.Now(), nil
}
