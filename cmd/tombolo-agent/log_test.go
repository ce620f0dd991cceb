// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// TestShowHidden: a value that has a content is not logged as an empty one.
func TestShowHidden(t *testing.T) {
	t.Parallel()
	type hidden struct {
		name    string
		healthy bool
	}
	type shown struct{ Name string }
	for want, value := range map[string]any{
		`"[{name:started healthy:false}]"`: []hidden{{"started", false}},
		`"{name:started healthy:true}"`:    hidden{"started", true},
		`"&{name:a healthy:true}"`:         &hidden{"a", true},
		`[{"Name":"a"}]`:                   []shown{{"a"}},
		`{}`:                               struct{}{},
		`{"a":[]}`:                         map[string][]hidden{"a": {}},
		`[]`:                               []string{},
		`null`:                             (*hidden)(nil),
		`"refused"`:                        errors.New("refused"),
		`"text"`:                           "text",
		`7`:                                7,
	} {
		var out bytes.Buffer
		slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: showHidden})).Info("m", "v", value)
		_, got, _ := strings.Cut(strings.TrimSuffix(out.String(), "}\n"), `"v":`)
		check.Equal(t, want, want, got)
	}
}

// processLog is the log of the libraries, which take a logger once in a process.
var processLog = sync.OnceValue(func() *bytes.Buffer {
	out := &bytes.Buffer{}
	ctrl.SetLogger(logr.FromSlogHandler(slog.NewJSONHandler(out, &slog.HandlerOptions{ReplaceAttr: showHidden})))
	return out
})

// TestFailedCheckIsNamed: the log of the agent names the check of /readyz that fails.
func TestFailedCheckIsNamed(t *testing.T) {
	out := processLog()
	out.Reset()
	handler := &healthz.Handler{Checks: map[string]healthz.Checker{"started": func(*http.Request) error { return errors.New("starting") }}}
	handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	if !strings.Contains(out.String(), `"statuses":"[{name:started healthy:false excluded:false}]"`) {
		t.Errorf("the log is %s", out)
	}
}
