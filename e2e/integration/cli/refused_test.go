// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// endOfWrite is how a write of the command ends, at the gate.
type endOfWrite string

const (
	refusal    endOfWrite = "refused"     // nothing is written, as after an interruption before the write
	lostAnswer endOfWrite = "answer lost" // the API server has done the write, and the command is interrupted
)

// gate is before the API servers of a hub and a member, and ends one of the writes of the command.
type gate struct {
	*world // its kubeconfig leads through the gate
	hub    [2]string

	mu        sync.Mutex
	end       int // the number of the write that is ended; 0 for none
	how       endOfWrite
	count     int
	write     string // the one that was ended
	interrupt context.CancelFunc
}

// startGate puts a gate before the hub and east.
func startGate(t *testing.T, w *world) *gate {
	t.Helper()
	g := &gate{}
	file := clientcmdapi.NewConfig()
	for i, name := range []string{"hub", "hub", "east"} { // the hub has two URLs
		config := w.Cluster(name).Config()
		at, err := url.Parse(config.Host)
		lab.Must(t, err)
		transport, err := rest.TransportFor(rest.AnonymousClientConfig(config))
		lab.Must(t, err)
		proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }, Transport: transport}
		server := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) { g.serve(proxy, rw, r) }))
		t.Cleanup(server.Close)
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		file.Clusters[name] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: ca}
		file.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
		file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
		if name == "hub" {
			g.hub[i] = server.URL
		}
	}
	g.world = &world{Lab: w.Lab, kubeconfig: filepath.Join(t.TempDir(), "gate"), agent: w.agent, build: w.build, clients: map[string]client.Client{}}
	lab.Must(t, clientcmd.WriteToFile(*file, g.kubeconfig))
	return g
}

func (g *gate) serve(proxy http.Handler, rw http.ResponseWriter, r *http.Request) {
	isWrite := r.Method != http.MethodGet && r.UserAgent() == "kubectl-clusterset" && !r.URL.Query().Has("dryRun")
	g.mu.Lock()
	if isWrite {
		g.count++
	}
	ends := isWrite && g.count == g.end
	if ends {
		g.write = r.Method + " " + r.URL.Path
	}
	how, interrupt := g.how, g.interrupt
	g.mu.Unlock()
	switch {
	case !ends:
		proxy.ServeHTTP(rw, r)
	case how == refusal:
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusForbidden)
		fmt.Fprint(rw, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"refused at the gate"}`)
	default:
		proxy.ServeHTTP(httptest.NewRecorder(), r)
		interrupt()
		panic(http.ErrAbortHandler) // no answer
	}
}

// runEnding runs a command whose n-th write ends in a way, and returns that write, empty if there are fewer.
func (g *gate) runEnding(t *testing.T, n int, how endOfWrite, command string) (write, out string, code int) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	g.set(n, how, interrupt)
	out, code = g.runUntil(ctx, command)
	g.mu.Lock()
	write = g.write
	g.mu.Unlock()
	g.set(0, "", nil)
	return write, out, code
}

func (g *gate) set(n int, how endOfWrite, interrupt context.CancelFunc) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.end, g.how, g.interrupt, g.count, g.write = n, how, interrupt, 0, ""
}

// TestJoinEnded ends each write of a join in turn. After it, a member still has credentials that the hub accepts, and the same command
// completes the join. No invitation stays open.
//
// spec: K1
func TestJoinEnded(t *testing.T) { //nolint:tparallel // its parts follow one another
	t.Parallel()
	w := start(t, "east")
	w.initHub(t, "hub")
	g := startGate(t, w)
	w.share(t, map[string]func(*testing.T){
		"another URL, installed by the command": func(t *testing.T) {
			g.must(t, g.rejoin(0, "--pod-cidrs 10.1.0.0/16"))
			g.each(t, refusal, func(n int) string { return g.rejoin(n, "") })
		},
		"another URL, installed by another client": func(t *testing.T) {
			g.installed(t)
			g.each(t, lostAnswer, func(n int) string { return g.rejoin(n, "") })
		},
		"invitation, installed by another client": func(t *testing.T) {
			g.installed(t)
			for _, how := range []endOfWrite{refusal, lostAnswer} {
				g.each(t, how, g.inviteAgain(t, string(how[:1])))
			}
		},
		"invitation of a new member": g.testNewMemberEnded,
	})
}

// rejoin returns a join with one of the two URLs of the hub, in turn.
func (g *gate) rejoin(n int, more string) string {
	return "join --context east --hub-context hub --cluster-id east --check-from-inside=false --wait 0 --hub-server " + g.hub[n%2] + " " + more
}

// installed makes east a member by another client than the command.
func (g *gate) installed(t *testing.T) {
	t.Helper()
	east := g.Cluster("east")
	_, err := membership.Admit(t.Context(), g.Cluster("hub"), manifests.MemberOptions{ClusterID: "east", PodCIDRs: membership.PodCIDRs(1)})
	lab.Must(t, err)
	lab.Must(t, membership.InstallCRDs(t.Context(), east))
	lab.Must(t, membership.Declare(t.Context(), east, "east"))
	_, err = membership.InstallAgent(t.Context(), east)
	lab.Must(t, err)
	g.must(t, g.rejoin(0, ""))
}

// inviteAgain returns a function that invites east, and returns the command that uses the invitation.
func (g *gate) inviteAgain(t *testing.T, prefix string) func(int) string {
	folder := t.TempDir()
	return func(n int) string {
		file := filepath.Join(folder, fmt.Sprintf("%s%d.yaml", prefix, n))
		g.must(t, "invite --context hub --cluster-id east --hub-server "+g.hub[n%2]+" -o "+file)
		return "join --context east --check-from-inside=false --wait 0 --invite " + file
	}
}

// each ends the first write of a command, then the second of the next one, until there are no more.
func (g *gate) each(t *testing.T, how endOfWrite, next func(n int) string) {
	t.Helper()
	for n := 1; ; n++ {
		command, before := next(n), g.secretVersion(t)
		write, out, code := g.runEnding(t, n, how, command)
		if write == "" {
			g.isJoined(t, "at the end", g.hub[n%2])
			if code != cli.ExitOK || n < 5 {
				t.Errorf("%d writes, exit code %d:\n%s", n-1, code, out)
			}
			return
		}
		when := fmt.Sprintf("write %d (%s) %s", n, write, how)
		if code == cli.ExitOK && !isVersionOmitted(n, write, out) {
			t.Errorf("%s: the command succeeds:\n%s", when, out)
		}
		g.hasCredentials(t, when)
		g.isInOrder(t, when, write, before, g.hub[n%2])
		g.must(t, command)
		g.isJoined(t, when, g.hub[n%2])
	}
}

// isVersionOmitted reports whether the first write was the request of a token that reads the hub's version. A join does without the version, and
// says so.
func isVersionOmitted(n int, write, out string) bool {
	return n == 1 && strings.HasSuffix(write, "/serviceaccounts/"+manifests.MemberServiceAccount+"/token") &&
		strings.Contains(out, "the version of the hub is not known (")
}

// credentialWrites are the writes that give an agent its credentials: nothing is between them.
var credentialWrites = []string{"/secrets/" + manifests.HubSecret, "/secrets/" + manifests.InvitationName, "/deployments/" + manifests.AgentDeployment}

// isInOrder: only the account of the member and the settings of the Member are written on the hub before the credentials, and only the end of
// the invitation and the restart of the agent follow the credentials at once.
func (g *gate) isInOrder(t *testing.T, when, write, before, want string) {
	t.Helper()
	isOf := func(part string) bool { return strings.HasSuffix(write, part) }
	isAccount := strings.Contains(write, "member-east") || isOf("/tombolo-hub-read:east")
	switch started := g.started(t); {
	case g.secretVersion(t) == before && !isOf(credentialWrites[0]) && (!isAccount || strings.Contains(write, "/resourcequotas/")):
		t.Errorf("%s: the agent has not got its credentials before", when)
	case g.secretVersion(t) == before || slices.ContainsFunc(credentialWrites, isOf):
	case started != want || !g.isInvitationUsed(t):
		t.Errorf("%s: the agent has its credentials, and was started with %s, want %s; used up: %t", when, started, want, g.isInvitationUsed(t))
	}
}

// secretVersion returns the version of the agent's Secret.
func (g *gate) secretVersion(t *testing.T) string {
	t.Helper()
	key := framework.Key{Namespace: manifests.AgentNamespace, Name: manifests.HubSecret}
	return framework.Read(t, g.client(t, "east"), key, &corev1.Secret{}).ResourceVersion
}

// started returns the URL with which the agent is started.
func (g *gate) started(t *testing.T) string {
	t.Helper()
	return g.deployment(t, manifests.AgentDeployment).Spec.Template.Annotations["tombolo-mcs.io/hub"]
}

// testNewMemberEnded has a new member join by one invitation: each run gets one write further than the run before. The first write that ends is
// the second one, since a join does without the first (isVersionOmitted).
func (g *gate) testNewMemberEnded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new.yaml")
	g.must(t, "invite --context hub --cluster-id east --pod-cidrs 10.1.0.0/16 --hub-server "+g.hub[0]+" -o "+file)
	command, ended := "join --context east --check-from-inside=false --wait 0 --invite "+file, false
	for n := 2; ; n++ {
		write, out, code := g.runEnding(t, n, refusal, command)
		if write == "" {
			if code != cli.ExitOK || n < 20 {
				t.Errorf("%d writes, exit code %d:\n%s", n-1, code, out)
			}
			break
		}
		if code == cli.ExitOK {
			t.Errorf("write %d (%s) is refused, and the command succeeds:\n%s", n, write, out)
		}
		if !ended && g.isInvitationUsed(t) {
			g.ends(t, g.read(t, file))
			ended = true
		}
	}
	g.isJoined(t, "after all refusals", g.hub[0])
	g.unchanged(t, command) // the same invitation is no error
}

// hasCredentials: the hub accepts what the Secret of the agent has.
func (g *gate) hasCredentials(t *testing.T, when string) {
	t.Helper()
	if server, err := g.credentials(t); err != nil {
		t.Errorf("%s: the agent has no credentials for %s: %v", when, server, err)
	}
}

// isJoined: the agent has credentials for a URL of the hub and is started with it, and there is no open invitation.
func (g *gate) isJoined(t *testing.T, when, want string) {
	t.Helper()
	server, err := g.credentials(t)
	if started := g.started(t); err != nil || server != want || started != want {
		t.Errorf("%s, and the same command again: the agent has the URL %q and was started with %q, want %q: %v", when, server, started, want, err)
	}
	if !g.isInvitationUsed(t) {
		t.Errorf("%s, and the same command again: the invitation is open", when)
	}
}

// isInvitationUsed reports whether the hub has no open invitation for east.
func (g *gate) isInvitationUsed(t *testing.T) bool {
	t.Helper()
	err := g.client(t, "hub").Get(t.Context(), client.ObjectKey{Namespace: "member-east", Name: manifests.InvitationName}, &corev1.Secret{})
	lab.Must(t, client.IgnoreNotFound(err))
	return err != nil
}
