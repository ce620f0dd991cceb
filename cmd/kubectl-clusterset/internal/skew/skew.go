// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package skew compares the version of a hub with the version of this command: no member may be newer than its hub.
package skew

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Check fails if a member of the version of this command would be newer than its hub. The error is why the version of the hub is not known,
// which is reported only: an older hub does not have it.
func Check(ours, ofHub string, unknown error, r *output.Report) {
	const first = "no member may be newer than its hub, so upgrade the hub first: kubectl clusterset init-hub --context HUB"
	switch {
	case unknown != nil:
		r.Notef("the version of the hub is not known (%v): %s", unknown, first)
	case ofHub == "":
		r.Notef("the hub does not have its version, as hubs of earlier versions: %s", first)
	case clusterset.CompareVersions(ours, ofHub) == clusterset.Newer:
		r.Failf("this command is of version %s and the hub of version %s: %s, with the command of version %s", ours, ofHub, first, ours)
	case clusterset.CompareVersions(ours, ofHub) == clusterset.UnknownAge:
		r.Notef("the version of the hub is %s, which cannot be compared with the version of this command, %s: %s", ofHub, ours, first)
	default:
		r.Okf("the version of the hub is %s, and the version of this command %s", ofHub, ours)
	}
}

// HubVersion returns the version of a hub, and why it is not known in words.
func HubVersion(ctx context.Context, c client.Reader) (string, error) {
	version, err := hub.Version(ctx, c)
	switch {
	case apierrors.IsForbidden(err):
		return "", errors.New("the hub does not let this client read it")
	case err != nil:
		return "", connection.Explained(err)
	}
	return version, nil
}
