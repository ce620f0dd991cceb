// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package corefile_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/coredns/caddy"
	"github.com/coredns/caddy/caddyfile"
	"github.com/coredns/coredns/plugin/kubernetes"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestEdits: for every Corefile that CoreDNS can parse, an edit is valid, changes nothing if it is repeated, adds nothing else, and
// can be undone completely.
func TestEdits(t *testing.T) {
	accepted := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		text := drawCorefile(r)
		for _, edit := range []string{"forward", "multicluster"} {
			if checkEdit(r, edit, text) {
				accepted[edit]++
			}
		}
	})
	for _, edit := range []string{"forward", "multicluster"} {
		if accepted[edit] == 0 {
			t.Errorf("no Corefile was drawn to which %s can be added", edit)
		}
	}
}

// FuzzEdits is TestEdits for arbitrary bytes.
func FuzzEdits(f *testing.F) {
	for _, name := range []string{"kubeadm", "eks", "crlf", "node-local", "kubeadm.forward", "kubeadm.multicluster"} {
		f.Add(read(f, name))
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, "%$") || strings.Contains(strings.ReplaceAll(text, "\r", ""), "import") || len(text) > 4096 {
			t.Skip("the parser would read the environment and files")
		}
		if _, err := parse(text); err != nil {
			t.Skip("CoreDNS cannot read it either")
		}
		for _, edit := range []string{"forward", "multicluster"} {
			checkEdit(t, edit, text)
		}
	})
}

type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkEdit reports whether an edit of a valid Corefile is possible, and fails the test if it does not have the properties.
func checkEdit(t fataler, edit, text string) bool {
	t.Helper()
	add, remove := editOf(edit)
	once, err := add(text)
	if err != nil {
		return false
	}
	if again, err := add(once); err != nil || again != once {
		t.Fatalf("%s twice of %q: %v\n%s", edit, text, err, cmp.Diff(once, again))
	}
	clean, err := remove(text)
	if err != nil {
		t.Fatalf("%s removed from %q, to which it can be added: %v", edit, text, err)
	}
	if back, err := remove(once); err != nil || back != clean {
		t.Fatalf("%s added and removed, of %q: %v\n%s", edit, text, err, cmp.Diff(clean, back))
	}
	before, err := parse(clean)
	if err != nil {
		t.Fatalf("%q: %v", clean, err)
	}
	after, err := parse(once)
	if err != nil {
		t.Fatalf("%s makes %q invalid: %v\n%s", edit, text, err, once)
	}
	if edit == "forward" {
		i := slices.IndexFunc(after, func(b caddyfile.ServerBlock) bool {
			return strings.HasPrefix(b.Keys[0], zone+":") && slices.Equal(words(b)["forward"], []string{"forward . 10.96.0.20 fd00::20"})
		})
		if i < 0 {
			t.Fatalf("nothing is forwarded, of %q:\n%s", text, once)
		}
		after = slices.Delete(after, i, i+1)
	}
	compare(t, edit, before, after)
	return true
}

// compare fails the test if server blocks differ in anything but the zone of plugin kubernetes.
func compare(t fataler, edit string, before, after []caddyfile.ServerBlock) {
	t.Helper()
	if len(before) != len(after) {
		t.Fatalf("%s: %d server blocks, and then %d", edit, len(before), len(after))
	}
	for i := range before {
		if !slices.Equal(before[i].Keys, after[i].Keys) {
			t.Fatalf("%s: addresses %q, and then %q", edit, before[i].Keys, after[i].Keys)
		}
		was, is := words(before[i]), words(after[i])
		if edit == "multicluster" {
			for _, stanza := range is["kubernetes"] {
				twice := strings.Count(stanza, "kubernetes") > 1 // which CoreDNS refuses in any case
				if strings.Contains(stanza, "multicluster "+zone) && !twice && !parsable(stanza) {
					t.Fatalf("plugin kubernetes does not take %q", stanza)
				}
			}
			delete(was, "kubernetes")
			delete(is, "kubernetes")
		}
		if diff := cmp.Diff(was, is); diff != "" {
			t.Fatalf("%s changes a server block (-before +after):\n%s", edit, diff)
		}
	}
}

// words returns the directives of a server block as texts, by their names.
func words(b caddyfile.ServerBlock) map[string][]string {
	out := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(b.Tokens)) {
		var texts []string
		for _, t := range b.Tokens[name] {
			texts = append(texts, t.Text)
		}
		out[name] = []string{strings.Join(texts, " ")}
	}
	return out
}

// parsable reports whether plugin kubernetes accepts a stanza's zones and multicluster, regardless of other options.
func parsable(stanza string) bool {
	head, _, _ := strings.Cut(stanza, " { ")
	_, err := kubernetes.ParseStanza(controller(head + " {\nmulticluster " + zone + "\n}"))
	return err == nil
}

func controller(text string) *caddy.Controller {
	c := caddy.NewTestController("dns", text)
	c.Next()
	return c
}

// parse parses a Corefile as CoreDNS does.
func parse(text string) ([]caddyfile.ServerBlock, error) {
	return caddyfile.Parse("testdata/Corefile", strings.NewReader(text), nil)
}

// drawCorefile generates a Corefile as administrators and tools write them.
func drawCorefile(r *rapid.T) string {
	var text strings.Builder
	one := func(label string, of ...string) string { return rapid.SampledFrom(of).Draw(r, label) }
	for range rapid.IntRange(1, 4).Draw(r, "blocks") {
		text.WriteString(one("before", "", "", "# a comment\n", "\n", "(snippet"+one("name", "1", "2", "3", "4", "5", "6")+") {\n  errors\n}\n"))
		for i := range rapid.IntRange(1, 3).Draw(r, "addresses") {
			if i > 0 {
				text.WriteString(one("between", " ", ", ", ",\n"))
			}
			text.WriteString(one("address", ".:53", ".", "cluster.local", "Cluster.Local.:5353", "dns://.:53", "tls://.", "example.com:54", "10.0.0.0/8", "local", `"quoted"`))
		}
		text.WriteString(one("open", " {\n", " { \n", " { # comment\n", "\n{\n", " { errors\n"))
		for range rapid.IntRange(0, 5).Draw(r, "plugins") {
			text.WriteString(one("indent", "", "  ", "\t", "    ") + one("plugin",
				"errors", "cache 30", "loop # comment", "bind lo", "forward . 10.0.0.1 {\n  max_concurrent 10\n}", "hosts {\n}", `template "{" {`+"\n}\n}",
				"kubernetes cluster.local", "kubernetes cluster.local in-addr.arpa {\n  pods insecure\n}", "kubernetes cluster.local clusterset.local {\n}",
				"kubernetes", "kubernetes cluster.local { pods insecure\n}", "kubernetes \"cluster.local\" { # ours\n\tttl 5 }",
				"log \"a\n# b { \"", "#kubernetes cluster.local {", "kubernetes cluster.local clusterset.local {\n multicluster clusterset.local\n}",
			) + "\n")
		}
		text.WriteString(one("close", "}\n", "  }\n", "} \n", "}"))
		if !strings.HasSuffix(text.String(), "\n") && rapid.Bool().Draw(r, "continues") {
			text.WriteString("\n")
		}
	}
	result := strings.TrimPrefix(text.String(), "\n")
	if rapid.Bool().Draw(r, "CRLF") {
		result = strings.ReplaceAll(result, "\n", "\r\n")
	}
	if _, err := parse(result); err != nil {
		r.Skip("CoreDNS cannot read it")
	}
	return result
}
