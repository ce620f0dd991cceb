// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"time"

	"k8s.io/utils/lru"
)

// maxVerified is the number of results that are kept. The gateways of a cluster share one certificate.
const maxVerified = 1000

// Verified has the results of verifications, so that a peer can be verified before each stream (G5).
type Verified struct{ results *lru.Cache }

// NewVerified returns no results.
func NewVerified() *Verified { return &Verified{lru.New(maxVerified)} }

// question is what a result is for. Another bundle is another pool.
type question struct {
	authorities *x509.CertPool
	leaf        [sha256.Size]byte
	usage       x509.ExtKeyUsage
}

// period is the time in which all certificates of a chain are valid.
type period struct{ from, until time.Time }

func (p period) contains(now time.Time) bool { return !now.Before(p.from) && !now.After(p.until) }

// verify returns why a certificate is not accepted at a time; nil if it is. v may be nil.
func (v *Verified) verify(leaf *x509.Certificate, authorities *x509.CertPool, usage x509.ExtKeyUsage, now time.Time) error {
	asked := question{authorities, sha256.Sum256(leaf.Raw), usage}
	if v != nil {
		if known, ok := v.results.Get(asked); ok && known.(period).contains(now) {
			return nil
		}
	}
	options := x509.VerifyOptions{Roots: authorities, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{usage}}
	chains, err := leaf.Verify(options)
	if err != nil {
		// Its authority is valid at the beginning or at the end of its life.
		for _, options.CurrentTime = range []time.Time{leaf.NotBefore, leaf.NotAfter} {
			if _, then := leaf.Verify(options); then == nil {
				return fmt.Errorf("%w: %w", ErrExpired, err)
			}
		}
		return err
	}
	if v != nil {
		v.results.Add(asked, periodOf(chains[0]))
	}
	return nil
}

func periodOf(chain []*x509.Certificate) period {
	result := period{chain[0].NotBefore, chain[0].NotAfter}
	for _, certificate := range chain[1:] {
		if certificate.NotBefore.After(result.from) {
			result.from = certificate.NotBefore
		}
		if certificate.NotAfter.Before(result.until) {
			result.until = certificate.NotAfter
		}
	}
	return result
}
