// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
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

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
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

// tokenSeconds is 30 days.
const tokenSeconds = int64(30 * 24 * 60 * 60)

// ServiceAccountConfig returns credentials with a real token of a service account, which must exist. The token is valid
// for longer than any lab runs; all rights are those that RBAC gives.
func (c *Cluster) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, error) {
	client, err := kubernetes.NewForConfig(c.Config())
	if err != nil {
		return nil, fmt.Errorf("token for %s/%s: %w", namespace, name, err)
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(tokenSeconds)}}
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, name, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("token for %s/%s: %w", namespace, name, err)
	}
	return c.config(token.Status.Token), nil
}

// ServiceAccountKubeconfig writes the credentials that ServiceAccountConfig returns to a file that disappears with the
// lab, and returns its path.
func (c *Cluster) ServiceAccountKubeconfig(ctx context.Context, namespace, name string) (string, error) {
	config, err := c.ServiceAccountConfig(ctx, namespace, name)
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.folder, namespace+"."+name+".kubeconfig")
	return path, WriteKubeconfig(path, config)
}

// WriteContexts writes a kubeconfig with a context of the administrator for each cluster. The current one may be empty.
func WriteContexts(path, current string, clusters ...*Cluster) error {
	configs := map[string]*rest.Config{}
	for _, cluster := range clusters {
		configs[cluster.Name] = cluster.Config()
	}
	return writeContexts(path, current, configs)
}

// WriteKubeconfig writes a file with the address, the certificate authority and the token of a config of this package.
func WriteKubeconfig(path string, config *rest.Config) error {
	return writeContexts(path, "lab", map[string]*rest.Config{"lab": config})
}

func writeContexts(path, current string, configs map[string]*rest.Config) error {
	file := clientcmdapi.NewConfig()
	file.CurrentContext = current
	for name, config := range configs {
		file.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
		file.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
		file.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		return fmt.Errorf("writing kubeconfig %s: %w", path, err)
	}
	return nil
}

// ReplaceFile gives a file another content at once, so that no reader gets half of it.
func ReplaceFile(path string, content []byte) error {
	if err := os.WriteFile(path+".new", content, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Certificate is one that an API server may serve with. It signs itself.
type Certificate struct {
	// PEM is the certificate, by which clients know the API server.
	PEM []byte
	key []byte
}

// NewCertificate returns a certificate that no API server serves with yet.
func NewCertificate() (c Certificate, err error) {
	c.PEM, c.key, err = servingCertificate()
	return c, err
}

// takenUp is how long an API server may take to notice its new certificate: it checks each minute, if it gets no signal.
const takenUp = 2 * time.Minute

// Serve has the API server serve with another certificate and returns when it does. Config trusts that one from now on.
// Connections that are open stay; what else has been given the old one, kube-controller-manager too, cannot open new ones.
func (c *Cluster) Serve(ctx context.Context, certificate Certificate) error {
	for path, content := range map[string][]byte{c.credentials.keyFile: certificate.key, c.credentials.certificateFile: certificate.PEM} {
		if err := ReplaceFile(path, content); err != nil {
			return err
		}
	}
	c.credentials.certificate = certificate.PEM
	err := Await(ctx, readyInterval, takenUp, func(ctx context.Context) error {
		return getOK(ctx, c.credentials.transport(), c.address()+"/readyz", c.credentials.adminToken)
	})
	if err != nil {
		return fmt.Errorf("cluster %s does not serve with its new certificate: %w", c.Name, err)
	}
	return nil
}
