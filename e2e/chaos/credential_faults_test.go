// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"path/filepath"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// authority is the CA that signs client certificates for the hub.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority() (authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return authority{}, err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "chaos"}, key)
	if err != nil {
		return authority{}, err
	}
	return authority{certificate, key}, nil
}

func pemOf(der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}) }

// issue returns a client certificate and its key that authenticate as a member's agent, valid for a lifetime.
func (a authority) issue(id string, lifetime time.Duration) (certificate, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	namespace := "member-" + id
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject: pkix.Name{
			CommonName:   "system:serviceaccount:" + namespace + ":" + manifests.MemberServiceAccount,
			Organization: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace},
		},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	return pemOf(der), key, err
}

// expired has a member's agent work with a client certificate that expires, and is renewed later.
func expired(ctx context.Context, w *world) error {
	m := w.members[w.random.IntN(len(w.members))]
	path := filepath.Join(m.folder(), "hub.crt")
	replace := func(lifetime time.Duration) (rest.TLSClientConfig, error) {
		certificate, key, err := w.authority.issue(m.id, lifetime)
		if err != nil {
			return rest.TLSClientConfig{}, err
		}
		tls := rest.TLSClientConfig{CAData: m.hubConfig.CAData, CertData: certificate, KeyData: key}
		return tls, errors.Join(lab.ReplaceFile(path+".key", key), lab.ReplaceFile(path, certificate))
	}
	tls, err := replace(20 * time.Second)
	w.must(err)
	kubeconfig := m.hubKubeconfig + ".certificate"
	w.must(m.writeKubeconfig(kubeconfig, map[string]any{"client-certificate": path, "client-key": path + ".key"}))
	stale, err := client.New(&rest.Config{Host: m.hubConfig.Host, TLSClientConfig: tls}, client.Options{Scheme: w.hubKube.Scheme()})
	w.must(err)
	if err := answers(ctx, stale); err != nil {
		return fmt.Errorf("the certificate is not good at first: %w", err)
	}
	w.watch.will(oracle.Silence, m.id, oracle.Key{})
	certified := m.agent.beside("certified", "--hub-kubeconfig="+kubeconfig) // the last one counts
	if err := errors.Join(m.agent.stop(), certified.start(), w.beats(ctx, m)); err != nil {
		return errors.Join(err, certified.kill())
	}
	err = w.continuesAfter(ctx, m, stale, func() error { _, err := replace(time.Hour); return err })
	return errors.Join(err, certified.stop(), m.agent.start())
}

// continuesAfter waits until a member's credentials are good no more and its heartbeat stops, and renews them.
func (w *world) continuesAfter(ctx context.Context, m *member, stale client.Client, renew func() error) error {
	err := eventually(ctx, func(ctx context.Context) error {
		if err := answers(ctx, stale); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("the certificate is still good (%w): %w", err, errNoEffect)
		}
		return nil
	})
	w.must(err)
	w.must(w.keepsQuiet(ctx, m), renew())
	m.line.cut() // it shows its certificate when it connects
	return w.beats(ctx, m)
}

// beats returns when a member's heartbeat has been renewed twice.
func (w *world) beats(ctx context.Context, m *member) error {
	seen := map[string]bool{}
	return eventually(ctx, func(ctx context.Context) error {
		version, err := w.heartbeat(ctx, m)
		if err != nil {
			return err
		}
		if seen[version] = true; len(seen) < 3 {
			return fmt.Errorf("%s is silent", m.id)
		}
		return nil
	})
}

// keepsQuiet returns nil where a member's heartbeat is not renewed for longer than it takes.
func (w *world) keepsQuiet(ctx context.Context, m *member) error {
	before, err := w.heartbeat(ctx, m)
	w.must(err)
	pause(ctx, heartbeat+heartbeat/2)
	after, err := w.heartbeat(ctx, m)
	if err == nil && before != after {
		return fmt.Errorf("%s still renews its heartbeat: %w", m.id, errNoEffect)
	}
	return err
}

func (w *world) heartbeat(ctx context.Context, m *member) (string, error) {
	beat := &hubv1alpha1.Heartbeat{}
	err := w.hubKube.Get(ctx, client.ObjectKey{Namespace: "member-" + m.id, Name: hubv1alpha1.HeartbeatName}, beat)
	return beat.ResourceVersion, err
}
