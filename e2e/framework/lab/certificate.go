// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// Certificate is one that an API server may serve with. It signs itself.
type Certificate struct {
	// PEM is the certificate, by which clients know the API server.
	PEM []byte
	key []byte
}

// NewCertificate returns a certificate that no API server serves with yet.
func NewCertificate() (Certificate, error) {
	certificate, key, err := servingCertificate()
	if err != nil {
		return Certificate{}, fmt.Errorf("making a serving certificate: %w", err)
	}
	return Certificate{certificate, key}, nil
}

// takenUp is how long an API server may take to notice its new certificate: it checks each minute, if it gets no signal.
const takenUp = 2 * time.Minute

// Serve has the API server serve with another certificate and returns when it does. Config trusts that one from now on.
// Connections that are open stay; what else has been given the old one, kube-controller-manager too, cannot open new ones.
func (c *Cluster) Serve(ctx context.Context, certificate Certificate) error {
	for path, content := range map[string][]byte{c.credentials.keyFile: certificate.key, c.credentials.certificateFile: certificate.PEM} {
		if err := os.WriteFile(path+".new", content, 0o600); err != nil {
			return err
		}
		if err := os.Rename(path+".new", path); err != nil {
			return err
		}
	}
	c.credentials.certificate = certificate.PEM
	var last error
	err := wait.PollUntilContextTimeout(ctx, readyInterval, takenUp, true, func(ctx context.Context) (bool, error) {
		last = getOK(ctx, c.credentials.transport(), c.address()+"/readyz", c.credentials.adminToken)
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("cluster %s does not serve with its new certificate (%w): %w", c.Name, last, err)
	}
	return nil
}
