// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import "testing"

// TestAdmits: services are imported into each namespace that is not reserved, not denied, and in the list of allowed ones if there
// is one.
//
// spec: I1
func TestAdmits(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		policy    NamespacePolicy
		namespace string
		want      bool
	}{
		"no policy":                      {NamespacePolicy{}, "shop", true},
		"reserved":                       {NamespacePolicy{}, "kube-system", false},
		"reserved, whatever is allowed":  {NamespacePolicy{Allowed: []string{"kube-public"}}, "kube-public", false},
		"a member's on the hub":          {NamespacePolicy{Allowed: []string{"member-c1"}}, "member-c1", false},
		"denied":                         {NamespacePolicy{Denied: []string{"bank", "shop"}}, "shop", false},
		"another is denied":              {NamespacePolicy{Denied: []string{"bank"}}, "shop", true},
		"the agent has none of its own":  {NamespacePolicy{Denied: []string{""}}, "shop", true},
		"allowed":                        {NamespacePolicy{Allowed: []string{"bank", "shop"}}, "shop", true},
		"another is allowed":             {NamespacePolicy{Allowed: []string{"bank"}}, "shop", false},
		"allowed and denied":             {NamespacePolicy{Allowed: []string{"shop"}, Denied: []string{"shop"}}, "shop", false},
		"allowed, and another is denied": {NamespacePolicy{Allowed: []string{"shop"}, Denied: []string{"bank"}}, "shop", true},
		"neither allowed nor denied":     {NamespacePolicy{Allowed: []string{"bank"}, Denied: []string{"agents"}}, "shop", false},
		"part of a name that is allowed": {NamespacePolicy{Allowed: []string{"shop-2"}}, "shop", false},
		"part of a name that is denied":  {NamespacePolicy{Denied: []string{"shop-2"}}, "shop", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.policy.Allows(test.namespace); got != test.want {
				t.Errorf("%+v admits %s: %v, want %v", test.policy, test.namespace, got, test.want)
			}
		})
	}
}
