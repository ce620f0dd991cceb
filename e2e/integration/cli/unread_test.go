// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// readingVerb is how a command that reads is run here.
type readingVerb struct {
	args string
	// shows is what it prints of east, if the hub can be read, and withoutHub if it cannot; empty if it shows nothing then.
	shows, withoutHub string
	code              int
	// untilInterrupted is set if it does not end by itself.
	untilInterrupted bool
	// kinds is set if it reads the kinds of the Multi-Cluster Services API in each member.
	kinds bool
	// isLocal is set if it reads one API server only, or none: it has nothing else to show.
	isLocal bool
}

// readingVerbs has each command that reads, by its name.
func readingVerbs(folder string) map[string]readingVerb {
	const everything = " --contexts east,west --hub-context hub"
	return map[string]readingVerb{
		"status":    {kinds: true, args: "status" + everything, shows: "east", withoutHub: "east", code: cli.ExitIncomplete},
		"dashboard": {args: "dashboard" + everything, shows: "http://127.0.0.1", withoutHub: "http://127.0.0.1", code: cli.ExitIncomplete, untilInterrupted: true},
		"trace":     {kinds: true, args: "trace shop/web" + everything, shows: "east", withoutHub: "east", code: cli.ExitIncomplete},
		"explain":   {kinds: true, args: "explain shop/web" + everything, shows: "is exported by 2 clusters", withoutHub: "east", code: cli.ExitIncomplete},
		"can-connect": {
			args: "can-connect west/shop/frontend shop/web" + everything, shows: "east: yes", withoutHub: "have these rules", code: cli.ExitIncomplete,
		},
		"diff":          {kinds: true, args: "diff" + everything, code: cli.ExitDiffFailed},
		"graph":         {kinds: true, args: "graph -o dot" + everything, shows: "member east", withoutHub: "member east", code: cli.ExitIncomplete},
		"check-network": {args: "check-network --yes" + everything, shows: "pod or node range of 2 members", code: cli.ExitIncomplete},
		"bundle":        {kinds: true, args: "bundle --file " + folder + everything, shows: "holds what can be seen of", withoutHub: "holds what can be seen of", code: cli.ExitIncomplete},
		"invite":        {isLocal: true}, // it writes
		"invite list":   {isLocal: true},
		"version":       {isLocal: true},
	}
}

// TestReadingVerbs: readingVerbs has each command that does not write.
func TestReadingVerbs(t *testing.T) {
	t.Parallel()
	verbs := readingVerbs("")
	var visit func(path string, command *cobra.Command)
	visit = func(path string, command *cobra.Command) {
		for _, child := range command.Commands() {
			visit(strings.TrimSpace(path+" "+child.Name()), child)
		}
		_, isListed := verbs[path]
		if path != "" && command.Flag("dry-run") == nil && !isListed {
			t.Errorf("kubectl clusterset %s reads, and readingVerbs lacks it", path)
		}
	}
	visit("", cli.NewCommand(release, genericiooptions.IOStreams{}))
}

// breakage makes an API server unreadable, as a kubeconfig shows it.
type breakage func(t *testing.T, cluster *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo)

// breakages are the ways in which an API server cannot be read, with what is printed about it.
func breakages() map[string]struct {
	do   breakage
	text string
} {
	return map[string]struct {
		do   breakage
		text string
	}{
		"connection refused": {refuse, "connection refused"},
		"no TLS handshake":   {acceptOnly, "it has not answered within 5s"},
		"no answer":          {swallow, "it has not answered within 5s"},
		"another authority":  {distrust, "certificate"},
		"unauthorized":       {func(_ *testing.T, _ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) { user.Token = "wrong" }, "it does not accept your credentials"},
		"forbidden":          {func(_ *testing.T, _ *clientcmdapi.Cluster, user *clientcmdapi.AuthInfo) { user.Impersonate = "nobody" }, "forbidden"},
	}
}

func refuse(t *testing.T, cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
	t.Helper()
	listener := listen(t)
	cluster.Server = "https://" + listener.Addr().String()
	lab.Must(t, listener.Close())
}

func acceptOnly(t *testing.T, cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
	t.Helper()
	listener := listen(t) // the kernel accepts connections, and nothing answers
	t.Cleanup(func() { _ = listener.Close() })
	cluster.Server = "https://" + listener.Addr().String()
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	lab.Must(t, err)
	return listener
}

func swallow(t *testing.T, cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
	t.Helper()
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		select {
		case <-request.Context().Done():
		case <-ended:
		}
	}))
	t.Cleanup(func() {
		close(ended)
		server.Close()
	})
	cluster.Server, cluster.CertificateAuthorityData = server.URL, nil
}

func distrust(t *testing.T, cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
	t.Helper()
	other, err := lab.NewCertificate()
	lab.Must(t, err)
	cluster.CertificateAuthorityData = other.PEM
}

// without returns a breakage: an API server that does not serve an API group, or not in the version that is read.
func without(group string, config *rest.Config) breakage {
	return func(t *testing.T, cluster *clientcmdapi.Cluster, _ *clientcmdapi.AuthInfo) {
		t.Helper()
		target, err := url.Parse(config.Host)
		lab.Must(t, err)
		transport, err := rest.TransportFor(config)
		lab.Must(t, err)
		proxy := &httputil.ReverseProxy{
			Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
			Transport: transport, ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if strings.HasPrefix(request.URL.Path, "/apis/"+group) {
				http.NotFound(w, request)
				return
			}
			proxy.ServeHTTP(w, request)
		}))
		t.Cleanup(server.Close)
		cluster.Server, cluster.CertificateAuthorityData = server.URL, nil
	}
}

// notServed is printed about a kind that an API server does not serve.
const notServed = "it does not serve this kind in the version that is read"

// testUnread runs each command that reads with each API server unreadable in turn: it shows the rest, names within seconds what could not be
// read, once and with a next step, and its exit code says that this is not all.
func (s *surveyed) testUnread(t *testing.T) {
	slots := make(chan struct{}, 6)
	var cases sync.WaitGroup
	start := func(broken []string, name string, do breakage, text string) {
		cases.Go(func() { // not t.Parallel: they wait most of the time, and need none of the slots of go test
			t.Run(strings.Join(broken, " and ")+", "+name, func(t *testing.T) { s.runUnread(t, broken, do, text, slots) })
		})
	}
	for _, broken := range [][]string{{"hub"}, {"west"}, {"hub", "west"}} {
		for name, breakage := range breakages() {
			if len(broken) == 1 || name == "connection refused" || name == "no TLS handshake" {
				start(broken, name, breakage.do, breakage.text)
			}
		}
	}
	start([]string{"west"}, "no kinds", without("multicluster.x-k8s.io", s.Cluster("west").Config()), notServed)
	start([]string{"hub"}, "no kinds", without("hub.tombolo-mcs.io", s.Cluster("hub").Config()), "it is no hub, as it has no kind Member")
	cases.Wait()
}

// runUnread runs all commands with some broken API servers.
func (s *surveyed) runUnread(t *testing.T, broken []string, breaks breakage, text string, slots chan struct{}) {
	t.Helper()
	folder := t.TempDir()
	config, err := clientcmd.LoadFromFile(s.kubeconfig)
	lab.Must(t, err)
	for _, name := range broken {
		breaks(t, config.Clusters[name], config.AuthInfos[name])
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	lab.Must(t, clientcmd.WriteToFile(*config, kubeconfig))
	for name, verb := range readingVerbs(filepath.Join(folder, "bundle.tar.gz")) {
		if verb.isLocal || text == notServed && !verb.kinds {
			continue
		}
		slots <- struct{}{}
		out, code, took := runVerb(t, verb, kubeconfig)
		<-slots
		shows := verb.shows
		if slices.Contains(broken, "hub") {
			shows = verb.withoutHub
		}
		const limit = 20 * time.Second // some seconds, on a busy machine
		for _, line := range strings.Split(out, "\n") {
			if hint, isHint := strings.CutPrefix(strings.TrimSpace(line), "-> "); isHint && strings.Count(out, hint) > 1 {
				t.Errorf("$ kubectl clusterset %s\n%ssays twice: %s", name, out, hint)
			}
		}
		if code != verb.code || took > limit || !strings.Contains(out, shows) || !strings.Contains(out, text) {
			t.Errorf("$ kubectl clusterset %s\n%sexit code %d after %s, want %d within %s with %q and %q", name, out, code, took, verb.code, limit, shows, text)
		}
	}
}

// runVerb runs a command, and returns what it prints, its exit code and the time that it takes.
func runVerb(t *testing.T, verb readingVerb, kubeconfig string) (string, int, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &interrupter{cancel: func() {}}
	if verb.untilInterrupted {
		out.cancel = cancel
	}
	began := time.Now()
	code := cli.Run(ctx, release, append(strings.Fields(verb.args), "--kubeconfig", kubeconfig),
		genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: out})
	return out.String(), code, time.Since(began)
}

// interrupter is the output of a command that is interrupted when it says that this ends it.
type interrupter struct {
	lab.Buffer
	cancel func()
}

func (i *interrupter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "Interrupt the command to end it") {
		defer i.cancel()
	}
	return i.Buffer.Write(p)
}
