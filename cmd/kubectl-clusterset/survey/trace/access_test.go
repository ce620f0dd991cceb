// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"testing"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/explain"
	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/check"
)

// A client that one exporter denies is not denied the service if another one serves it.
//
// spec: A6
func TestAccessSteps(t *testing.T) {
	t.Parallel()
	client := access.Client{Cluster: "east", Namespace: "shop", ServiceAccount: "frontend"}
	byExporter := explain.Access{Exporter: "west", Verdict: explain.Denied, ImportRule: access.NoRule, ExportRule: access.NotGranted}
	byOwn := explain.Access{Exporter: "west", Verdict: explain.Denied, ImportRule: "ClusterServiceAccessPolicy no"}
	suspended := explain.Access{Exporter: "west", Verdict: explain.Denied, Reason: "cluster west is suspended"}
	allowed := explain.Access{Exporter: "north", Verdict: explain.Allowed, ImportRule: access.NoRule, ExportRule: "ServiceExportGrant shop/cart"}
	for name, test := range map[string]struct {
		verdicts []explain.Access
		isLocal  bool
		want     []string
	}{
		"denied by the exporter":    {[]explain.Access{byExporter}, false, []string{"broken shop/frontend is denied the endpoints of west by west: " + access.NotGranted}},
		"denied by its own cluster": {[]explain.Access{byOwn}, false, []string{"broken shop/frontend is denied the endpoints of west by east: ClusterServiceAccessPolicy no"}},
		"a suspended exporter":      {[]explain.Access{suspended}, false, []string{"broken shop/frontend is denied the endpoints of west: cluster west is suspended"}},
		"its own cluster serves":    {[]explain.Access{byOwn}, true, []string{"note shop/frontend is denied the endpoints of west by east: ClusterServiceAccessPolicy no"}},
		"another exporter allows it": {[]explain.Access{allowed, byExporter}, false, []string{
			"ok shop/frontend may use it from north; by its own cluster: no rule; by the exporter: ServiceExportGrant shop/cart",
			"note shop/frontend is denied the endpoints of west by west: " + access.NotGranted,
		}},
		"the same network": {
			[]explain.Access{{Exporter: "west", Verdict: explain.NotEnforced, Reason: "the pods reach each other"}},
			false,
			[]string{"ok shop/frontend may use it from west: the pods reach each other"},
		},
		"not known": {[]explain.Access{{Exporter: "west", Verdict: explain.Unknown, Reason: "not read"}}, false, []string{"note it is not known whether shop/frontend may use it from west: not read"}},
	} {
		var got []string
		for _, step := range accessSteps(client, test.verdicts, test.isLocal) {
			got = append(got, fmt.Sprintf("%s %s", step.State, step.Found))
			if step.Hop != HopAccess || step.Cluster != "east" || step.State == Broken && step.Fix == "" {
				t.Errorf("%s: %+v", name, step)
			}
		}
		check.Equal(t, name, test.want, got)
	}
}
