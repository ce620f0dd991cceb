// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// shown are the languages of blocks that may show commands: no language at all, too.
var shown = []string{"sh", "", "indented", "console"}

// checkWords returns the commands of the blocks and of the code within the text that there are not, or not with these flags.
func checkWords(d *document, known *facts) []problem {
	var problems []problem
	for _, b := range d.blocks {
		if !slices.Contains(shown, b.language) {
			continue
		}
		commands, _ := script(b.text)
		for _, c := range commands {
			for _, reason := range known.wrong(c.words) {
				problems = append(problems, problem{d.path, b.line + c.line, reason})
			}
		}
	}
	for _, span := range d.spans {
		for _, reason := range known.wrongSpan(span.text) {
			problems = append(problems, problem{d.path, span.line, reason})
		}
	}
	return problems
}

// wrongSpan returns what is wrong with code within the text. A flag that stands alone is one of ours; those of others stand
// with the name of their program.
func (f *facts) wrongSpan(text string) []string {
	reasons := f.wrongMetrics(text)
	commands, _ := script(text)
	for _, c := range commands {
		if name, isFlag := flagName(c.words[0]); isFlag && strings.HasPrefix(c.words[0], "--") {
			if !f.isOurFlag(name) {
				reasons = append(reasons, fmt.Sprintf("neither kubectl clusterset nor tombolo-agent has a flag --%s (write another program's flag behind its name)", name))
			}
			continue
		}
		reasons = append(reasons, f.wrong(c.words)...)
	}
	return reasons
}

var metricName = regexp.MustCompile(`\b(tombolo|coredns_clusterset)_[a-z_]+`)

// wrongMetrics returns which metrics of ours, by their names, there are not.
func (f *facts) wrongMetrics(text string) []string {
	var reasons []string
	for _, name := range metricName.FindAllString(text, -1) {
		if !f.metrics[strings.TrimSuffix(name, "_bucket")] {
			reasons = append(reasons, fmt.Sprintf("there is no metric %s", name))
		}
	}
	return reasons
}

// wrong returns what is wrong with a command, if it is one of ours.
func (f *facts) wrong(words []string) []string {
	switch {
	case words[0] == "make":
		return f.wrongMake(words[1:])
	case words[0] == "tombolo-agent":
		return f.wrongAgent(words[1:])
	case words[0] == "kubectl-clusterset":
		return f.wrongCommand(words[1:])
	case words[0] == "kubectl" && len(words) > 1 && words[1] == "clusterset":
		return f.wrongCommand(words[2:])
	}
	return nil
}

func (f *facts) wrongMake(words []string) []string {
	var reasons []string
	for i := 0; i < len(words); i++ {
		word := words[i]
		switch {
		case word == "-C":
			i++
		case strings.HasPrefix(word, "-"), strings.Contains(word, "="), isPlaceholder(word):
		case !f.targets[word]:
			reasons = append(reasons, fmt.Sprintf("make has no target %s", word))
		}
	}
	return reasons
}

func (f *facts) wrongAgent(words []string) []string {
	var reasons []string
	for _, word := range words {
		if name, isFlag := flagName(word); isFlag && !f.agentFlags[name] && name != "help" {
			reasons = append(reasons, fmt.Sprintf("tombolo-agent has no flag --%s", name))
		}
	}
	return reasons
}

// wrongCommand returns what is wrong with the words after "kubectl clusterset".
func (f *facts) wrongCommand(words []string) []string {
	verb, rest := f.command, words
	for len(rest) > 0 {
		next := childOf(verb, rest[0])
		if next == nil {
			break
		}
		verb, rest = next, rest[1:]
	}
	if verb == f.command && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && !isPlaceholder(rest[0]) {
		return []string{fmt.Sprintf("kubectl clusterset has no verb %s", rest[0])}
	}
	verb.InitDefaultHelpFlag()
	verb.InitDefaultVersionFlag()
	verb.InheritedFlags() // has Flags hold those of the command above
	var reasons, positional []string
	for i := 0; i < len(rest); i++ {
		name, isFlag := flagName(rest[i])
		if !isFlag {
			if !isPlaceholder(rest[i]) {
				positional = append(positional, rest[i])
			}
			continue
		}
		found := lookup(verb.Flags(), name)
		if found == nil {
			reasons = append(reasons, fmt.Sprintf("%s has no flag --%s", verb.CommandPath(), name))
			continue
		}
		if found.NoOptDefVal == "" && !strings.Contains(rest[i], "=") {
			i++ // its value
		}
	}
	if len(reasons) > 0 {
		return reasons // what is positional cannot be told
	}
	if err := verb.ValidateArgs(positional); err != nil {
		reasons = append(reasons, fmt.Sprintf("%s: %v", verb.CommandPath(), err))
	}
	return reasons
}

func childOf(command *cobra.Command, name string) *cobra.Command {
	for _, child := range command.Commands() {
		if child.Name() == name || child.HasAlias(name) {
			return child
		}
	}
	return nil
}

func lookup(flags *pflag.FlagSet, name string) *pflag.Flag {
	if len(name) == 1 {
		return flags.ShorthandLookup(name)
	}
	return flags.Lookup(name)
}

// flagName returns the name of a flag, without dashes and value, and whether a word is one.
func flagName(word string) (string, bool) {
	name := strings.TrimLeft(word, "-")
	if name == word || name == "" || isPlaceholder(name) {
		return "", false
	}
	name, _, _ = strings.Cut(name, "=")
	return name, true
}

// isPlaceholder is whether a word stands for others, as ... and <id> do.
func isPlaceholder(word string) bool {
	return word == "..." || strings.Contains(word, "…") || strings.ContainsAny(word, "<>[]")
}
