// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package identity issues and verifies the certificates of gateways (G5). Each member has its own authority, whose certificates other
// members read from the hub. A certificate of a member is verified against that member's authorities only.
package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Lifetimes of certificates.
const (
	AuthorityLifetime = 2 * 365 * 24 * time.Hour
	LeafLifetime      = 7 * 24 * time.Hour
	// renewal is the age at which a leaf is replaced.
	renewal = 24 * time.Hour
	// skew is how far a certificate's validity begins in the past, for clusters whose clocks are behind.
	skew = 10 * time.Minute
)

// The types of the PEM blocks.
const (
	certificateBlock = "CERTIFICATE"
	keyBlock         = "EC PRIVATE KEY"
)

// Authority is a certificate authority of a member, with its key.
type Authority struct {
	Certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority returns a new authority for the gateways of a cluster, which is valid from now on.
func NewAuthority(id clusterset.ClusterID, now time.Time) (Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Authority{}, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "Tombolo gateways of " + string(id)}, NotBefore: now.Add(-skew), NotAfter: now.Add(AuthorityLifetime),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign,
	}
	certificate, err := create(template, template, key, key)
	return Authority{certificate, key}, err
}

// isValid reports whether an authority can sign now (G5): what it signs at another time is accepted nowhere.
func (a Authority) isValid(now time.Time) bool { return isValid(a.Certificate, now) }

func isValid(certificate *x509.Certificate, now time.Time) bool {
	return !now.Before(certificate.NotBefore) && now.Before(certificate.NotAfter)
}

// create returns a certificate for a key, signed with the key of parent.
func create(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

// Encode returns the certificate and the key as PEM.
func (a Authority) Encode() (certificate, key []byte, err error) {
	key, err = encodeKey(a.key)
	return encodeCertificate(a.Certificate), key, err
}

// DecodeAuthority returns the authority that Encode has encoded, or why the text is another.
func DecodeAuthority(certificate, key []byte) (Authority, error) {
	certificates, err := DecodeBundle(string(certificate))
	if err != nil {
		return Authority{}, err
	}
	block, rest := pem.Decode(key)
	if block == nil || block.Type != keyBlock || len(rest) > 0 {
		return Authority{}, fmt.Errorf("the key of the authority is no PEM block %q", keyBlock)
	}
	parsed, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		return Authority{}, fmt.Errorf("the key of the authority: %w", err)
	}
	if len(certificates) != 1 || !parsed.PublicKey.Equal(certificates[0].PublicKey) {
		return Authority{}, errors.New("the key of the authority is not that of its certificate")
	}
	return Authority{certificates[0], parsed}, nil
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: der}), err
}

func encodeCertificate(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: certificate.Raw})
}
