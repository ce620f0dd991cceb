// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// accountsAppear is how long kube-controller-manager may take to make the first ServiceAccount of a cluster that has just started.
const accountsAppear = 10 * time.Second

// findAudiences returns the audiences of the hub's API server, for which alone members may have tokens issued; none if they cannot
// be found, which it says.
func findAudiences(ctx context.Context, hub *cluster, r *report) []string {
	var audiences []string
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, accountsAppear, true, func(ctx context.Context) (_ bool, err error) {
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
