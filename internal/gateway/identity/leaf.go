// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Name is the name of a cluster's gateways.
type Name struct {
	ClusterSet string
	Cluster    clusterset.ClusterID
}

// uri returns the name as certificates contain it: spiffe://<clusterset>/cluster/<id>/gateway.
func (n Name) uri() *url.URL {
	return &url.URL{Scheme: "spiffe", Host: n.ClusterSet, Path: "/cluster/" + string(n.Cluster) + "/gateway"}
}

// nameOf returns the only name in a certificate.
func nameOf(certificate *x509.Certificate) (Name, error) {
	if len(certificate.URIs) != 1 || len(certificate.DNSNames)+len(certificate.IPAddresses)+len(certificate.EmailAddresses) > 0 {
		return Name{}, errors.New("the certificate does not have exactly one name, that of a cluster's gateways")
	}
	uri := certificate.URIs[0]
	id, ok := strings.CutSuffix(strings.TrimPrefix(uri.Path, "/cluster/"), "/gateway")
	cluster, err := clusterset.ParseClusterID(id)
	name := Name{uri.Host, cluster}
	if !ok || err != nil || uri.String() != name.uri().String() {
		return Name{}, fmt.Errorf("the certificate's name %q is not that of a cluster's gateways", uri)
	}
	return name, nil
}

// NameOf returns the name in a certificate that DecodeLeaf has returned.
func NameOf(leaf *tls.Certificate) Name {
	name, _ := nameOf(leaf.Leaf)
	return name
}

// Issue returns a certificate and its key for the gateways of a cluster, as PEM, valid from now on and at most as long as the authority.
func (a Authority) Issue(name Name, now time.Time) (certificate, key []byte, err error) {
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	end := now.Add(LeafLifetime)
	if end.After(a.Certificate.NotAfter) {
		end = a.Certificate.NotAfter
	}
	template := &x509.Certificate{
		NotBefore: now.Add(-skew), NotAfter: end, URIs: []*url.URL{name.uri()}, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	created, err := create(template, a.Certificate, leaf, a.key)
	if err != nil {
		return nil, nil, err
	}
	key, err = encodeKey(leaf)
	return encodeCertificate(created), key, err
}

// DecodeLeaf returns the certificate that Issue has returned, or why the text is another.
func DecodeLeaf(certificate, key []byte) (*tls.Certificate, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("the gateway's certificate: %w", err)
	}
	if _, err := nameOf(pair.Leaf); err != nil {
		return nil, err
	}
	return &pair, nil
}

// RenewAt returns when a leaf has to be replaced: a day after its issue, or when it expires.
func RenewAt(leaf *x509.Certificate) time.Time {
	at := leaf.NotBefore.Add(skew + renewal)
	if leaf.NotAfter.Before(at) {
		return leaf.NotAfter
	}
	return at
}
