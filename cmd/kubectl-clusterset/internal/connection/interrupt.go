// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Changes reports whether a command has sent a request that changes a cluster.
type Changes struct{ atomic.Bool }

type changedKey struct{}

// NoteChanges returns a context with which connections of connect note changes, and where they note them.
func NoteChanges(ctx context.Context) (context.Context, *Changes) {
	result := &Changes{}
	return context.WithValue(ctx, changedKey{}, result), result
}

// Interrupted returns what to do after an interruption of the command.
func (c *Changes) Interrupted() string {
	if !c.Load() {
		return "interrupted: nothing has been changed"
	}
	return "interrupted: run the same command again to finish what it has begun"
}

// noted returns a transport that notes requests that change the cluster. It is for commands without a dry run.
func noted(inner http.RoundTripper) http.RoundTripper { return noting{inner} }

type noting struct{ http.RoundTripper }

// RoundTrip sends a request.
func (n noting) RoundTrip(request *http.Request) (*http.Response, error) {
	if c, ok := request.Context().Value(changedKey{}).(*Changes); ok && changes(request) {
		c.Store(true)
	}
	return n.RoundTripper.RoundTrip(request)
}

// changes reports whether a request changes a cluster. A pod that checks something is deleted in any case, and a token alone changes nothing.
func changes(request *http.Request) bool {
	path := request.URL.Path + "/"
	switch {
	case request.Method == http.MethodGet, request.URL.Query().Get("dryRun") == metav1.DryRunAll, strings.Contains(path, "/pods/"):
		return false
	}
	return request.Method != http.MethodPost || !strings.HasSuffix(path, "/token/")
}
