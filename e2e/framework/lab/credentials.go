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
	"net/netip"
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
	certificate []byte // of the API server, PEM; it signs itself
	adminToken  string
	tokens      map[string]string // by component, as in "kube-scheduler"

	certificateFile, keyFile, tokenFile, serviceAccountKeyFile, auditPolicyFile string
}

// writeCredentials makes new credentials and their files in a folder that has the cluster's name. The API server's
// certificate is for the loopback addresses and those given.
func writeCredentials(folder string, addresses []netip.Addr) (credentials, error) {
	c := credentials{
		adminToken:            rand.Text(),
		tokens:                map[string]string{},
		certificateFile:       filepath.Join(folder, "serving.crt"),
		keyFile:               filepath.Join(folder, "serving.key"),
		tokenFile:             filepath.Join(folder, "tokens.csv"),
		serviceAccountKeyFile: filepath.Join(folder, "service-account.key"),
		auditPolicyFile:       filepath.Join(folder, "audit-policy.yaml"),
	}
	certificate, key, err := servingCertificate(addresses...)
	if err != nil {
		return credentials{}, fmt.Errorf("making a serving certificate: %w", err)
	}
	c.certificate = certificate
	serviceAccountKey, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		return credentials{}, fmt.Errorf("making a key for service accounts: %w", err)
	}
	// The format: token, user, UID, groups.
	tokens := c.adminToken + ",admin,admin,system:masters\n"
	for _, component := range []string{"kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet"} {
		user, group := "system:"+component, ""
		if component == "kubelet" {
			user, group = "system:node:"+filepath.Base(folder), "system:nodes"
		}
		c.tokens[component] = rand.Text()
		tokens += fmt.Sprintf("%s,%s,%s,%s\n", c.tokens[component], user, component, group)
	}
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

// servingCertificate returns a self-signed certificate for the loopback addresses and others, and its key, as PEM. The key is an
// elliptic one: generating RSA keys, as k8s.io/client-go/util/cert does, would take a noticeable part of the start-up.
func servingCertificate(addresses ...netip.Addr) (certificate, key []byte, err error) {
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
		DNSNames:              []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	for _, a := range addresses {
		template.IPAddresses = append(template.IPAddresses, a.AsSlice())
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
