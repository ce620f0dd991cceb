// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const commandHead = `<!-- Written by "make generate" from cmd/kubectl-clusterset/cli and the help of cmd/tombolo-agent: change it there. -->

# kubectl clusterset

This page is for platform teams. It lists the verbs and flags of ` + "`kubectl clusterset`, and the flags of the [agent](#tombolo-agent)" + `.

`

// commandReference returns the reference of a command, its verbs and their flags, in Markdown.
func commandReference(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString(commandHead)
	fmt.Fprintf(&b, "```\n%s\n```\n\n", strings.TrimSpace(root.Long))
	b.WriteString("Exit codes: 0, 1 for failures, 2 for a wrong command line; diff has its own. A value in parentheses at the end of a flag's meaning is the default.\n")
	shared := sharedRows(verbs(root))
	for _, verb := range verbs(root) {
		fmt.Fprintf(&b, "\n## %s\n\n", strings.TrimPrefix(verb.CommandPath(), root.CommandPath()+" "))
		fmt.Fprintf(&b, "`%s`\n\n", verb.UseLine()) // Short would repeat the first sentence of Long
		fmt.Fprintf(&b, "```\n%s\n```\n\n", strings.TrimSpace(verb.Long))
		if verb.Example != "" {
			fmt.Fprintf(&b, "Examples:\n\n```\n%s\n```\n\n", strings.Trim(verb.Example, "\n"))
		}
		var own, others []string
		visit(verb.NonInheritedFlags(), func(f *pflag.Flag) {
			if text := flagRow(f); shared[f.Name] == text {
				others = append(others, code("--"+f.Name))
			} else {
				own = append(own, text)
			}
		})
		b.WriteString(table(own))
		if len(own) > 0 && len(others) > 0 {
			b.WriteString("\n")
		}
		if len(others) > 0 {
			fmt.Fprintf(&b, "[Shared flags](#shared-flags): %s\n", strings.Join(others, ", "))
		}
	}
	var rows, inherited []string
	for _, name := range slices.Sorted(maps.Keys(shared)) {
		rows = append(rows, shared[name])
	}
	if len(rows) > 0 {
		b.WriteString("\n## Shared flags\n\n" + table(rows))
	}
	visit(root.PersistentFlags(), func(f *pflag.Flag) { inherited = append(inherited, flagName(f)) })
	fmt.Fprintf(&b, "\n## Flags of all verbs\n\nThese flags have the same meaning as in kubectl: %s\n", strings.Join(inherited, ", "))
	return b.String()
}

// sharedRows returns, by name, the rows of flags that several verbs have: for each name, the row that most of them have.
func sharedRows(verbs []*cobra.Command) map[string]string {
	count, rows := map[string]int{}, map[string]string{}
	for _, verb := range verbs {
		visit(verb.NonInheritedFlags(), func(f *pflag.Flag) {
			text := flagRow(f)
			count[text]++
			if count[text] > max(1, count[rows[f.Name]]) {
				rows[f.Name] = text
			}
		})
	}
	return rows
}

// verbs returns the commands below one that do something, in the order of their names.
func verbs(command *cobra.Command) []*cobra.Command {
	var result []*cobra.Command
	for _, child := range command.Commands() {
		if !child.IsAvailableCommand() || slices.Contains([]string{"help", "completion"}, child.Name()) {
			continue
		}
		if child.Runnable() {
			result = append(result, child)
		}
		result = append(result, verbs(child)...)
	}
	return result
}

// visit calls a function for each flag that the reference contains, sorted by name.
func visit(flags *pflag.FlagSet, each func(*pflag.Flag)) {
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && f.Name != "help" {
			each(f)
		}
	})
}

func flagRow(f *pflag.Flag) string {
	_, usage := pflag.UnquoteUsage(f)
	return row(flagName(f), defaultOf(f.DefValue), usage)
}

// flagName returns how a flag is written, with its type.
func flagName(f *pflag.Flag) string {
	name, _ := pflag.UnquoteUsage(f)
	written := code("--" + f.Name + " " + name)
	if f.Shorthand != "" {
		written += ", " + code("-"+f.Shorthand)
	}
	return written
}

// table returns the rows of flags below a head; nothing where there are none.
func table(rows []string) string {
	if len(rows) == 0 {
		return ""
	}
	return "| Flag | Meaning |\n| --- | --- |\n" + strings.Join(rows, "")
}

func row(flag, value, usage string) string {
	if value = code(value); value != "" {
		value = " (" + value + ")"
	}
	return fmt.Sprintf("| %s | %s%s |\n", flag, strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(usage), value)
}

// code returns a text as code; nothing where there is none.
func code(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return "`" + text + "`"
}

// defaultOf returns how a default is shown: not at all where it says nothing, and without the home of whoever generates.
func defaultOf(value string) string {
	if home, err := os.UserHomeDir(); err == nil && home != "" && home != "/" {
		value = strings.ReplaceAll(value, home, "$HOME")
	}
	if slices.Contains([]string{"", "[]", "false", "0s"}, value) {
		return ""
	}
	return value
}

const agentHead = `# tombolo-agent

` + "`kubectl clusterset join`" + ` and the kustomizations of ` + "`manifests/agent`" + ` set the flags that a cluster needs. To set other flags, patch the
Deployment's arguments. ` + "`join` and `upgrade`" + ` keep and print arguments that are added or changed there. Every ` + "`join`" + ` that
needs it sets ` + "`--service-cidrs`" + `. The agent refuses a wrong value at the start, with the reason.

`

var (
	// flagLine is the first of a flag in the help that package flag prints: its name, and what its value is.
	flagLine = regexp.MustCompile(`^ {2}-(\S+)(?: (\S+))?(?:\t(.*))?$`)
	// flagDefault ends a flag's explanation.
	flagDefault = regexp.MustCompile(` \(default ("?)([^$"][^)"]*)"?\)$`)
)

// agentReference returns the reference of the flags in a help text of package flag, in Markdown.
func agentReference(help string) (string, error) {
	var rows []string
	lines := strings.Split(strings.TrimRight(help, "\n"), "\n")
	for i := 1; i < len(lines); {
		first := flagLine.FindStringSubmatch(lines[i])
		if first == nil {
			return "", fmt.Errorf("line %d of the help starts no flag: %q", i+1, lines[i])
		}
		usage := []string{first[3]}
		for i++; i < len(lines) && strings.HasPrefix(lines[i], "    \t"); i++ {
			usage = append(usage, lines[i])
		}
		text := strings.Join(strings.Fields(strings.Join(usage, " ")), " ")
		value := ""
		if found := flagDefault.FindStringSubmatch(text); found != nil {
			value, text = found[2], strings.TrimSuffix(text, found[0])
		}
		rows = append(rows, row(code("--"+first[1]+" "+first[2]), value, text))
	}
	if len(rows) == 0 {
		return "", fmt.Errorf("no flag in the help: %q", help)
	}
	return agentHead + table(rows), nil
}
