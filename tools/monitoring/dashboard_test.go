// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	grafana "github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// TestDashboardSchema: the dashboard, its panels and their queries have no field that Grafana's schemas do not have, and all that they
// require.
func TestDashboardSchema(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	text, err := os.ReadFile("../../manifests/monitoring/tombolo.json")
	must(t, err)
	var d grafana.Dashboard                                                  //nolint:staticcheck // the sidecar loads this version
	if err := d.UnmarshalJSONStrict(text); err != nil && err.Error() != "" { // it is an empty list if nothing is wrong
		t.Fatal(err)
	}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
	if len(d.Panels) < 30 {
		t.Errorf("%d panels were read", len(d.Panels))
	}
}
