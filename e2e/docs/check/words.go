// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
)

// metricName is the name of one of our metrics.
var metricName = regexp.MustCompile(`\b(tombolo|coredns_clusterset)_[a-z_]+`)

// checkWords finds commands of blocks and of code within the text that do not exist, or not with these flags, and metrics.
func (c *checker) checkWords(d *document) {
	for _, b := range d.blocks {
		switch b.language {
		case "sh":
			commands, _, err := script(b.text)
			if err != nil {
				c.reportf(d, b.line, "this block is no shell script: %v", err)
			}
			c.checkCommands(d, b.line, commands)
		case "", "indented": // commands among other text
			lines := strings.Split(b.text, "\n")
			for i, line := range lines {
				if start, open := strings.CutSuffix(line, `\`); open && i+1 < len(lines) {
					lines[i+1] = start + lines[i+1]
					continue
				}
				commands, _, _ := script(line) // or it is other text
				c.checkCommands(d, b.line+i, commands)
			}
		}
	}
	for _, span := range d.spans {
		for _, name := range metricName.FindAllString(span.text, -1) {
			if !c.metrics[strings.TrimSuffix(name, "_bucket")] {
				c.reportf(d, span.line, "there is no metric %s", name)
			}
		}
		commands, _, _ := script(span.text) // most spans are no commands
		c.checkCommands(d, span.line, commands)
		for _, simple := range commands {
			name, _, _ := strings.Cut(simple.words[0], "=")
			if name, isFlag := strings.CutPrefix(name, "--"); isFlag && !c.flags[name] && !isPlaceholder(name) {
				c.reportf(d, span.line, "neither kubectl clusterset nor tombolo-agent has a flag --%s (write another program's flag behind its name)", name)
			}
		}
	}
}

// checkCommands finds errors in those commands that are ours.
func (c *checker) checkCommands(d *document, line int, commands []simple) {
	for _, command := range commands {
		words, line := command.words, line+command.line
		switch {
		case words[0] == "make":
			for i, word := range words[1:] {
				isTarget := words[i] != "-C" && !strings.HasPrefix(word, "-") && !strings.Contains(word, "=") && !isPlaceholder(word)
				if isTarget && !c.targets[word] {
					c.reportf(d, line, "make has no target %s", word)
				}
			}
		case words[0] == "tombolo-agent":
			for _, word := range words[1:] {
				word, _, _ = strings.Cut(word, "=")
				if name := strings.TrimLeft(word, "-"); name != word && !c.agentFlags[name] && !isPlaceholder(name) {
					c.reportf(d, line, "tombolo-agent has no flag --%s", name)
				}
			}
		case words[0] == "kubectl-clusterset":
			c.checkCommand(d, line, words[1:])
		case words[0] == "kubectl" && len(words) > 1 && words[1] == "clusterset":
			c.checkCommand(d, line, words[2:])
		}
	}
}

// checkCommand parses the words after "kubectl clusterset" as the command does.
func (c *checker) checkCommand(d *document, line int, words []string) {
	if len(words) > 0 && isPlaceholder(words[0]) {
		return
	}
	// Parsing changes a command, so each command line needs a new one.
	root := cli.NewCommand(cli.Build{Version: "dev"}, genericiooptions.NewTestIOStreamsDiscard())
	verb, rest, err := root.Find(words)
	if err == nil {
		verb.InitDefaultHelpFlag()
		verb.InitDefaultVersionFlag()
		err = verb.ParseFlags(rest)
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) && isPlaceholder(invalid.GetValue()) {
		return
	}
	if err == nil {
		err = verb.ValidateArgs(slices.DeleteFunc(verb.Flags().Args(), isPlaceholder))
	}
	if err != nil {
		c.reportf(d, line, "%s: %v", verb.CommandPath(), err)
	}
}

const placeholder = "…"

// isPlaceholder reports whether a word is a placeholder, as ... and $name do.
func isPlaceholder(word string) bool {
	return word == "..." || strings.Contains(word, placeholder) || strings.ContainsAny(word, "[]$")
}

const glossaryPath = "docs/glossary.md"

// vocabulary maps each word that is not used to what to write instead.
type vocabulary struct {
	pattern *regexp.Regexp
	instead map[string]string
}

// vocabularyOf reads the table of the glossary that begins with "Not used".
func vocabularyOf(glossary *document) vocabulary {
	v := vocabulary{instead: map[string]string{}}
	if glossary == nil {
		return v
	}
	var words []string
	for _, row := range glossary.rows {
		if row.heads[0] != "Not used" {
			continue
		}
		for word := range strings.SplitSeq(row.cells[0], ", ") {
			words = append(words, regexp.QuoteMeta(word))
			v.instead[word] = row.cells[1]
		}
	}
	v.pattern = regexp.MustCompile(`(?i)\b(` + strings.Join(words, "|") + `)\b`)
	return v
}

// checkVocabulary finds words that the glossary does not allow, outside of code and of the glossary.
func (c *checker) checkVocabulary(d *document, v vocabulary) {
	if len(v.instead) == 0 || d.path == glossaryPath {
		return
	}
	for _, text := range d.texts {
		for _, word := range v.pattern.FindAllString(text.text, -1) {
			c.reportf(d, text.line, "%q is not used: write %s (%s)", word, v.instead[strings.ToLower(word)], glossaryPath)
		}
	}
}

// parseMessages returns the text of a file: the string literals and comments of Go, the lines of others that are no comments.
func parseMessages(name string, source []byte) (*document, error) {
	d := &document{path: name}
	if path.Ext(name) != ".go" {
		for i, line := range bytes.Split(source, []byte("\n")) {
			if !bytes.HasPrefix(bytes.TrimSpace(line), []byte("#")) {
				d.texts = append(d.texts, part{i + 1, string(line)})
			}
		}
		return d, nil
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, source, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, group := range file.Comments {
		for i, line := range strings.Split(group.Text(), "\n") {
			d.texts = append(d.texts, part{files.Position(group.Pos()).Line + i, line})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
			text, _ := strconv.Unquote(literal.Value) // the parser accepts valid literals only
			d.texts = append(d.texts, part{files.Position(literal.Pos()).Line, text})
		}
		return true
	})
	return d, nil
}
