// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"k8s.io/utils/clock"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Protocol is the gateway protocol in ALPN (RFC 7301).
const Protocol = "tombolo/1"

// Trust says whom the gateways of a cluster trust.
type Trust struct {
	Self Name
	// Leaf returns this cluster's certificate. It is called for each handshake, so a renewal ends no connection.
	Leaf func() *tls.Certificate
	// Authorities returns the certificates of a member's authorities; nil if the cluster is no member, suspended, or has no gateway.
	Authorities func(clusterset.ClusterID) *x509.CertPool
	Clock       clock.PassiveClock
	// Verified makes it cheap to verify a certificate again; nil if that is not needed.
	Verified *Verified
}

// ErrExpired says that a certificate is not valid at this time. Otherwise it would be accepted.
var ErrExpired = errors.New("the certificate is not valid at this time")

// Server returns the configuration with which gateways accept connections from the gateways of other members. VerifyConnection is also
// for later: it returns why the peer is not trusted now, and ErrExpired if this is only a question of time.
func (t Trust) Server() *tls.Config {
	config := t.config()
	config.ClientAuth = tls.RequireAnyClientCert
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return t.Leaf(), nil }
	config.VerifyConnection = t.VerifyClient
	return config
}

// VerifyClient returns why the gateway that has opened a connection is not trusted now; nil if it is.
func (t Trust) VerifyClient(state tls.ConnectionState) error {
	_, err := t.verify(state, x509.ExtKeyUsageClientAuth)
	return err
}

// Client returns the configuration with which gateways connect to those of a cluster. The handshake sends no server name, from
// which observers would learn the cluster.
func (t Trust) Client(remote clusterset.ClusterID) *tls.Config {
	config := t.config()
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return t.Leaf(), nil }
	// crypto/tls would verify the certificate for a server name, and only if the session is not resumed. VerifyConnection replaces this.
	config.InsecureSkipVerify = true
	config.VerifyConnection = func(state tls.ConnectionState) error {
		cluster, err := t.verify(state, x509.ExtKeyUsageServerAuth)
		if err == nil && cluster != remote {
			err = fmt.Errorf("the gateway is one of cluster %s, not of cluster %s", cluster, remote)
		}
		return err
	}
	return config
}

func (t Trust) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, NextProtos: []string{Protocol}, SessionTicketsDisabled: true, Time: t.Clock.Now}
}

// verify returns the cluster of the peer, or why the peer is not trusted.
func (t Trust) verify(state tls.ConnectionState, usage x509.ExtKeyUsage) (clusterset.ClusterID, error) {
	if state.NegotiatedProtocol != Protocol {
		return "", fmt.Errorf("the peer does not support protocol %s", Protocol)
	}
	if state.DidResume || len(state.PeerCertificates) == 0 {
		return "", errors.New("the peer has sent no certificate")
	}
	leaf := state.PeerCertificates[0]
	name, err := nameOf(leaf)
	if err != nil {
		return "", err
	}
	if name.ClusterSet != t.Self.ClusterSet || name.Cluster == t.Self.Cluster {
		return "", fmt.Errorf("the peer is the gateway of cluster %s of clusterset %q, which is no other member of %q", name.Cluster, name.ClusterSet, t.Self.ClusterSet)
	}
	authorities := t.Authorities(name.Cluster)
	switch {
	case authorities == nil:
		return "", fmt.Errorf("cluster %s is no member, is suspended, or publishes no gateway", name.Cluster)
	case leaf.IsCA || !isP256(leaf):
		return "", fmt.Errorf("the certificate of cluster %s is not one of a gateway", name.Cluster)
	}
	if err := t.Verified.verify(leaf, authorities, usage, t.Clock.Now()); err != nil {
		return "", fmt.Errorf("the certificate of cluster %s is not accepted: %w", name.Cluster, err)
	}
	return name.Cluster, nil
}

// PeerCluster returns the cluster of the peer of a connection whose handshake is complete.
func PeerCluster(state tls.ConnectionState) (clusterset.ClusterID, error) {
	if !state.HandshakeComplete || len(state.PeerCertificates) == 0 {
		return "", errors.New("the handshake is not complete")
	}
	name, err := nameOf(state.PeerCertificates[0])
	return name.Cluster, err
}
