// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/loop"
	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
)

// The answer to a probe has the ports that are open at the address to which it was sent, and where they lead: not those that could not be
// opened, or are about to be closed. They are sent only to a program that asks for them, and if it does not know them.
// spec: G2, G8
func TestServeReady(t *testing.T) {
	one, other := ports.Owner{Cluster: "west", Port: 80}, ports.Owner{Cluster: "north", Port: 80}
	const loopback, foreign, number = "127.0.0.1", "192.0.2.1", 0 // any port that is free; a listener cannot be opened at an address of another host
	g := &gateway{}
	g.clients = listeners{addresses: []string{loopback, foreign}, lag: time.Hour}
	g.clients.serve = func(_ context.Context, client loop.Accepted, _ ports.Owner, ended func()) {
		client.Close()
		ended()
	}
	defer g.clients.closeAll()
	ask := func(to, known string) *http.Response {
		t.Helper()
		request := httptest.NewRequest(http.MethodGet, "/readyz", http.NoBody)
		address := &net.TCPAddr{IP: net.ParseIP(to), Port: 8081}
		request = request.WithContext(context.WithValue(request.Context(), http.LocalAddrContextKey, net.Addr(address)))
		if known != "" {
			request.Header.Set("If-None-Match", known)
		}
		recorder := httptest.NewRecorder()
		g.serveReady(recorder, request)
		return recorder.Result()
	}
	answers := func(what, to, known string, status int, body string) (tag string) {
		t.Helper()
		response := ask(to, known)
		defer response.Body.Close()
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		check.Must(t, err)
		check.Equal(t, what+": status", status, response.StatusCode)
		check.Equal(t, what+": body", body, string(text))
		return response.Header.Get("ETag")
	}
	const nothing, anything = "", `""`
	text := func(owner ports.Owner) string { return string(ports.Open{number: ports.DigestOf(owner)}.Encode()) }

	g.setProblem(errors.New("it has read nothing"))
	check.Equal(t, "tag", "", answers("not ready", loopback, anything, http.StatusInternalServerError, "not ready\n"))
	g.setProblem(nil)
	empty := answers("ready", loopback, anything, http.StatusOK, nothing)
	if err := g.clients.apply(t.Context(), map[int32]ports.Owner{number: one}); err == nil {
		t.Error("a listener was opened at an address of another host")
	}
	opened := answers("open", loopback, empty, http.StatusOK, text(one))
	check.Equal(t, "tag", opened, answers("open, and known", loopback, opened, http.StatusNotModified, nothing))
	check.Equal(t, "tag", opened, answers("the kubelet", loopback, "", http.StatusOK, "ok"))
	check.Equal(t, "tag", empty, answers("the address at which the port is not open", foreign, anything, http.StatusOK, nothing))
	check.Equal(t, "tag", "", answers("no address of this gateway", "127.0.0.9", anything, http.StatusOK, "ok"))
	_ = g.clients.apply(t.Context(), map[int32]ports.Owner{number: other})
	moved := answers("with another owner", loopback, opened, http.StatusOK, text(other))
	_ = g.clients.apply(t.Context(), map[int32]ports.Owner{number: {}})
	check.Equal(t, "tag", empty, answers("about to be closed", loopback, moved, http.StatusOK, nothing))
	_ = g.clients.apply(t.Context(), map[int32]ports.Owner{number: other})
	check.Equal(t, "tag", moved, answers("wanted again", loopback, empty, http.StatusOK, text(other)))
	g.clients.closeAll()
	check.Equal(t, "tag", empty, answers("closed", loopback, moved, http.StatusOK, nothing))
}
