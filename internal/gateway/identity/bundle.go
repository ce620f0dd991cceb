// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// maxBundle is the number of certificates in a bundle.
const maxBundle = 4

// EncodeBundle returns the certificates of a member's authorities as PEM.
func EncodeBundle(authorities []Authority) string {
	var result []byte
	for _, authority := range authorities {
		result = append(result, encodeCertificate(authority.Certificate)...)
	}
	return string(result)
}

// DecodeBundle returns the certificates of authorities in a PEM text, or why it is refused. The text contains nothing else.
func DecodeBundle(text string) ([]*x509.Certificate, error) {
	if len(text) > hubv1alpha1.MaxGatewayBundle {
		return nil, fmt.Errorf("the bundle has %d bytes, more than %d", len(text), hubv1alpha1.MaxGatewayBundle)
	}
	var result []*x509.Certificate
	for rest := []byte(text); len(rest) > 0; {
		var block *pem.Block
		before := len(rest)
		if block, rest = pem.Decode(rest); block == nil || block.Type != certificateBlock || len(block.Headers) > 0 ||
			before-len(rest) != len(pem.EncodeToMemory(block)) {
			return nil, errors.New("the bundle contains more than PEM blocks of certificates without headers")
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("the bundle's certificate %d: %w", len(result)+1, err)
		}
		if err := checkAuthority(certificate); err != nil {
			return nil, fmt.Errorf("the bundle's certificate %d %w", len(result)+1, err)
		}
		for _, other := range result {
			if other.Equal(certificate) {
				return nil, fmt.Errorf("the bundle's certificate %d is there twice", len(result)+1)
			}
		}
		if result = append(result, certificate); len(result) > maxBundle {
			return nil, fmt.Errorf("the bundle has more than %d certificates", maxBundle)
		}
	}
	if len(result) == 0 {
		return nil, errors.New("the bundle has no certificate")
	}
	return result, nil
}

// checkAuthority returns why a certificate is not one of an authority that signs only leaves; nil if it is.
func checkAuthority(certificate *x509.Certificate) error {
	switch {
	case !isP256(certificate):
		return errors.New("has a key of another kind than ECDSA P-256")
	case !certificate.BasicConstraintsValid || !certificate.IsCA || certificate.KeyUsage&x509.KeyUsageCertSign == 0:
		return errors.New("is not one of an authority")
	case certificate.MaxPathLen != 0 || !certificate.MaxPathLenZero:
		return errors.New("may sign other authorities: its path length is not 0")
	}
	return nil
}

func isP256(certificate *x509.Certificate) bool {
	key, ok := certificate.PublicKey.(*ecdsa.PublicKey)
	return ok && key.Curve == elliptic.P256()
}
