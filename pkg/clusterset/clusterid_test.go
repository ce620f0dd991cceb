// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: N7, K2
func TestParseClusterID(t *testing.T) {
	t.Parallel()
	const label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an " +
		"alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
	longest := strings.Repeat("x", 56)
	cases := map[string]struct {
		id      string
		wantErr string
	}{
		"a word":            {id: "berlin"},
		"digits and dashes": {id: "0-eu-west-1"},
		"one character":     {id: "a"},
		"the longest":       {id: longest},
		"empty": {
			id:      "",
			wantErr: "the cluster ID is empty: set the ClusterProperty cluster.clusterset.k8s.io, or pass --cluster-id",
		},
		"upper case":     {id: "Berlin", wantErr: `cluster ID "Berlin" is no DNS label (` + label + `): choose another`},
		"a dot":          {id: "eu.west", wantErr: `cluster ID "eu.west" is no DNS label (must not contain dots): choose another`},
		"a dash at last": {id: "eu-", wantErr: `cluster ID "eu-" is no DNS label (` + label + `): choose another`},
		"one character too long": {
			id: longest + "y",
			wantErr: `cluster ID "` + longest + `y" has 57 characters, more than 56: its namespace on the hub, member-<id>, would be too long; ` +
				`choose a shorter one`,
		},
		"no label and illegal": {
			id: strings.Repeat("_", 64),
			wantErr: `cluster ID "` + strings.Repeat("_", 64) + `" is no DNS label (must be no more than 63 characters; ` + label +
				`): choose another`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := clusterset.ParseClusterID(tc.id)
			if tc.wantErr != "" {
				if err == nil || err.Error() != tc.wantErr {
					t.Errorf("error %v\nwant  %s", err, tc.wantErr)
				}
				if got != "" {
					t.Errorf("ID %q beside an error", got)
				}
				return
			}
			if err != nil || string(got) != tc.id {
				t.Errorf("got %q, %v", got, err)
			}
			if problems := validation.IsDNS1123Label(got.HubNamespace()); len(problems) > 0 {
				t.Errorf("%s is no namespace: %v", got.HubNamespace(), problems)
			}
		})
	}
}

func TestClusterIDOfHubNamespace(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		namespace string
		want      clusterset.ClusterID
		ok        bool
	}{
		"a member's":           {"member-berlin", "berlin", true},
		"a member named so":    {"member-member-a", "member-a", true},
		"a shared one":         {"tombolo-system", "", false},
		"the prefix alone":     {"member-", "", false},
		"an illegal ID":        {"member-a.b", "", false},
		"without the prefix":   {"berlin", "", false},
		"the prefix elsewhere": {"x-member-berlin", "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := clusterset.ClusterIDOfHubNamespace(tc.namespace)
			if got != tc.want || ok != tc.ok {
				t.Errorf("got %q, %t; want %q, %t", got, ok, tc.want, tc.ok)
			}
			if ok && got.HubNamespace() != tc.namespace {
				t.Errorf("namespace %q", got.HubNamespace())
			}
		})
	}
}

// spec: D2
func TestNames(t *testing.T) {
	t.Parallel()
	type names struct{ Short, Long, Slice string }
	cases := map[string]struct {
		service string
		want    names
	}{
		"the example of the KEP": {"web-service", names{
			"derived-435094621", "derived-e15d11959b2b1a9344a4b03434c2604bc5cc4ce6", "derived-435094621-berlin-0123456789",
		}},
		"a name whose sum another has": {"shard-020", names{
			"derived-275972818", "derived-98584e222de4ee4e220b9d8285debfa8d0bfe670", "derived-275972818-berlin-0123456789",
		}},
		"that other": {"shard-101", names{
			"derived-275972818", "derived-12e2baf81a1215fb853a549194b83f233a365973", "derived-275972818-berlin-0123456789",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			short := clusterset.ShortDerivedName(tc.service)
			got := names{short, clusterset.LongDerivedName(tc.service), clusterset.MirroredSliceName(short, "berlin", "0123456789")}
			check.Equal(t, "names", tc.want, got)
		})
	}
}

// spec: D4
func TestSliceID(t *testing.T) {
	t.Parallel()
	const want = "fee427211d"
	if got := clusterset.SliceID("web-abc12"); got != want {
		t.Errorf("slice ID %q, want %q: renamed slices are all written anew", got, want)
	}
	for id, want := range map[string]bool{
		want: true, "0123456789": true, "abcdefabcd": true,
		"": false, "012345678": false, "0123456789a": false, "eu-0123456789": false, "eu-0123456": false, "-123456789": false,
		"ABCDEF0123": false, "g123456789": false, "01234 6789": false, "01234.6789": false, "é12345678": false,
	} {
		check.Equal(t, fmt.Sprintf("%q is an ID", id), want, clusterset.IsSliceID(id))
	}
}

// The longest names are legal for a Service (63 characters) and an EndpointSlice (253).
// spec: D2, D4
func TestLongestNames(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("x", 63)
	derived := clusterset.LongDerivedName(longest)
	if problems := validation.IsDNS1035Label(derived); len(problems) > 0 {
		t.Errorf("%s is no Service name: %v", derived, problems)
	}
	slice := clusterset.MirroredSliceName(derived, clusterset.ClusterID(longest[:clusterset.MaxClusterIDLength]), clusterset.SliceID(longest))
	if problems := validation.IsDNS1123Subdomain(slice); len(problems) > 0 {
		t.Errorf("%s is no slice name: %v", slice, problems)
	}
}

// FuzzClusterID: an accepted ID is a DNS label, its namespace on the hub is one too, and only this namespace returns the ID. The
// error of a refused ID contains it.
//
// spec: N7
func FuzzClusterID(f *testing.F) {
	for _, seed := range []string{
		"a", "east-1", "0", "", "-", "a-", "A", "a.b", "ü", "member-a", "a\n", "a/../b", strings.Repeat("x", 56), strings.Repeat("x", 57), strings.Repeat("x", 64),
	} {
		f.Add(seed)
	}
	label := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)
	f.Fuzz(func(t *testing.T, s string) {
		id, err := clusterset.ParseClusterID(s)
		namespace := clusterset.ClusterID(s).HubNamespace()
		back, isMembers := clusterset.ClusterIDOfHubNamespace(namespace)
		if isMembers != (err == nil) || isMembers && string(back) != s {
			t.Errorf("ID %q: %v, but namespace %q leads to %q, %t", s, err, namespace, back, isMembers)
		}
		legal := label.MatchString(s) && label.MatchString(namespace)
		if legal != (err == nil) || err == nil && string(id) != s {
			t.Errorf("ID %q is taken for %q, %v", s, id, err)
		}
		if err != nil && s != "" && !strings.Contains(err.Error(), strconv.Quote(s)) {
			t.Errorf("ID %q is refused without a word of it: %v", s, err)
		}
		if other, ok := clusterset.ClusterIDOfHubNamespace(s); ok && other.HubNamespace() != s {
			t.Errorf("namespace %q leads to %q, whose namespace is another", s, other)
		}
	})
}
