// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// hubCheck checks whether the hub can be reached from a pod of the member, for "kubectl clusterset join".
type hubCheck struct{ server, ca string }

// hubCheckTimeout is the timeout of the request.
const hubCheckTimeout = 15 * time.Second

// run returns nil if the hub answers with a certificate of the given authority. Any response is accepted: the agent's credentials
// do not exist yet, so its rights cannot be checked.
func (c hubCheck) run(ctx context.Context) error {
	ca, err := base64.StdEncoding.DecodeString(c.ca)
	if err != nil {
		return fmt.Errorf("--check-hub-ca is not base64: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return errors.New("--check-hub-ca holds no PEM certificate")
	}
	ctx, cancel := context.WithTimeout(ctx, hubCheckTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.server+"/version", nil)
	if err != nil {
		return fmt.Errorf("--check-hub: %w", err)
	}
	transport := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
	}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}
