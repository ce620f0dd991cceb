// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// versionInterval is the time between attempts to read the version of the hub.
const versionInterval = time.Minute

// compareVersions reads the version of the hub once, and logs if this agent is newer, which no member may be. It retries until the hub
// answers. A hub of an older version refuses it, or has no version.
func (s *starter) compareVersions(ctx context.Context, c client.Reader) {
	_ = wait.PollUntilContextCancel(ctx, versionInterval, true, func(ctx context.Context) (bool, error) { // only ctx ends it
		version, err := hub.Version(ctx, c)
		switch {
		case apierrors.IsForbidden(err) || apierrors.IsNotFound(err):
			s.options.Log.Info("the version of the hub is not known: it may be older than this agent, which no hub may be", "agent", s.options.Version, "reason", err.Error())
			return true, nil
		case err != nil:
			return false, nil //nolint:nilerr // it retries
		case clusterset.CompareVersions(s.options.Version, version) == clusterset.Newer:
			s.options.Log.Info("this agent is newer than its hub, which is not supported: upgrade the hub first, with \"kubectl clusterset init-hub\" of the agent's version",
				"agent", s.options.Version, "hub", version)
		}
		return true, nil
	})
}
