// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// kubeconfigOf returns a kubeconfig of an API server.
func kubeconfigOf(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	check.Must(t, os.WriteFile(path, []byte(`{apiVersion: v1, kind: Config, current-context: a, clusters: [{name: a, cluster: {server: "`+
		server+`"}}], contexts: [{name: a, context: {cluster: a, user: a}}], users: [{name: a, user: {token: t}}]}`), 0o600))
	return path
}

// wantInterrupted runs a command until it is interrupted before its first change.
func wantInterrupted(t *testing.T, ctx context.Context, command, kubeconfig string) { //nolint:revive // the context of the command
	t.Helper()
	var out bytes.Buffer
	args := append(strings.Fields(command), "--kubeconfig", kubeconfig)
	code := Run(ctx, Build{Version: "v0.0.0-test"}, args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	if code == ExitOK || !strings.HasSuffix("\n"+out.String(), "\ninterrupted: nothing has been changed\n") {
		t.Errorf("$ kubectl clusterset %s\n%sexit code %d", command, &out, code)
	}
}

// TestInterrupted: an interrupted command that only reads does not say that it has begun something.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0") // it accepts connections, and nothing answers
	check.Must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	kubeconfig := kubeconfigOf(t, "https://"+listener.Addr().String())
	for _, command := range []string{
		"status", "status --watch", "dashboard", "trace shop/web", "explain shop/web", "can-connect a/shop/web shop/web", "diff", "graph -o dot", "check-network",
		"bundle --file " + filepath.Join(t.TempDir(), "b"),
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		wantInterrupted(t, ctx, command, kubeconfig)
	}
}

// TestInterruptedChecks: neither does a command that writes, if it is interrupted during its checks.
func TestInterruptedChecks(t *testing.T) {
	t.Parallel()
	for _, command := range []string{
		"init-hub", "join --hub-context a --cluster-id a", "invite --cluster-id a -o " + filepath.Join(t.TempDir(), "i"), "dns", "upgrade", "leave --yes --from member",
		"export web", "unexport web",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			ctx, interrupt := context.WithCancel(t.Context())
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/version" {
					_, _ = io.WriteString(w, `{"major": "1", "minor": "36", "gitVersion": "v1.36.0"}`)
					return
				}
				interrupt()
				w.WriteHeader(http.StatusServiceUnavailable)
			}))
			defer server.Close()
			wantInterrupted(t, ctx, command, kubeconfigOf(t, server.URL))
		})
	}
}

// TestInterruptedChange: a command that is interrupted by its first change says that it can be finished.
func TestInterruptedChange(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			interrupt()
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		exportsOfWeb(w, r)
	}))
	defer server.Close()
	var out bytes.Buffer
	args := []string{"unexport", "-n", "shop", "web", "--kubeconfig", kubeconfigOf(t, server.URL)}
	code := Run(ctx, Build{}, args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &out})
	if code != ExitFailed || !strings.HasSuffix(out.String(), "interrupted: run the same command again to finish what it has begun\n") {
		t.Errorf("exit code %d\n%s", code, &out)
	}
}
