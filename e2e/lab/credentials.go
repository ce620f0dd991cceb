// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// certificateLifetime outlasts every lab.
const certificateLifetime = 365 * 24 * time.Hour

// credentials are what the programs of a cluster know each other by. No two clusters have any in common.
type credentials struct {
	certificate            []byte // of the API server, PEM; it signs itself
	adminToken             string
	controllerManagerToken string

	certificateFile, keyFile, tokenFile, serviceAccountKeyFile, auditPolicyFile string
}

// writeCredentials makes new credentials and their files in a folder.
func writeCredentials(folder string) (credentials, error) {
	c := credentials{
		adminToken:             rand.Text(),
		controllerManagerToken: rand.Text(),
		certificateFile:        filepath.Join(folder, "serving.crt"),
		keyFile:                filepath.Join(folder, "serving.key"),
		tokenFile:              filepath.Join(folder, "tokens.csv"),
		serviceAccountKeyFile:  filepath.Join(folder, "service-account.key"),
		auditPolicyFile:        filepath.Join(folder, "audit-policy.yaml"),
	}
	certificate, key, err := servingCertificate()
	if err != nil {
		return credentials{}, fmt.Errorf("making a serving certificate: %w", err)
	}
	c.certificate = certificate
	serviceAccountKey, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return credentials{}, fmt.Errorf("making a key for service accounts: %w", err)
	}
	// The format: token, user, UID, groups.
	tokens := fmt.Sprintf("%s,admin,admin,system:masters\n%s,system:kube-controller-manager,controller-manager,\n",
		c.adminToken, c.controllerManagerToken)
	for _, f := range []struct {
		path    string
		content []byte
	}{
		{c.certificateFile, certificate},
		{c.keyFile, key},
		{c.tokenFile, []byte(tokens)},
		{c.serviceAccountKeyFile, serviceAccountKey},
		{c.auditPolicyFile, []byte(auditPolicy)},
	} {
		if err := os.WriteFile(f.path, f.content, 0o600); err != nil {
			return credentials{}, err
		}
	}
	return c, nil
}

// transport returns one that trusts the API server of these credentials and no other.
func (c credentials) transport() *http.Transport {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(c.certificate)
	return &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}
}

// servingCertificate returns a self-signed certificate for the loopback addresses and its key, as PEM. The key is an
// elliptic one: generating RSA keys, as k8s.io/client-go/util/cert does, would take a noticeable part of the start-up.
func servingCertificate() (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: "kube-apiserver"},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(certificateLifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		IsCA:                  true,
		DNSNames:              []string{"localhost"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	if key, err = keyutil.MarshalPrivateKeyToPEM(private); err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}), key, nil
}
