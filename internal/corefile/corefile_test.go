// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package corefile_test

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/corefile"
)

const zone = "clusterset.local"

var update = flag.Bool("update", false, "write the golden files")

// TestCorefiles: each Corefile in testdata with the zone forwarded, and served by plugin kubernetes.
func TestCorefiles(t *testing.T) {
	for name, edits := range map[string][]string{
		"kubeadm":    {"forward", "multicluster"},
		"k3s":        {"forward", "multicluster"},
		"eks":        {"forward", "multicluster"},
		"crlf":       {"forward", "multicluster"},
		"several":    {"forward", "multicluster"},
		"node-local": {"forward"},
	} {
		text := read(t, name)
		for _, edit := range edits {
			t.Run(name+"/"+edit, func(t *testing.T) {
				add, remove := editOf(edit)
				once := must(t)(add(text))
				if *update {
					check.Must(t, os.WriteFile(filepath.Join("testdata", name+"."+edit), []byte(once), 0o644))
				}
				check.Equal(t, "edited once", read(t, name+"."+edit), once)
				if again := must(t)(add(once)); again != once {
					t.Errorf("added twice is not added once:\n%s", cmp.Diff(once, again))
				}
				if back := must(t)(remove(once)); back != text {
					t.Errorf("removed, it is not what it was:\n%s", cmp.Diff(text, back))
				}
				if same := must(t)(remove(text)); same != text {
					t.Errorf("nothing to remove, and yet:\n%s", cmp.Diff(text, same))
				}
			})
		}
	}
}

// TestForwardMoves: another address replaces the block at its position; the other lines do not change.
func TestForwardMoves(t *testing.T) {
	text := read(t, "kubeadm")
	first := must(t)(corefile.AddForward(text, zone, netip.MustParseAddr("10.96.0.20")))
	for _, tail := range []string{"", "example.com {\n    whoami\n}\n", "# the end"} {
		got := must(t)(corefile.AddForward(first+tail, zone, netip.MustParseAddr("fd00::20"), netip.MustParseAddr("10.96.0.21")))
		want := strings.Replace(first, "10.96.0.20", "fd00::20 10.96.0.21", 1) + tail
		check.Equal(t, fmt.Sprintf("before %q", tail), want, got)
		if back := must(t)(corefile.RemoveForward(got)); back != text+tail {
			t.Errorf("before %q: -want +got:\n%s", tail, cmp.Diff(text+tail, back))
		}
	}
}

// TestExistingMulticlusterZone: a zone that an administrator has added by hand does not change.
func TestExistingMulticlusterZone(t *testing.T) {
	text := ".:53 {\n  kubernetes cluster.local ClusterSet.Local. {\n    multicluster clusterset.LOCAL\n  }\n}\n"
	if got := must(t)(corefile.AddMulticluster(text, zone)); got != text {
		t.Errorf("-want +got:\n%s", cmp.Diff(text, got))
	}
}

// TestForwardBesideMulticluster: the change from plugin kubernetes to Tombolo's plugin does not interrupt DNS.
func TestForwardBesideMulticluster(t *testing.T) {
	text := read(t, "kubeadm")
	both := must(t)(corefile.AddForward(must(t)(corefile.AddMulticluster(text, zone)), zone, netip.MustParseAddr("10.96.0.20")))
	want := must(t)(corefile.AddForward(text, zone, netip.MustParseAddr("10.96.0.20")))
	check.Equal(t, "without the zone", want, must(t)(corefile.RemoveMulticluster(both)))
}

func TestForwardErrors(t *testing.T) {
	service := []netip.Addr{netip.MustParseAddr("10.96.0.20")}
	marked := must(t)(corefile.AddForward(".:53 {\n}\n", zone, service...))
	for name, c := range map[string]struct {
		text, zone string
		to         []netip.Addr
		want       string
	}{
		"empty":       {"# nothing\n", zone, service, `corefile: there is no server block: is this the Corefile of the cluster's CoreDNS?`},
		"no address":  {".:53 {\n}\n", zone, nil, `corefile: forward to []: it takes one address, or one of each IP family`},
		"one family":  {".:53 {\n}\n", zone, []netip.Addr{service[0], service[0]}, `corefile: forward to [10.96.0.20 10.96.0.20]: it takes one address, or one of each IP family`},
		"headless":    {".:53 {\n}\n", zone, make([]netip.Addr, 1), `corefile: forward to invalid IP: that is no address of a Service`},
		"loopback":    {".:53 {\n}\n", zone, []netip.Addr{netip.MustParseAddr("127.0.0.1")}, `corefile: forward to 127.0.0.1: that is no address of a Service`},
		"bad zone":    {".:53 {\n}\n", "a b", service, `corefile: zone "a b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		"served":      {".:53 {\n}\nClusterset.Local. {\n}\n", zone, service, `corefile: line 3: there is a server block for clusterset.local already, which is not ours: remove it, or keep it and add none`},
		"bare":        {".:53\nerrors\n", zone, service, `corefile: line 1: the server block has no braces, so no other can follow: put { behind its addresses and } at its end`},
		"half a line": {".:53 {\n}\r", zone, service, `corefile: the last line ends with a carriage return alone: put a line feed behind it`},
		"open":        {".:53 {\nerrors\n", zone, service, `corefile: line 1: the server block has no end: a } is missing`},
		"open inside": {".:53 {\nerrors\ncache {\n}\n", zone, service, `corefile: line 1: the server block has no end: a } is missing`},
		"open plugin": {".:53 {\ncache {\n", zone, service, `corefile: line 2: cache has no end: a } is missing`},
		"no plugin":   {".:53 {\n{\n}\n}", zone, service, `corefile: line 2: a "{" where a plugin should be`},
		"no key":      {".:53 {\n}\n}\n", zone, service, `corefile: line 3: a "}" where the addresses of a server block should be`},
		"twice":       {marked + marked, zone, service, `corefile: line 12: a second "# BEGIN tombolo forward": remove it by hand`},
		"no end":      {strings.Replace(marked, "# END", "# DNE", 1), zone, service, `corefile: line 3: "# BEGIN tombolo forward" without "# END tombolo forward": another user has edited what is between them: remove what is ours by hand`},
		"no begin":    {strings.Replace(marked, "# BEGIN", "# NIGEB", 1), zone, service, `corefile: line 9: "# END tombolo forward" without "# BEGIN tombolo forward": another user has edited what is between them: remove what is ours by hand`},
		"nested":      {strings.Replace(marked, "# END", "# BEGIN", 1), zone, service, `corefile: line 3: "# BEGIN tombolo forward" without "# END tombolo forward": another user has edited what is between them: remove what is ours by hand`},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, c.want)(corefile.AddForward(c.text, c.zone, c.to...))
		})
	}
}

func TestMulticlusterErrors(t *testing.T) {
	kubeadm := read(t, "kubeadm")
	forwarded := must(t)(corefile.AddForward(kubeadm, zone, netip.MustParseAddr("10.96.0.20")))
	const alone = `put the plugin kubernetes and its zones on a line of their own, with nothing behind the {`
	const elsewhere = `the server block that takes the questions for clusterset.local has no plugin kubernetes of its own: ` +
		`where it forwards the zone, remove that first; where it imports the plugin, edit what it imports`
	for name, c := range map[string]struct{ text, zone, want string }{
		"bad zone":        {kubeadm, "Q", `corefile: zone "Q": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		"forwarded":       {forwarded, zone, `corefile: line 25: ` + elsewhere},
		"snippet":         {"(k) {\n  kubernetes cluster.local\n}\n. {\n  import k\n}\n", zone, `corefile: line 4: ` + elsewhere},
		"elsewhere":       {"cluster.local {\n  kubernetes cluster.local\n}\n", zone, `corefile: no server block takes the questions for clusterset.local: add clusterset.local:53 to the addresses of the one with the plugin kubernetes`},
		"not DNS":         {"tls://. {\n  kubernetes cluster.local\n}\n", zone, `corefile: no server block takes the questions for clusterset.local: add clusterset.local:53 to the addresses of the one with the plugin kubernetes`},
		"others":          {". {\n  kubernetes cluster.local a.b {\n    multicluster a.b\n  }\n}\n", zone, `corefile: line 2: the plugin kubernetes has multicluster for [a.b] already: add clusterset.local there and to its zones, or remove it`},
		"not its zone":    {". {\n  kubernetes cluster.local {\n    multicluster clusterset.local\n  }\n}\n", zone, `corefile: line 2: the plugin kubernetes has multicluster for clusterset.local, which is not among its zones: add it to them`},
		"no zones":        {". {\n  kubernetes {\n  }\n}\n", zone, `corefile: line 2: the plugin kubernetes has the zones of its server block: write them behind it, as in: kubernetes cluster.local in-addr.arpa ip6.arpa`},
		"one line":        {". {\n  kubernetes cluster.local { pods insecure\n  }\n}\n", zone, `corefile: line 2: ` + alone},
		"shared":          {". { kubernetes cluster.local\n}\n", zone, `corefile: line 1: ` + alone},
		"quoted":          {". {\n  kubernetes cluster.local \"a\nb\"\n}\n", zone, `corefile: line 2: ` + alone},
		"argument":        {". {\n  log \"a\nb\" kubernetes cluster.local\n}\n", zone, `corefile: line 1: ` + elsewhere},
		"open":            {". {\n  kubernetes cluster.local {\n", zone, `corefile: line 2: kubernetes has no end: a } is missing`},
		"a mark alone":    {". {\n  kubernetes cluster.local\n# END tombolo multicluster\n}\n", zone, `corefile: line 3: "# END tombolo multicluster" without "# BEGIN tombolo multicluster": another user has edited what is between them: remove what is ours by hand`},
		"another's marks": {". {\n# BEGIN tombolo multicluster\n  kubernetes cluster.local\n# END tombolo multicluster\n}\n", zone, `corefile: line 2: another user has edited what is below "# BEGIN tombolo multicluster": remove what is ours by hand`},
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, c.want)(corefile.AddMulticluster(c.text, c.zone))
		})
	}
}

// TestMulticlusterEdited: marked lines that were edited are not removed.
func TestMulticlusterEdited(t *testing.T) {
	added := must(t)(corefile.AddMulticluster(read(t, "kubeadm"), zone))
	const edited = `corefile: line 7: another user has edited what is below "# BEGIN tombolo multicluster": remove what is ours by hand`
	for name, replace := range map[string][2]string{
		"zones":         {"ip6.arpa clusterset.local {", "clusterset.local {"},
		"the line kept": {"# was:    kubernetes cluster.local", "# was:    kubernetes"},
		"no line kept":  {"# was:    kubernetes", "#"},
		"empty line":    {"    # was:    kubernetes cluster.local in-addr.arpa ip6.arpa {", "    # was:"},
		"a brace alone": {"    # was:    kubernetes cluster.local in-addr.arpa ip6.arpa {", "    # was: {"},
		"multicluster":  {"multicluster clusterset.local\n", "multicluster\n"},
		"fewer lines":   {"        multicluster clusterset.local\n", ""},
		"more lines":    {"multicluster clusterset.local\n", "multicluster clusterset.local\n        ttl 10\n"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(added, replace[0], replace[1], 1)
			if text == added {
				t.Fatal("nothing was edited")
			}
			refused(t, edited)(corefile.RemoveMulticluster(text))
		})
	}
}

// TestForwardBlock: the text that the kustomizations ask administrators to paste.
func TestForwardBlock(t *testing.T) {
	got := must(t)(corefile.ForwardBlock(zone, netip.MustParseAddr("10.96.0.20")))
	want := "# BEGIN tombolo forward\nclusterset.local:53 {\n    errors\n    cache 5\n    forward . 10.96.0.20\n}\n# END tombolo forward\n"
	if got != want {
		t.Errorf("-want +got:\n%s", cmp.Diff(want, got))
	}
	text := read(t, "eks")
	if back := must(t)(corefile.RemoveForward(text + got)); back != text {
		t.Errorf("pasted by hand and removed: -want +got:\n%s", cmp.Diff(text, back))
	}
	if added := must(t)(corefile.AddForward(text, zone, netip.MustParseAddr("10.96.0.20"))); added != text+got {
		t.Errorf("added: -want +got:\n%s", cmp.Diff(text+got, added))
	}
	refused(t, "corefile: forward to []: it takes one address, or one of each IP family")(corefile.ForwardBlock(zone))
}

// TestREADME: the text that administrators are asked to paste is that of AddForward.
func TestREADME(t *testing.T) {
	text, err := os.ReadFile("../../manifests/dns/corefile/README.md")
	check.Must(t, err)
	var blocks []string
	for _, part := range strings.Split(string(text), "```corefile\n")[1:] {
		block, _, _ := strings.Cut(part, "```")
		blocks = append(blocks, block)
	}
	if len(blocks) != 2 {
		t.Fatalf("%d blocks, want 2", len(blocks))
	}
	stanza, forward := blocks[0], blocks[1]
	const before = ".:53 {\n    kubernetes cluster.local in-addr.arpa ip6.arpa\n}\n"
	var unmarked []string
	for line := range strings.Lines(must(t)(corefile.AddMulticluster(before, zone))) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			unmarked = append(unmarked, line)
		}
	}
	check.Equal(t, "the stanza", strings.Join(unmarked, ""), stanza)
	check.Equal(t, "pasted, it is added again", stanza, must(t)(corefile.AddMulticluster(stanza, zone)))
	check.Equal(t, "the server block", must(t)(corefile.ForwardBlock(zone, netip.MustParseAddr("10.96.0.20"))), forward)
}

// editOf returns the functions that make an edit and undo it.
func editOf(edit string) (add, remove func(string) (string, error)) {
	if edit == "forward" {
		return func(text string) (string, error) {
			return corefile.AddForward(text, zone, netip.MustParseAddr("10.96.0.20"), netip.MustParseAddr("fd00::20"))
		}, corefile.RemoveForward
	}
	return func(text string) (string, error) { return corefile.AddMulticluster(text, zone) }, corefile.RemoveMulticluster
}

func read(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	check.Must(t, err)
	return string(text)
}

func must(t *testing.T) func(string, error) string {
	t.Helper()
	return func(text string, err error) string {
		t.Helper()
		check.Must(t, err)
		return text
	}
}

// refused fails the test unless there is no text and the error is this.
func refused(t *testing.T, want string) func(string, error) {
	t.Helper()
	return func(text string, err error) {
		t.Helper()
		if err == nil || err.Error() != want || text != "" {
			t.Errorf("%v\nwant %s\ntext:\n%s", err, want, text)
		}
	}
}
