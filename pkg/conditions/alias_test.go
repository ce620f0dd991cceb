// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/conditions"
)

// spec: L1
func TestAlias(t *testing.T) {
	t.Parallel()
	gateways := "the endpoints of b, c are left out, because they are reached through gateways: only a Service with a cluster IP can be an alias " +
		"of such an import with a cluster IP, and only a headless one of a headless import"
	ports := "the import has no port like admin, dns: give the ports of the Service the names and protocols of those of the import"
	for name, tc := range map[string]struct {
		aliased conditions.Aliased
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"headless": {conditions.Aliased{}, "True", conditions.ReasonAliased, "the Service has the endpoints of ServiceImport web"},
		"all ports": {
			conditions.Aliased{Matched: []string{"http", "https"}},
			"True", conditions.ReasonAliased,
			"the Service has the endpoints of ServiceImport web at the ports http, https",
		},
		"behind gateways": {
			conditions.Aliased{Matched: []string{"http"}, Unusable: []clusterset.ClusterID{"b", "c"}},
			"True", conditions.ReasonEndpointsLeftOut,
			"the Service has the endpoints of ServiceImport web at the ports http; " + gateways,
		},
		"some ports, some behind gateways": {
			conditions.Aliased{Matched: []string{"http"}, Unmatched: []string{"admin", "dns"}, Unusable: []clusterset.ClusterID{"b", "c"}},
			"True", conditions.ReasonPortsNotMatched,
			"the Service has the endpoints of ServiceImport web at the ports http; " + ports + "; " + gateways,
		},
		"no port": {
			conditions.Aliased{Unmatched: []string{"admin", "dns"}},
			"False", conditions.ReasonPortsNotMatched,
			"the Service has no endpoints of ServiceImport web; " + ports,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.aliased.Import = "web"
			check.Equal(t, "condition", conditionOf(conditions.TypeAlias, tc.status, tc.reason, tc.message), conditions.Alias(tc.aliased))
		})
	}
}

// spec: L1
func TestAliasNotWritten(t *testing.T) {
	t.Parallel()
	want := conditionOf(conditions.TypeAlias, "False", conditions.ReasonNotWritten, "some EndpointSlices of the alias cannot be written: no room")
	check.Equal(t, "condition", want, conditions.AliasNotWritten(errors.New("no room")))
}
