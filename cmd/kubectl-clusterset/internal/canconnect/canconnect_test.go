// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package canconnect

import (
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/explain"
	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/check"
)

func TestPrintAccess(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	printAccess(&out, []explain.Access{
		{Exporter: "east", Verdict: explain.Allowed, ImportRule: access.NoRule, ExportRule: "ServiceExportGrant shop/cart"},
		{Exporter: "north", Verdict: explain.Denied, ImportRule: "ClusterServiceAccessPolicy no"},
		{Exporter: "south", Verdict: explain.NotEnforced, Reason: "direct"},
		{Exporter: "west", Verdict: explain.Unknown, ImportRule: access.NoRule, Reason: "not\nread"},
	})
	want := `east: yes (by the client's cluster: no rule; by the exporter: ServiceExportGrant shop/cart)
north: no (by the client's cluster: ClusterServiceAccessPolicy no)
south: yes (direct)
west: unknown (by the client's cluster: no rule; not read)
`
	check.Equal(t, "output", want, out.String())
}
