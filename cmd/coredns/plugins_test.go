// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/google/go-cmp/cmp"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// TestDirectivesAreLinked: a directive without its plugin is an error when a Corefile uses it; a plugin without its directive
// cannot be used.
func TestDirectivesAreLinked(t *testing.T) {
	var linked []string
	for _, name := range caddy.ListPlugins()["others"] {
		linked = append(linked, strings.TrimPrefix(name, "dns."))
	}
	slices.Sort(linked)
	if diff := cmp.Diff(linked, slices.Sorted(slices.Values(directives))); diff != "" {
		t.Errorf("linked plugins (-) and directives (+) differ:\n%s", diff)
	}
}

// TestDirectivesHaveUpstreamOrder: the order of the directives is the order of the plugins, whatever the order in the Corefile
// is. clusterset is just before kubernetes.
func TestDirectivesHaveUpstreamOrder(t *testing.T) {
	upstream := slices.DeleteFunc(slices.Clone(dnsserver.Directives), func(d string) bool { return !slices.Contains(directives, d) })
	want := slices.Insert(upstream, slices.Index(upstream, "kubernetes"), "clusterset")
	if diff := cmp.Diff(want, directives); diff != "" {
		t.Errorf("directives in CoreDNS' order (-) and ours (+) differ:\n%s", diff)
	}
}

func TestNoCloudIsLinked(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	check.Must(t, err)
	for _, sdk := range []string{
		"cloud.google.com/", "google.golang.org/api/", "github.com/Azure/", "github.com/aws/", "github.com/DataDog/",
		"github.com/hashicorp/nomad/", "github.com/openzipkin/",
	} {
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, sdk) {
				t.Errorf("%s is linked", strings.TrimSpace(line))
			}
		}
	}
}
