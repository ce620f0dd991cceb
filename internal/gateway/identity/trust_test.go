// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var now = time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)

func newAuthority(t testing.TB, id clusterset.ClusterID, at time.Time) Authority {
	t.Helper()
	authority, err := NewAuthority(id, at)
	check.Must(t, err)
	return authority
}

func newLeaf(t testing.TB, authority Authority, name Name, at time.Time) *tls.Certificate {
	t.Helper()
	certificate, key, err := authority.Issue(name, at)
	check.Must(t, err)
	leaf, err := DecodeLeaf(certificate, key)
	check.Must(t, err)
	return leaf
}

func poolOf(authorities ...Authority) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, authority := range authorities {
		pool.AddCert(authority.Certificate)
	}
	return pool
}

// forged is a copy of a leaf of b with changes, signed by an authority.
func forged(t *testing.T, authority Authority, change func(*x509.Certificate)) *tls.Certificate {
	t.Helper()
	own := newAuthority(t, "key", now) // only its key is used
	template := &x509.Certificate{
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), URIs: []*url.URL{Name{"set", "b"}.uri()}, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	change(template)
	certificate, err := create(template, authority.Certificate, own.key, authority.key)
	check.Must(t, err)
	return &tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: own.key, Leaf: certificate}
}

// shake connects a client and a server, and returns the errors of both.
func shake(t *testing.T, client, server *tls.Config) (peer tls.ConnectionState, clientErr, serverErr error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	defer listener.Close()
	done := make(chan error)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			served := tls.Server(conn, server)
			err = served.Handshake()
			peer = served.ConnectionState()
			_, _ = io.Copy(io.Discard, conn) // the client reads an alert before it closes
			_ = conn.Close()
		}
		done <- err
	}()
	conn, err := net.Dial("tcp", listener.Addr().String())
	check.Must(t, err)
	clientErr = tls.Client(conn, client).Handshake()
	_ = conn.Close()
	serverErr = <-done
	return peer, clientErr, serverErr
}

// checkRefusal fails the test if there is no error, or one without a text.
func checkRefusal(t *testing.T, what string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: the error is %v, want %q", what, err, want)
	}
}

// trusts are what the gateways of a and b trust: each other.
func trusts(t *testing.T) (a, b Trust, authorities map[clusterset.ClusterID]Authority) {
	t.Helper()
	authorities = map[clusterset.ClusterID]Authority{}
	trust := func(id clusterset.ClusterID) Trust {
		authorities[id] = newAuthority(t, id, now)
		leaf := newLeaf(t, authorities[id], Name{"set", id}, now)
		return Trust{
			Self: Name{"set", id}, Leaf: func() *tls.Certificate { return leaf }, Clock: clocktesting.NewFakePassiveClock(now),
			Authorities: func(peer clusterset.ClusterID) *x509.CertPool {
				if authority, ok := authorities[peer]; ok {
					return poolOf(authority)
				}
				return nil
			},
		}
	}
	return trust("a"), trust("b"), authorities
}

// spec: G5
func TestHandshake(t *testing.T) {
	t.Parallel()
	a, b, _ := trusts(t)
	state, clientErr, serverErr := shake(t, a.Client("b"), b.Server())
	check.Must(t, errors.Join(clientErr, serverErr))
	if peer, err := PeerCluster(state); err != nil || peer != "a" {
		t.Errorf("the peer is %q, %v", peer, err)
	}
	check.Equal(t, "server name that the client sends", "", state.ServerName)
	if _, err := PeerCluster(tls.ConnectionState{}); err == nil {
		t.Error("a connection without a handshake has a peer")
	}
}

// Each certificate of b that is not accepted, on both sides.
// spec: G5
func TestRefusedCertificates(t *testing.T) {
	t.Parallel()
	other := newAuthority(t, "b", now)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	check.Must(t, err)
	uris := func(uris ...string) func(*x509.Certificate) {
		return func(c *x509.Certificate) {
			c.URIs = nil
			for _, text := range uris {
				uri, err := url.Parse(text)
				check.Must(t, err)
				c.URIs = append(c.URIs, uri)
			}
		}
	}
	usage := func(usages ...x509.ExtKeyUsage) func(*x509.Certificate) {
		return func(c *x509.Certificate) { c.ExtKeyUsage = usages }
	}
	const (
		name    = "does not have exactly one name"
		another = "is not that of a cluster's gateways"
	)
	for title, test := range map[string]struct {
		authority string
		change    func(*x509.Certificate)
		want      string
	}{
		"of another authority":       {"", func(*x509.Certificate) {}, "signed by unknown authority"},
		"of another member":          {"a", func(*x509.Certificate) {}, "signed by unknown authority"},
		"expired":                    {"b", func(c *x509.Certificate) { c.NotAfter = now.Add(-time.Second) }, "has expired"},
		"not valid yet":              {"b", func(c *x509.Certificate) { c.NotBefore = now.Add(time.Second) }, "not yet valid"},
		"that names another cluster": {"b", uris("spiffe://set/cluster/c/gateway"), "cluster c is no member, is suspended, or publishes no gateway"},
		"that names the verifier":    {"b", uris("spiffe://set/cluster/a/gateway"), "which is no other member"},
		"of another clusterset":      {"b", uris("spiffe://other/cluster/b/gateway"), "which is no other member"},
		"with two names":             {"b", uris("spiffe://set/cluster/b/gateway", "spiffe://set/cluster/c/gateway"), name},
		"without a name":             {"b", uris(), name},
		"with a DNS name":            {"b", func(c *x509.Certificate) { c.DNSNames = []string{"b.example"} }, name},
		"with another scheme":        {"b", uris("https://set/cluster/b/gateway"), another},
		"with another path":          {"b", uris("spiffe://set/cluster/b/agent"), another},
		"with an encoded path":       {"b", uris("spiffe://set/cluster/%62/gateway"), another},
		"with a query":               {"b", uris("spiffe://set/cluster/b/gateway?x"), another},
		"of an authority":            {"b", func(c *x509.Certificate) { c.IsCA = true }, "is not one of a gateway"},
		"without a usage for TLS":    {"b", usage(x509.ExtKeyUsageCodeSigning), "incompatible key usage"},
	} {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			a, b, authorities := trusts(t)
			authority := other
			if test.authority != "" {
				authority = authorities[clusterset.ClusterID(test.authority)]
			}
			bad := forged(t, authority, test.change)
			b.Leaf = func() *tls.Certificate { return bad }
			b.Self.Cluster = "verifies-nothing"
			_, _, serverErr := shake(t, b.Client("a"), a.Server())
			checkRefusal(t, "by the server", serverErr, test.want)
			_, clientErr, _ := shake(t, a.Client("b"), b.Server())
			checkRefusal(t, "by the client", clientErr, test.want)
		})
	}
	t.Run("with an RSA key", func(t *testing.T) {
		t.Parallel()
		a, b, authorities := trusts(t)
		template := forged(t, authorities["b"], func(*x509.Certificate) {}).Leaf
		der, err := x509.CreateCertificate(rand.Reader, template, authorities["b"].Certificate, rsaKey.Public(), authorities["b"].key)
		check.Must(t, err)
		b.Leaf = func() *tls.Certificate { return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: rsaKey} }
		_, _, err = shake(t, b.Client("a"), a.Server())
		checkRefusal(t, "by the server", err, "is not one of a gateway")
	})
}

// spec: G5
func TestRefusedPeers(t *testing.T) {
	t.Parallel()
	t.Run("another cluster answers", func(t *testing.T) {
		t.Parallel()
		a, b, authorities := trusts(t)
		authorities["c"] = newAuthority(t, "c", now)
		_, err, _ := shake(t, a.Client("c"), b.Server())
		checkRefusal(t, "by the client", err, "the gateway is one of cluster b, not of cluster c")
	})
	t.Run("suspended", func(t *testing.T) {
		t.Parallel()
		a, b, authorities := trusts(t)
		delete(authorities, "a")
		_, _, err := shake(t, a.Client("b"), b.Server())
		checkRefusal(t, "by the server", err, "cluster a is no member, is suspended")
	})
	for name, test := range map[string]struct {
		change func(*tls.Config)
		want   string
	}{
		"no certificate": {func(c *tls.Config) {
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &tls.Certificate{}, nil }
		}, "client didn't provide a certificate"},
		"TLS 1.2": {
			func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 },
			"client offered only unsupported versions",
		},
		"another protocol": {func(c *tls.Config) { c.NextProtos = []string{"tombolo/0"} }, "client requested unsupported application protocols"},
		"no protocol":      {func(c *tls.Config) { c.NextProtos, c.VerifyConnection = nil, nil }, "the peer does not support protocol tombolo/1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b, _ := trusts(t)
			config := a.Client("b")
			test.change(config)
			_, _, err := shake(t, config, b.Server())
			checkRefusal(t, "by the server", err, test.want)
		})
	}
	t.Run("resumption", func(t *testing.T) {
		t.Parallel()
		a, b, _ := trusts(t)
		config, server := a.Client("b"), b.Server()
		config.SessionTicketsDisabled, config.ClientSessionCache, config.ServerName = false, tls.NewLRUClientSessionCache(1), "b"
		for range 2 {
			state, clientErr, serverErr := shake(t, config, server)
			if err := errors.Join(clientErr, serverErr); err != nil || state.DidResume {
				t.Errorf("resumed: %t, %v", state.DidResume, err)
			}
		}
		_, err := b.verify(tls.ConnectionState{NegotiatedProtocol: Protocol, DidResume: true}, x509.ExtKeyUsageClientAuth)
		checkRefusal(t, "by the server", err, "has sent no certificate")
	})
}
