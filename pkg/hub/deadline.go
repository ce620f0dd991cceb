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

// How long the hub may take to answer. What stands between may accept a request and never answer it, as a proxy whose hub is away does.
const (
	// requestDeadline is for a request that has no deadline of its own, and for the beginning of the answer to a watch.
	requestDeadline = 30 * time.Second
	// listDeadline is for a list of all records of a kind: an API server itself gives up after a minute.
	listDeadline = 2 * time.Minute
)

// deadlines gives each request a deadline: a watch that of its timeoutSeconds, if it has any.
type deadlines struct {
	next http.RoundTripper
	most time.Duration
}

// RoundTrip carries out a request. The deadline covers the body of the answer too.
func (d deadlines) RoundTrip(request *http.Request) (*http.Response, error) {
	if _, has := request.Context().Deadline(); has {
		return d.next.RoundTrip(request)
	}
	ctx, cancel := context.WithCancelCause(request.Context())
	timer := time.AfterFunc(d.most, func() { cancel(fmt.Errorf("the hub has not answered within %s", d.most)) })
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

// extend gives a watch whose answer has begun the rest of its time.
func (d deadlines) extend(timer *time.Timer, query url.Values) {
	if query.Get("watch") == "" || !timer.Stop() {
		return
	}
	if seconds, err := strconv.Atoi(query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		timer.Reset(time.Duration(seconds)*time.Second + d.most)
	}
}

// body is that of an answer; what it needs is released when it is closed.
type body struct {
	io.ReadCloser
	release func()
}

// Close closes the body.
func (b body) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}
