// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package reading

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

func TestCanConnectClient(t *testing.T) {
	t.Parallel()
	if got, err := ClientOf("west/shop/frontend"); err != nil || got != (access.Client{Cluster: "west", Namespace: "shop", ServiceAccount: "frontend"}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, wrong := range []string{"", "west", "west/shop", "west/shop/", "west/shop/frontend/web"} {
		if _, err := ClientOf(wrong); err == nil || !strings.Contains(err.Error(), "is not CLUSTER/NAMESPACE/SERVICEACCOUNT") {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// TestNames: the current context is read unless others are selected, and the hub alone if there is none.
func TestNames(t *testing.T) {
	t.Parallel()
	known := clientcmdapi.Config{CurrentContext: "east", Contexts: map[string]*clientcmdapi.Context{"west": {}, "east": {}, "hub": {}}}
	without := clientcmdapi.Config{Contexts: known.Contexts}
	hub := connection.HubFlags{Context: "hub"}
	for name, test := range map[string]struct {
		flags   Flags
		current string
		config  clientcmdapi.Config
		want    []string
		fails   bool
	}{
		"current":               {Flags{}, "", known, []string{"east"}, false},
		"given":                 {Flags{}, "west", known, []string{"west"}, false},
		"some":                  {Flags{contexts: []string{"west", "hub"}}, "", known, []string{"west", "hub"}, false},
		"all, sorted":           {Flags{All: true}, "", known, []string{"east", "hub", "west"}, false},
		"the hub beside it":     {Flags{HubFlags: hub}, "", known, []string{"east"}, false},
		"no current, hub given": {Flags{HubFlags: hub}, "", without, nil, false},
		"no current":            {Flags{}, "", without, nil, true},
		"all of none":           {Flags{All: true}, "", clientcmdapi.Config{}, nil, true},
		"two selections":        {Flags{All: true, contexts: []string{"west"}}, "", known, nil, true},
		"current and all":       {Flags{All: true}, "west", known, nil, true},
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
		flags  Flags
		unread []clusterset.ClusterID
		want   string
	}{
		"none":     {Flags{}, nil, ""},
		"two":      {Flags{}, two, "note: only what the hub stores of east, west" + rest},
		"many":     {Flags{}, many, "note: only what the hub stores of 6 members" + rest},
		"all":      {Flags{All: true}, two, ""},
		"selected": {Flags{contexts: []string{"hub"}}, two, ""},
	} {
		check.Equal(t, name, test.want, test.flags.unreadNote(test.unread))
	}
}
