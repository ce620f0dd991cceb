// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"crypto/tls"
	"errors"
	"fmt"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
)

// present keeps the certificate that the peer gets.
func (c *Conn) present(certificate *tls.Certificate, err error) (*tls.Certificate, error) {
	if err == nil && certificate != nil {
		c.own = certificate.Leaf
	}
	return certificate, err
}

// Check returns why the connection gives no right to open a stream now; nil if it does. The peer must be trusted now, and the certificates
// of both sides must be valid (G5).
func (c *Conn) Check() error {
	now := time.Now
	if c.config.Time != nil {
		now = c.config.Time
	}
	if at := now(); c.own != nil && (at.Before(c.own.NotBefore) || at.After(c.own.NotAfter)) {
		return fmt.Errorf("this cluster's own: %w", identity.ErrExpired)
	}
	return c.verify()
}

// IsTrusted reports whether the peer is trusted now, if time is left aside: certificates that expire end no stream.
func (c *Conn) IsTrusted() bool {
	err := c.verify()
	return err == nil || errors.Is(err, identity.ErrExpired)
}

func (c *Conn) verify() error {
	if c.config.VerifyConnection == nil {
		return errors.New("the connection cannot be verified")
	}
	return c.config.VerifyConnection(c.tls.ConnectionState())
}
