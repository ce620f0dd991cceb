// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// TestProblems: what a document says that is not so is found, at its line, and what is so is not.
func TestProblems(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string // ~ is a backtick
		want []string
	}{
		"a link to a file":             {"[a](install.md) [b](../README.md#install \"B\") [c](#top)\n\n# Top", nil},
		"a link elsewhere":             {"[a](https://example.com/no.md#no)", nil},
		"a link to a folder":           {"[a](../manifests/hub)", nil},
		"a broken link":                {"one\n[a](no.md)", []string{"2: the link no.md has no target: there is no docs/no.md"}},
		"a broken link over two lines": {"one [a\nb](no.md)", []string{"1: the link no.md has no target: there is no docs/no.md"}},
		"a broken link by name":        {"[a]\n\n[a]: no.md", []string{"1: the link no.md has no target: there is no docs/no.md"}},
		"a link in code":               {"~[a](no.md)~\n\n~~~\n[a](no.md)\n~~~", nil},
		"a document to come":           {"[a](runbook.md)", nil},
		"a missing anchor":             {"[a](other.md#no)", []string{"1: the link other.md#no has no target: docs/other.md has no heading #no"}},
		"a missing anchor here":        {"# Top\n[a](#bottom)", []string{"2: the link #bottom has no target: docs/x.md has no heading #bottom"}},
		"anchors as GitHub makes them": {"## A ~b~, c & [d](other.md)\n## Same\n## Same\n## Same\n[a](#a-b-c--d) [b](#same) [c](#same-2) [d](other.md#a-heading)", nil},
		"an anchor in code":            {"~~~\n# Top\n~~~\n[a](#top)", []string{"4: the link #top has no target: docs/x.md has no heading #top"}},

		"an unmarked block":   {"# A\n\n~~~sh\nls\n~~~", []string{"4: no test runs this block: have a test read the document, or give the reason (<!-- not run: reason -->)"}},
		"other blocks":        {"~~~text\nls\n~~~\n\n~~~\nls\n~~~", nil},
		"a block with reason": {"<!-- not run: it is dear -->\n\n~~~sh\nls\n~~~", nil},
		"a reason for one block only": {
			"<!-- not run: it is dear -->\n~~~sh\nls\n~~~\n~~~sh\nls\n~~~",
			[]string{"6: no test runs this block: have a test read the document, or give the reason (<!-- not run: reason -->)"},
		},
		"a reason for a section": {"# A\n<!-- not run: it is dear -->\n\na\n~~~sh\nls\n~~~\n## B\n~~~sh\nls\n~~~", nil},
		"another section": {
			"# A\n## B\n<!-- not run: it is dear -->\n~~~sh\nls\n~~~\n## C\n~~~sh\nls\n~~~",
			[]string{"9: no test runs this block: have a test read the document, or give the reason (<!-- not run: reason -->)"},
		},
		"no reason":      {"<!-- not run: -->\n~~~sh\nls\n~~~", []string{"1: say why the block is not run"}},
		"a useless mark": {"<!-- not run: it is dear -->\n\na", []string{"1: this mark is above no sh block: remove it"}},
		"a walk by no test": {
			"# A\n<!-- walked by: e2e/integration/cli.TestNo -->\n~~~sh\nls\n~~~",
			[]string{"2: e2e/integration/cli has no TestNo"},
		},
		"a walk of another document": {
			"# A\n<!-- walked by: e2e/integration/cli.TestInstallDocument -->\n~~~sh\nls\n~~~",
			[]string{"2: the tests of e2e/integration/cli do not read x.md"},
		},
		"a reason within a walk": {
			"# A\n<!-- walked by: e2e/docs/check.TestNamed -->\n~~~sh\nls\n~~~\n<!-- not run: it is dear -->\n~~~sh\nls\n~~~",
			[]string{"8: the test that runs this section runs this block too: make it no sh block, or move it"},
		},
		"a walk by something": {"# A\n<!-- walked by: somebody -->\n~~~sh\nls\n~~~", []string{`2: "somebody" names no test: write folder.TestName`}},

		"commands that there are": {"<!-- not run: - -->\n~~~sh\n" +
			"kubectl clusterset join --context east --hub-context=hub \\\n  --cluster-id \"$(cat id)\" --dry-run -n x\n" +
			"for c in a b; do kubectl clusterset dns --context $c; done && make -s demo-env lab-up LAB=x\n~~~", nil},
		"an unknown flag": {
			"<!-- not run: - -->\n~~~sh\nls |\nkubectl clusterset join \\\n  --cluster x --no-such x\n~~~",
			[]string{"4: kubectl clusterset join: unknown flag: --no-such"},
		},
		"a flag of another verb":       {"~kubectl clusterset upgrade --cluster-id x~", []string{"1: kubectl clusterset upgrade: unknown flag: --cluster-id"}},
		"an unknown verb":              {"    kubectl clusterset fly\n", []string{"1: kubectl clusterset: unknown command \"fly\" for \"kubectl clusterset\""}},
		"one word too many":            {"~kubectl clusterset leave east~", []string{`1: kubectl clusterset leave: unknown command "east" for "kubectl clusterset leave"`}},
		"in a substitution":            {"    echo \"$(kubectl clusterset fly)\"\n", []string{"1: kubectl clusterset: unknown command \"fly\" for \"kubectl clusterset\""}},
		"something else of kubectl":    {"    kubectl get --no-such\n", nil},
		"placeholders":                 {"~kubectl clusterset ...~ ~kubectl clusterset join --cluster-id <id> …~ ~make <target>~", nil},
		"an unknown target":            {"~make demo~ ~make no-such X=y~", []string{"1: make has no target no-such"}},
		"a fault that there is":        {"~chaos: hub restarted~ ~story: agents restart unnoticed~", nil},
		"a fault that there is not":    {"~chaos: hub on fire~", []string{`1: e2e/chaos has no "hub on fire"`}},
		"a metric that there is":       {"~tombolo_unconfirmed_services{member=\"a\"} > 0~ ~coredns_clusterset_rebuild_duration_seconds_bucket~", nil},
		"a metric that there is not":   {"~tombolo_no_such_total~", []string{"1: there is no metric tombolo_no_such_total"}},
		"a flag of the agent":          {"~tombolo-agent --workers=3 --no-such~", []string{"1: tombolo-agent has no flag --no-such"}},
		"flags alone":                  {"~--absent-member-timeout~, ~--hub-ca=x~, ~--context~", nil},
		"an unknown flag alone":        {"~--no-such=x~", []string{"1: neither kubectl clusterset nor tombolo-agent has a flag --no-such (write another program's flag behind its name)"}},
		"a comment":                    {"    ls # all; make no-such\n", nil},
		"a text that is given to read": {"<!-- not run: - -->\n~~~sh\ncat <<END\nmake no-such\nEND\n~~~", nil},

		"paths that there are": {"manifests/hub, manifests/overlays/…, manifests/no…, ~e2e/framework/walk~, ~cmd/kubectl-clusterset/cli.NewCommand~, ~e2e/integration/tour.TestTour~, ~docs/install.md~", nil},
		"a path of manifests":  {"one\n\n~~~text\nkubectl apply -k manifests/no-such.\n~~~", []string{"4: there is no manifests/no-such"}},
		"a path of sources":    {"~pkg/no-such/~", []string{"1: there is no pkg/no-such/"}},
		"lines with proofs": {
			"| A | The test that proves it |\n| --- | --- |\n| a | ~e2e/integration/hub.TestHub~ (Rights), ~e2e/integration/tour.TestTour~ |\n\n| A | B |\n|---|---|\n| a | b |", nil,
		},
		"a line without a proof": {
			"| A | The test that proves it |\n| :--- | ---: |\n| a | all of them |",
			[]string{"3: no test proves this line: write `folder.TestName` into its last column"},
		},
		"a proof that there is not": {
			"| A | The test that proves it |\n| --- | --- |\n| a | ~e2e/integration/hub.TestHub~ (Wrongs) |\n| b \\| c | ~e2e/integration/hub.TestNo~ |",
			[]string{"3: e2e/integration/hub.TestHub has no part Wrongs", "4: e2e/integration/hub has no TestNo"},
		},
		"a test": {"~e2e/integration/tour.TestNo~", []string{"1: e2e/integration/tour has no TestNo"}},

		"manifests": {"~~~yaml\napiVersion: hub.tombolo-mcs.io/v1alpha1\nkind: Member\nmetadata: {name: member}\nspec: {clusterID: a, podCIDRs: [10.0.0.0/8]}\n" +
			"---\napiVersion: example.com/v1\nkind: Unknown\nno: matter\n~~~", nil},
		"an unknown field": {
			"one\n\n~~~yaml\napiVersion: multicluster.x-k8s.io/v1beta1\nkind: ServiceExport\nmetadata: {name: a}\nspec: {such: x}\n~~~",
			[]string{`4: this manifest is wrong: strict decoding error: unknown field "spec.such"`},
		},
		"an unknown field in a heredoc": {
			"<!-- not run: - -->\n~~~sh\nls\ncat <<END | kubectl apply -f -\napiVersion: v1\nkind: ConfigMap\ndatum: {}\nEND\n~~~",
			[]string{`5: this manifest is wrong: strict decoding error: unknown field "datum"`},
		},
		"no YAML": {"~~~yaml\na: [\n~~~", []string{"2: this manifest is wrong: error converting YAML to JSON: yaml: line 1: did not find expected node content"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			known, err := gather(os.DirFS("../../.."))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			known.documents = documents(test.text)
			for _, p := range known.check() {
				got = append(got, strings.TrimPrefix(p.String(), "docs/x.md:"))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// documents returns the text, in which ~ is a backtick, among others that it may point to.
func documents(text string) map[string]*document {
	return map[string]*document{
		"docs/x.md":     parse("docs/x.md", []byte(strings.ReplaceAll(text, "~", "`"))),
		"docs/other.md": parse("docs/other.md", []byte("# A heading")),
		"README.md":     parse("README.md", []byte("## Install")),
	}
}

// TestNamed: the index names each document of docs, and objects.md each condition and label that users see.
func TestNamed(t *testing.T) {
	t.Parallel()
	c := &checker{documents: map[string]*document{
		"docs/README.md":  parse("docs/README.md", []byte("[x](x.md#a) [objects](objects.md)")),
		"docs/other.md":   parse("docs/other.md", nil),
		"docs/x.md":       parse("docs/x.md", []byte("# a")),
		"docs/objects.md": parse("docs/objects.md", []byte("`"+strings.Join(seen()[1:], "` `")+"`")),
	}}
	want := []problem{
		{"docs/README.md", 1, "docs/other.md is not named here"},
		{"docs/objects.md", 1, seen()[0] + " is not explained here"},
	}
	if diff := cmp.Diff(want, c.check(), cmp.AllowUnexported(problem{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRun: the command reads a repository, prints what is wrong in it, and fails.
func TestRun(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{}
	for name, text := range map[string]string{
		"Makefile":              "X := 1\nall: ## everything\n",
		"docs/cli.md":           "| `--context string` | | |\n\n# tombolo-agent\n\n| `--workers int` | | |\n",
		"docs/glossary.md":      "| Term | X |\n| --- | --- |\n| told | x |\n\n| Not used | Write |\n| --- | --- |\n| goes on, nobody | go |\n",
		"docs/README.md":        "[cli](cli.md) [glossary](glossary.md) [runbook](runbook.md) `make X`\nIt is told that it Goes on. `nobody`\n\n    nobody\n\n<!-- nobody -->",
		"bin/no.md":             "[a](no)",
		"pkg/testdata/not.md":   "[a](no)",
		"docs/runbook.md":       "| `tombolo_unconfirmed_services` | | |\n",
		"controllers/a/m.go":    "package a // nobody",
		"controllers/a_test.go": "package a\n\nvar o = \"nobody\"",

		"coredns-plugin/clusterset/metrics.go": "package a\n\nvar o = O{Subsystem: subsystem, Name: \"synced\", Help: \"nobody\"}",
		"manifests/monitoring/a.yaml":          "# nobody\ntext: nobody",
	} {
		tree[name] = &fstest.MapFile{Data: []byte(text)}
	}
	var out strings.Builder
	err := run(tree, &out)
	want := `controllers/a/m.go:1: "nobody" is not used: write go (docs/glossary.md)
coredns-plugin/clusterset/metrics.go:3: "nobody" is not used: write go (docs/glossary.md)
docs/README.md:1: make has no target X
docs/README.md:2: "Goes on" is not used: write go (docs/glossary.md)
manifests/monitoring/a.yaml:2: "nobody" is not used: write go (docs/glossary.md)
`
	if diff := cmp.Diff(want, out.String()); diff != "" || !errors.Is(err, errProblems) {
		t.Errorf("run: %v, -want +got:\n%s", err, diff)
	}
}
