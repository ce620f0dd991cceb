// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestNames: the current context is read unless others are selected, and the hub alone if there is none.
func TestNames(t *testing.T) {
	t.Parallel()
	known := clientcmdapi.Config{CurrentContext: "east", Contexts: map[string]*clientcmdapi.Context{"west": {}, "east": {}, "hub": {}}}
	without := clientcmdapi.Config{Contexts: known.Contexts}
	hub := hubFlags{context: "hub"}
	for name, test := range map[string]struct {
		flags   clustersetFlags
		current string
		config  clientcmdapi.Config
		want    []string
		fails   bool
	}{
		"current":               {clustersetFlags{}, "", known, []string{"east"}, false},
		"given":                 {clustersetFlags{}, "west", known, []string{"west"}, false},
		"some":                  {clustersetFlags{contexts: []string{"west", "hub"}}, "", known, []string{"west", "hub"}, false},
		"all, sorted":           {clustersetFlags{all: true}, "", known, []string{"east", "hub", "west"}, false},
		"the hub beside it":     {clustersetFlags{hubFlags: hub}, "", known, []string{"east"}, false},
		"no current, hub given": {clustersetFlags{hubFlags: hub}, "", without, nil, false},
		"no current":            {clustersetFlags{}, "", without, nil, true},
		"all of none":           {clustersetFlags{all: true}, "", clientcmdapi.Config{}, nil, true},
		"two selections":        {clustersetFlags{all: true, contexts: []string{"west"}}, "", known, nil, true},
		"current and all":       {clustersetFlags{all: true}, "west", known, nil, true},
	} {
		got, err := test.flags.names(test.current, test.config)
		if diff := cmp.Diff(test.want, got); diff != "" || (err != nil) != test.fails {
			t.Errorf("%s: %v, -want +got:\n%s", name, err, diff)
		}
	}
}

// TestUnreadNote: a note names the members that are not read by default. If contexts were selected, there is none.
func TestUnreadNote(t *testing.T) {
	t.Parallel()
	two := []clusterset.ClusterID{"east", "west"}
	many := []clusterset.ClusterID{"a", "b", "c", "d", "e", "f"}
	const rest = " is known: --all-contexts or --contexts reads more clusters than the current context's"
	for name, test := range map[string]struct {
		flags  clustersetFlags
		unread []clusterset.ClusterID
		want   string
	}{
		"none":     {clustersetFlags{}, nil, ""},
		"two":      {clustersetFlags{}, two, "note: only what the hub stores of east, west" + rest},
		"many":     {clustersetFlags{}, many, "note: only what the hub stores of 6 members" + rest},
		"all":      {clustersetFlags{all: true}, two, ""},
		"selected": {clustersetFlags{contexts: []string{"hub"}}, two, ""},
	} {
		check.Equal(t, name, test.want, test.flags.unreadNote(test.unread))
	}
}
