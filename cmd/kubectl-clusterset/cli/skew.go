// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// checkSkew fails if a member of the version of this command would be newer than its hub. The error is why the version of the hub is not known,
// which is reported only: an older hub does not have it.
func checkSkew(ours, ofHub string, unknown error, r *report) {
	const first = "no member may be newer than its hub, so upgrade the hub first: kubectl clusterset init-hub --context HUB"
	switch {
	case unknown != nil:
		r.notef("the version of the hub is not known (%v): %s", unknown, first)
	case ofHub == "":
		r.notef("the hub does not have its version, as hubs of earlier versions: %s", first)
	case clusterset.CompareVersions(ours, ofHub) == clusterset.Newer:
		r.failf("this command is of version %s and the hub of version %s: %s, with the command of version %s", ours, ofHub, first, ours)
	case clusterset.CompareVersions(ours, ofHub) == clusterset.UnknownAge:
		r.notef("the version of the hub is %s, which cannot be compared with that of this command, %s: %s", ofHub, ours, first)
	default:
		r.okf("the version of the hub is %s, and that of this command %s", ofHub, ours)
	}
}

// versionOf returns the version of a hub, and why it is not known in words.
func versionOf(ctx context.Context, c client.Reader) (string, error) {
	version, err := hub.Version(ctx, c)
	switch {
	case apierrors.IsForbidden(err):
		return "", errors.New("the hub does not let this client read it")
	case err != nil:
		return "", explained{err, survey.FailureOf(err, "").Message}
	}
	return version, nil
}

// errNoCredentials is returned if a member has no credentials for its hub that this command can use.
var errNoCredentials = fmt.Errorf("the Secret %s has no credentials that this command can use: pass --hub-context", hubSecretKey())

// hubOfAgent returns a client of the hub with the credentials of a member's agent.
func hubOfAgent(ctx context.Context, member *cluster) (client.Reader, error) {
	secret := &corev1.Secret{}
	if err := member.client.Get(ctx, hubSecretKey(), secret); err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", hubSecretKey(), err)
	}
	address, token := hubAddressIn(secret), string(secret.Data[clusterset.HubSecretToken])
	if address == nil || token == "" {
		return nil, errNoCredentials
	}
	return hub.Client(&rest.Config{
		Host: address.server, BearerToken: token, TLSClientConfig: rest.TLSClientConfig{CAData: address.ca}, Timeout: identifyTimeout, UserAgent: "kubectl-clusterset",
	})
}
