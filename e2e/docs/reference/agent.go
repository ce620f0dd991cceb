// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"strings"
)

const agentHead = `<!-- Written by "make generate" from the help of cmd/tombolo-agent: change it there. -->

# tombolo-agent

The flags of the agent. ` + "`kubectl clusterset join`" + ` and the kustomizations of ` + "`manifests/agent`" + ` set those that a cluster needs;
others are set by a patch of the Deployment's arguments. ` + "`join` and `upgrade`" + ` keep what is added or changed there, and say what
they keep; only ` + "`--service-cidrs`" + ` is set by every ` + "`join`" + ` that needs it. A wrong value is refused at the start, with the reason.

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
