// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/preference"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// The time for which a source has been available does not count for another one that an edited policy has at its place.
//
// spec: P1
func TestReturnsOfAnEditedPolicy(t *testing.T) {
	t.Parallel()
	returns, now := NewReturns(), time.Unix(0, 0)
	first := preference.Return{Port: preference.Port{Name: "http", Family: "IPv4"}, Level: 0}
	before, edited := []policyv1alpha1.Source{{Clusters: []policyv1alpha1.ClusterID{"a"}}, {Any: true}}, []policyv1alpha1.Source{{Clusters: []policyv1alpha1.ClusterID{"c"}}, {Any: true}}
	returns.update(webKey(), before, []preference.Return{first}, now)
	now = now.Add(preference.ReturnDelay)
	check.Equal(t, "the source has been available for", preference.ReturnDelay, returns.available(webKey(), before, now)[first])
	check.Equal(t, "another source at its place has been available for", time.Duration(0), returns.available(webKey(), edited, now)[first])
	returns.update(webKey(), edited, []preference.Return{first}, now)
	now = now.Add(time.Second)
	check.Equal(t, "after the edit the source has been available for", time.Second, returns.available(webKey(), edited, now)[first])
}
