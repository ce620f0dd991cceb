// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

func TestAgentReference(t *testing.T) {
	t.Parallel()
	got, err := agentReference(`Usage of agent:
  -name string
    	its name | or none
    	(default "a b")
  -on
    	be on (default true)
  -v int
    	how much
  -where string
    	where it is (default $WHERE)
`)
	if err != nil {
		t.Fatal(err)
	}
	want := agentHead + "| Flag | Meaning |\n| --- | --- |\n" +
		"| `--name string` | its name \\| or none (`a b`) |\n" +
		"| `--on` | be on (`true`) |\n" +
		"| `--v int` | how much |\n" +
		"| `--where string` | where it is (default $WHERE) |\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAgentReferenceRefuses(t *testing.T) {
	t.Parallel()
	for _, help := range []string{"Usage of agent:\n", "Usage of agent:\npanic: no\n"} {
		if text, err := agentReference(help); err == nil {
			t.Errorf("%q: got %q", help, text)
		}
	}
}

func TestCommandReference(t *testing.T) {
	t.Parallel()
	root := &cobra.Command{Use: "tool", Long: "A tool."}
	root.PersistentFlags().StringP("namespace", "n", "", "the namespace of `NAME`")
	nothing := func(*cobra.Command, []string) {}
	walk := &cobra.Command{Use: "walk", Short: "go on foot", Long: "Go.", Example: "  tool walk", Run: nothing}
	walk.Flags().Int("steps", 3, "how many <steps>")
	walk.Flags().Bool("secret", false, "not for all")
	if err := walk.Flags().MarkHidden("secret"); err != nil {
		t.Fatal(err)
	}
	run := &cobra.Command{Use: "run", Short: "go fast", Long: "Run.", Run: nothing}
	for _, verb := range []*cobra.Command{walk, run} {
		verb.Flags().Bool("back", false, "go back")
	}
	root.AddCommand(walk, run, &cobra.Command{Use: "hidden", Hidden: true, Run: nothing})
	group := &cobra.Command{Use: "show"}
	group.AddCommand(&cobra.Command{Use: "one", Short: "show one", Long: "One.", Run: nothing})
	root.AddCommand(group)
	head := "| Flag | Meaning |\n| --- | --- |\n"
	want := commandHead + "```\nA tool.\n```\n\nExit codes: 0, 1 for failures, 2 for a wrong command line; diff has its own. A value in parentheses at the end of a flag's meaning is the default.\n" +
		"\n## run\n\n`tool run [flags]`\n\n```\nRun.\n```\n\n[Shared flags](#shared-flags): `--back`\n" +
		"\n## show one\n\n`tool show one [flags]`\n\n```\nOne.\n```\n\n" +
		"\n## walk\n\n`tool walk [flags]`\n\n```\nGo.\n```\n\nExamples:\n\n```\n  tool walk\n```\n\n" +
		head + "| `--steps int` | how many &lt;steps> (`3`) |\n\n[Shared flags](#shared-flags): `--back`\n" +
		"\n## Shared flags\n\n" + head + "| `--back` | go back |\n" +
		"\n## Flags of all verbs\n\nThese flags have the same meaning as in kubectl: `--namespace NAME`, `-n`\n"
	if diff := cmp.Diff(want, commandReference(root)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestHome: the reference does not contain the home folder of the user who generates it.
func TestHome(t *testing.T) {
	t.Setenv("HOME", "/homes/me")
	if got := defaultOf("/homes/me/.kube"); got != "$HOME/.kube" || strings.Contains(got, "me/") {
		t.Errorf("the default is shown as %q", got)
	}
}
