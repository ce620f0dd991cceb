// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// silent is a hub that sends the header of a response after one delay, and the body after another, unless the request is canceled.
type silent struct{ answer, rest time.Duration }

func (s silent) RoundTrip(request *http.Request) (*http.Response, error) {
	if err := pass(request.Context(), s.answer); err != nil {
		return nil, err
	}
	reader, writer := io.Pipe()
	go func() {
		_ = writer.CloseWithError(pass(request.Context(), s.rest))
	}()
	return &http.Response{Body: reader}, nil
}

func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d): //nolint:forbidigo //nolint:forbidigo // the clock of a synctest bubble
		return nil
	}
}

// TestDeadlines: every request to a hub that does not answer ends. A watch does not end before the hub ends it.
func TestDeadlines(t *testing.T) {
	t.Parallel()
	const never = 24 * time.Hour
	for name, test := range map[string]struct {
		query string
		own   time.Duration
		hub   silent
		after time.Duration
		err   string
	}{
		"an answer":                          {hub: silent{20 * time.Second, 5 * time.Second}, after: 25 * time.Second},
		"no answer":                          {hub: silent{never, 0}, after: 30 * time.Second, err: "the hub has not answered within 30s"},
		"half an answer":                     {hub: silent{time.Second, never}, after: 30 * time.Second, err: "the hub has not answered within 30s"},
		"a deadline of its own, longer":      {own: 2 * time.Minute, hub: silent{time.Minute, 0}, after: time.Minute},
		"a deadline of its own, shorter":     {own: time.Second, hub: silent{never, 0}, after: time.Second, err: "context deadline exceeded"},
		"a watch that the hub ends":          {query: "watch=true&timeoutSeconds=300", hub: silent{time.Second, 300 * time.Second}, after: 301 * time.Second},
		"a watch that is never ended":        {query: "watch=true&timeoutSeconds=300", hub: silent{time.Second, never}, after: 331 * time.Second, err: "the hub has not answered within 30s"},
		"a watch without an answer":          {query: "watch=true&timeoutSeconds=300", hub: silent{never, 0}, after: 30 * time.Second, err: "the hub has not answered within 30s"},
		"a watch without a time limit":       {query: "watch=true", hub: silent{time.Second, time.Hour}, after: time.Hour + time.Second},
		"a watch from which nothing is read": {query: "watch=true&timeoutSeconds=1", hub: silent{0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if test.own > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, test.own)
					defer cancel()
				}
				start := time.Now()
				err := ask(ctx, deadlines{test.hub, requestDeadline}, test.query)
				check.Equal(t, "ends after", test.after, time.Since(start))
				check.Equal(t, "error", test.err, check.Message(err))
			})
		})
	}
}

// ask makes a request and reads the whole answer.
func ask(ctx context.Context, through http.RoundTripper, query string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://hub/records?"+query, strings.NewReader(""))
	if err != nil {
		return err
	}
	response, err := through.RoundTrip(request)
	if err != nil {
		return err
	}
	_, err = io.ReadAll(response.Body)
	return errors.Join(err, response.Body.Close())
}
