// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"errors"
	"fmt"
	"strings"
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

// spec: C2
func TestIsRefused(t *testing.T) {
	t.Parallel()
	for ready, want := range map[metav1.Condition]bool{
		{Status: "False", Reason: "Failed"}:     true,
		{Status: "False", Reason: "NotAllowed"}: true,
		{Status: "False", Reason: "Pending"}:    false,
		{Status: "True", Reason: "Failed"}:      false,
		{Status: "Unknown", Reason: "Failed"}:   false,
	} {
		if got := conditions.IsRefused(ready); got != want {
			t.Errorf("%s because of %s is refused: %t", ready.Status, ready.Reason, got)
		}
	}
}

// spec: W3
func TestSourceUnusable(t *testing.T) {
	t.Parallel()
	var obstacles []error
	for i, want := range []string{
		"", "No way to 1.", "No way to 1. No way to 2.", "No way to 1. No way to 2. No way to 3.",
		"No way to 1. No way to 2. No way to 3. No way to 4.", "No way to 1. No way to 2. No way to 3. No way to 4. No way to 5.",
		"No way to 1. No way to 2. No way to 3. No way to 4. No way to 5. The same applies to 1 more.",
		"No way to 1. No way to 2. No way to 3. No way to 4. No way to 5. The same applies to 2 more.",
	} {
		check.Equal(t, "condition", conditionOf(conditions.TypeSourceUnusable, "True", conditions.ReasonNetwork, want), conditions.SourceUnusable(obstacles))
		obstacles = append(obstacles, fmt.Errorf("no way to %d", i+1))
	}
}

// Lists that are exactly as long as a message allows are complete.
//
// spec: C2
func TestFullLists(t *testing.T) {
	t.Parallel()
	var ten []clusterset.ClusterID
	for i := range 10 {
		ten = append(ten, clusterset.ClusterID(fmt.Sprintf("c%d", i)))
	}
	const all = "c0, c1, c2, c3, c4, c5, c6, c7, c8, c9"
	for name, of := range map[string]func([]clusterset.ClusterID) metav1.Condition{
		"left out": func(ids []clusterset.ClusterID) metav1.Condition {
			return conditions.Alias(conditions.Aliased{Unusable: ids})
		},
		"awaited confirmation": conditions.DeletionPending,
	} {
		full, more := of(ten).Message, of(append(ten, "d")).Message
		if !strings.Contains(full, all+" ") || strings.Contains(full, "more") || !strings.Contains(more, "1 more") {
			t.Errorf("%s: %q, and with another one %q", name, full, more)
		}
	}
	full := conditions.MetadataLeftOut([]string{"a.example", "b.example", "c.example"})
	if !strings.Contains(full, ": a.example, b.example, c.example. ") {
		t.Errorf("domains: %q", full)
	}
}

// spec: L1
func TestAliasNotWritten(t *testing.T) {
	t.Parallel()
	want := conditionOf(conditions.TypeAlias, "False", conditions.ReasonNotWritten, "some EndpointSlices of the alias cannot be written: no room")
	check.Equal(t, "condition", want, conditions.AliasNotWritten(errors.New("no room")))
}
