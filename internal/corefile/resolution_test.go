// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package corefile_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/corefile"
)

// TestResolutionOf: what a Corefile does with the names of the clusterset. What it does not show is not known.
func TestResolutionOf(t *testing.T) {
	t.Parallel()
	type custom = corefile.Custom
	to := func(addresses ...string) corefile.Resolution {
		r := corefile.Resolution{Kind: corefile.Forwarded}
		for _, a := range addresses {
			r.To = append(r.To, netip.MustParseAddr(a))
		}
		return r
	}
	in := func(file string, r corefile.Resolution) corefile.Resolution {
		r.In = file
		return r
	}
	unserved, served := corefile.Resolution{Kind: corefile.Unserved}, corefile.Resolution{Kind: corefile.Served}
	unknown := func(why string) corefile.Resolution { return corefile.Resolution{Kind: corefile.NotKnown, Why: why} }
	kubeadm, k3s := read(t, "kubeadm"), read(t, "k3s")
	const block = "clusterset.local:53 {\n  errors\n  forward . 10.96.0.20\n}\n"
	for name, test := range map[string]struct {
		text   string
		custom custom
		want   corefile.Resolution
	}{
		"kubeadm":                  {kubeadm, nil, unserved},
		"kubeadm, forwarded":       {read(t, "kubeadm.forward"), nil, to("10.96.0.20", "fd00::20")},
		"kubeadm, served":          {read(t, "kubeadm.multicluster"), nil, served},
		"by hand":                  {kubeadm + block, nil, to("10.96.0.20")},
		"on two ports":             {".:53 {\n}\nclusterset.local:53 {\nforward . 10.96.0.20\n}\nclusterset.local:5353 {\nforward . 10.96.0.21 10.96.0.20\n}\n", nil, to("10.96.0.20", "10.96.0.21")},
		"with ports and a policy":  {"ClusterSet.Local. {\nforward . dns://10.96.0.20:53 [fd00::20]:53 ::ffff:10.96.0.21 {\nforce_tcp\n}\n}\n", nil, to("10.96.0.20", "fd00::20", "10.96.0.21")},
		"in the root's block":      {". {\nforward clusterset.local 10.96.0.20\nforward . /etc/resolv.conf\n}\n", nil, to("10.96.0.20")},
		"in a parent's block":      {".:53 {\n}\nlocal {\nforward . 10.96.0.20\n}\n", nil, to("10.96.0.20")},
		"all names of the root":    {". {\nforward . 10.96.0.20\n}\n", nil, unserved},
		"another zone":             {".:53 {\n}\nexample.com {\nforward . 10.96.0.20\n}\n", nil, unserved},
		"a subdomain":              {".:53 {\n}\nsvc.clusterset.local {\nforward . 10.96.0.20\n}\n", nil, unserved},
		"no block":                 {"example.com {\nforward . 10.96.0.20\n}\n", nil, unserved},
		"Tombolo's plugin":         {"clusterset.local {\nclusterset\n}\n", nil, served},
		"plugin for its own zones": {".:53 {\nclusterset example.org\nforward . 10.0.0.1\n}\n", nil, unserved},
		"plugin multicluster":      {".:53 {\nmulticluster clusterset.local\nforward . /etc/resolv.conf\n}\n", nil, served},
		"served before forwarded":  {"clusterset.local {\nforward . 10.96.0.20\nclusterset\n}\n", nil, served},
		"own block of kubernetes":  {"clusterset.local {\nkubernetes clusterset.local {\nmulticluster clusterset.local\n}\n}\n", nil, served},
		"cluster.local only":       {"clusterset.local {\nkubernetes cluster.local\n}\n", nil, unknown("line 1: the server block for it has no forward")},
		"a file":                   {"clusterset.local {\nfile db\n}\n", nil, unknown("line 2: what plugin file does with it is not known")},
		"rewritten":                {".:53 {\nrewrite name suffix .clusterset.local .svc.example\nforward . 10.0.0.1\n}\n", nil, unknown("line 2: what plugin rewrite does with it is not known")},
		"another name rewritten":   {".:53 {\nrewrite name a.example b.example\n}\n", nil, unserved},
		"by a file of servers":     {"clusterset.local {\nforward . /etc/resolv.conf\n}\n", nil, unknown("it is forwarded to /etc/resolv.conf")},
		"by TLS":                   {"clusterset.local {\nforward . tls://10.96.0.20\n}\n", nil, unknown("it is forwarded to tls://10.96.0.20")},
		"another port":             {"clusterset.local {\nforward . 10.96.0.20:1053\n}\n", nil, unknown("it is forwarded to 10.96.0.20:1053")},
		"a snippet":                {"(up) {\nforward . 10.96.0.20\n}\n.:53 {\n}\nclusterset.local {\nimport up\n}\n", nil, to("10.96.0.20")},
		"a snippet of itself":      {"(up) {\nimport up\n}\nclusterset.local {\nimport up\n}\n", nil, unknown("it imports up, which was not read")},
		"a missing snippet":        {read(t, "several"), nil, unserved},
		"an import":                {".:53 {\nimport /etc/other\n}\n", nil, unknown("it imports /etc/other, which was not read")},
		"an import of blocks":      {".:53 {\n}\nimport a.conf b.conf\n", custom{}, unknown("it imports a.conf, b.conf, which was not read")},
		"an import beside it":      {block + "import a.conf\n", nil, to("10.96.0.20")},
		"k3s, custom not read":     {k3s, nil, unknown("it imports /etc/coredns/custom/*.server, /etc/coredns/custom/*.override, which was not read")},
		"k3s, no custom":           {k3s, custom{}, unserved},
		"k3s, custom":              {k3s, custom{"tombolo.server": block, "notes": "{"}, in("tombolo.server", to("10.96.0.20"))},
		"k3s, custom override":     {k3s, custom{"a.override": "forward clusterset.local 10.96.0.20"}, in("a.override", to("10.96.0.20"))},
		"k3s, other custom":        {k3s, custom{"a.server": "example.com {\n}\n", "b.override": "log"}, unserved},
		"k3s, invalid custom":      {k3s, custom{"a.server": "example.com {\n"}, unknown("a.server: corefile: line 1: the server block has no end: a } is missing")},
		"invalid":                  {".:53 {\n", nil, unknown("corefile: line 1: the server block has no end: a } is missing")},
		"empty":                    {"", nil, unserved},
	} {
		if diff := cmp.Diff(test.want, corefile.ResolutionOf(test.text, zone, test.custom), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// TestResolutionOfEdits: what the edits of this package make of a Corefile is read as such.
func TestResolutionOfEdits(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"kubeadm", "k3s", "eks", "crlf", "several", "node-local"} {
		forward, _ := editOf("forward")
		got := corefile.ResolutionOf(must(t)(forward(read(t, name))), zone, nil)
		check.Equal(t, name+", forwarded", "Forwarded [10.96.0.20 fd00::20]", fmt.Sprint(got.Kind, " ", got.To))
		if name == "node-local" {
			continue
		}
		multicluster, _ := editOf("multicluster")
		check.Equal(t, name+", served", corefile.Served, corefile.ResolutionOf(must(t)(multicluster(read(t, name))), zone, nil).Kind)
	}
}

// TestResolutionOfStubs: the stub domains of kube-dns.
func TestResolutionOfStubs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": `NotKnown [] it has no stub domain clusterset.local`,
		`{"clusterset.local": ["10.96.0.20", "10.96.0.21:53"]}`: `Forwarded [10.96.0.20 10.96.0.21] `,
		`{"ClusterSet.Local.": ["10.96.0.20"]}`:                 `Forwarded [10.96.0.20] `,
		`{"clusterset.local": []}`:                              `NotKnown [] it has no stub domain clusterset.local`,
		`{"clusterset.local": ["dns.example"]}`:                 `NotKnown [] it is forwarded to dns.example`,
		`{`:                                                     `NotKnown [] its stubDomains cannot be parsed: unexpected end of JSON input`,
	} {
		got := corefile.ResolutionOfStubs(text, zone)
		check.Equal(t, text, want, fmt.Sprint(got.Kind, " ", got.To, " ", got.Why))
	}
}

// TestRetarget: the addresses of a forward that another user has written change, and nothing else.
func TestRetarget(t *testing.T) {
	t.Parallel()
	service := netip.MustParseAddr("10.96.0.33")
	for name, test := range map[string]struct{ text, was, is string }{
		"in its block":  {".:53 {\n}\nclusterset.local:53 {\r\n\tforward  .  10.96.0.20  # was here\r\n}\n", "10.96.0.20", "10.96.0.33"},
		"two addresses": {"clusterset.local {\nforward . fd00::20 10.96.0.20 {\nforce_tcp\n}\n}", "fd00::20 10.96.0.20", "10.96.0.33"},
		"in the root":   {". {\nforward clusterset.local 10.96.0.2\nforward . 10.96.0.2\n}\n", "clusterset.local 10.96.0.2", "clusterset.local 10.96.0.33"},
	} {
		got := must(t)(corefile.Retarget(test.text, zone, service))
		check.Equal(t, name, strings.Replace(test.text, test.was, test.is, 1), got)
		check.Equal(t, name+", again", got, must(t)(corefile.Retarget(got, zone, service)))
	}
	for text, want := range map[string]string{
		read(t, "kubeadm"): `corefile: there are 0 forwards of clusterset.local: write 10.96.0.33 into them by hand`,
		"clusterset.local {\nforward . 10.96.0.2\nforward . 10.96.0.3\n}\n": `corefile: there are 2 forwards of clusterset.local: write 10.96.0.33 into them by hand`,
		"clusterset.local { forward . \"10.96.0.2\" 10.96.0.3\n}\n":         `corefile: line 1: write 10.96.0.33 into this forward by hand`,
		"clusterset.local {\n": `corefile: line 1: the server block has no end: a } is missing`,
	} {
		refused(t, want)(corefile.Retarget(text, zone, service))
	}
}
