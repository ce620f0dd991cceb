// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// Deadlines of requests. A proxy in front of an unreachable hub may accept a request and never answer it.
const (
	// requestDeadline applies to a request without another deadline, and to the header of the response to a watch.
	requestDeadline = 30 * time.Second
	// listDeadline applies to a list of a kind. An API server times out after a minute.
	listDeadline = 2 * time.Minute
)

// deadlines is a RoundTripper that sets the deadline of each request. The deadline of a watch is its timeoutSeconds, if set.
type deadlines struct {
	next    http.RoundTripper
	timeout time.Duration
}

// RoundTrip sends a request. The deadline covers the body of the response too.
func (d deadlines) RoundTrip(request *http.Request) (*http.Response, error) {
	if _, has := request.Context().Deadline(); has {
		return d.next.RoundTrip(request)
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	timer := time.AfterFunc(d.timeout, func() { cancel(fmt.Errorf("the hub has not answered within %s", d.timeout)) })
	release := func() {
		timer.Stop()
		cancel(nil)
	}
	response, err := d.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		release()
		return nil, err
	}
	d.extend(timer, request.URL.Query())
	response.Body = body{response.Body, release}
	return response, nil
}

// extend sets the deadline of a watch whose response has begun.
func (d deadlines) extend(timer *time.Timer, query url.Values) {
	if query.Get("watch") == "" || !timer.Stop() {
		return
	}
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		timer.Reset(time.Duration(seconds)*time.Second + d.timeout)
	}
}

// body is the body of a response. Closing it stops the timer.
type body struct {
	io.ReadCloser
	release func()
}

// Close closes the body.
func (b body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
