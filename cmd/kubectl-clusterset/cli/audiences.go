// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// serviceAccountTimeout is the time to wait for the first ServiceAccount of a cluster that has just started.
const serviceAccountTimeout = 10 * time.Second

// findAudiences returns the audiences of the hub's API server. The tokens of members are restricted to them. If they cannot be
// found, it reports that and returns none.
func findAudiences(ctx context.Context, hub *cluster, r *report) []string {
	var audiences []string
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, serviceAccountTimeout, true, func(ctx context.Context) (_ bool, err error) {
		audiences, err = hub.install.TokenAudiences(ctx)
		return len(audiences) > 0, ignoreTransient(err)
	})
	if err != nil {
		r.notef("The audiences of the hub's tokens cannot be found (%v), so members may have tokens issued for any audience. "+
			"Run init-hub again when the hub has ServiceAccounts.", err)
		return nil
	}
	r.okf("tokens of members are for the audience %s", strings.Join(audiences, ", "))
	return audiences
}
