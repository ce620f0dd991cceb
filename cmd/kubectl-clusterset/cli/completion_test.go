// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// exportsOfWeb answers as the API server of a cluster that exports shop/web, and imports shop/cart.
func exportsOfWeb(w http.ResponseWriter, r *http.Request) {
	const (
		group   = "/apis/multicluster.x-k8s.io/v1beta1"
		version = `"apiVersion": "multicluster.x-k8s.io/v1beta1"`
		export  = `{"kind": "ServiceExport", ` + version + `, "metadata": {"namespace": "shop", "name": "web", "uid": "1", "resourceVersion": "1"}}`
		exports = `{"kind": "ServiceExportList", ` + version + `, "items": [` + export + `]}`
		kind    = `, "namespaced": true, "verbs": ["get", "list", "delete"]}`
	)
	answer, ok := map[string]string{
		"/version": `{"major": "1", "minor": "36", "gitVersion": "v1.36.0"}`,
		"/api":     `{"kind": "APIVersions", "versions": ["v1"]}`,
		"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "multicluster.x-k8s.io", ` +
			`"versions": [{"groupVersion": "multicluster.x-k8s.io/v1beta1", "version": "v1beta1"}]}]}`,
		group: `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "multicluster.x-k8s.io/v1beta1", "resources": [` +
			`{"name": "serviceexports", "kind": "ServiceExport"` + kind + `, {"name": "serviceimports", "kind": "ServiceImport"` + kind + `]}`,
		group + "/serviceexports":                     exports,
		group + "/namespaces/shop/serviceexports":     exports,
		group + "/namespaces/shop/serviceexports/web": export,
		group + "/serviceimports":                     `{"kind": "ServiceImportList", ` + version + `, "items": [{"metadata": {"namespace": "shop", "name": "cart"}}]}`,
	}[r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, answer)
}

// TestCompletionOfUnreachableClusters: the shell offers what the clusters have that answer, and shows which one does not. The exit code is 0.
func TestCompletionOfUnreachableClusters(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(exportsOfWeb))
	t.Cleanup(server.Close)
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close() // nothing listens at its address
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	check.Must(t, os.WriteFile(kubeconfig, []byte(`{apiVersion: v1, kind: Config, users: [{name: u, user: {token: t}}],
clusters: [{name: up, cluster: {server: "`+server.URL+`"}}, {name: down, cluster: {server: "`+closed.URL+`"}}],
contexts: [{name: up, context: {cluster: up, user: u}}, {name: down, context: {cluster: down, user: u}}]}`), 0o600))
	for command, want := range map[string][]string{
		"trace --context up --hub-context up sh":        {"shop/cart", "shop/web"},
		"trace --context up --hub-context down sh":      {"shop/cart", "shop/web", "the hub could not be read"},
		"trace --context down --hub-context up sh":      {"this cluster could not be read"},
		"trace --context down --hub-context down sh":    {"the hub could not be read", "this cluster could not be read"},
		"trace --context up --hub-context down --from ": {"the hub could not be read"},
		"export --context down we":                      {"this cluster could not be read"},
		"unexport --context up -n shop we":              {"web"},
		"status --context down --hub-context ":          {"down", "up"},
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			verb, rest, _ := strings.Cut(command, " ")
			args := append([]string{"__complete", verb, "--kubeconfig", kubeconfig}, strings.Split(rest, " ")...)
			code := Run(t.Context(), Build{}, args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &bytes.Buffer{}})
			var got []string
			completions, _, _ := strings.Cut(out.String(), ":4\n") // the directive
			for line := range strings.Lines(completions) {
				text, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "_activeHelp_ not complete: "), ": ")
				got = append(got, text)
			}
			check.Equal(t, "exit code", ExitOK, code)
			check.Equal(t, "completions", want, got)
		})
	}
}
