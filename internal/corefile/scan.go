// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"fmt"
	"strings"

	"github.com/coredns/caddy/caddyfile"
)

// block is a server block of a Corefile.
type block struct {
	addresses  []address
	directives []directive
	// line is the line of the first address. noBraces is set if the block has no braces; then it ends with the text.
	line     int
	noBraces bool
	// snippet is the name of a snippet; empty for a server block. file is the imported file that has the block; empty for the Corefile.
	snippet, file string
}

// directive is a plugin or an import in a server block.
type directive struct {
	// words are the words before the braces, starting with the name. line is the line of the first word.
	words []string
	line  int
	// body contains the lines between the braces, as words. braced is set if there are braces, even if they are empty.
	body   [][]string
	braced bool
}

func (d directive) name() string { return d.words[0] }

// token is a word of a Corefile.
type token struct {
	text string
	line int
	// startsLine is set if it is the first word of its line.
	startsLine bool
}

// tokens returns the words of a text, using CoreDNS' lexer.
func tokens(text string) []token {
	var found []token
	last := 0
	for d := caddyfile.NewDispenser("Corefile", strings.NewReader(text)); d.Next(); {
		found = append(found, token{text: d.Val(), line: d.Line(), startsLine: d.Line() > last})
		last = d.Line() + strings.Count(d.Val(), "\n")
	}
	return found
}

// scanner iterates over the tokens of a Corefile.
type scanner struct {
	tokens []token
	next   int
}

// scan returns the server blocks of a text. Snippets are included as blocks without addresses, imports are not. An error contains
// the line that CoreDNS cannot parse either.
func scan(text string) ([]block, error) {
	blocks, _, err := scanAll(text)
	return blocks, err
}

// scanAll returns the server blocks of a text, and what it imports outside of them.
func scanAll(text string) (blocks []block, imports []string, err error) {
	s := &scanner{tokens: tokens(text)}
	for s.more() {
		if t := s.peek(); t.text == "import" && t.startsLine {
			for _, argument := range s.restOfLine()[1:] {
				imports = append(imports, argument.text)
			}
			continue
		}
		b, err := s.block()
		if err != nil {
			return nil, nil, err
		}
		blocks = append(blocks, b)
	}
	return blocks, imports, nil
}

func (s *scanner) more() bool  { return s.next < len(s.tokens) }
func (s *scanner) peek() token { return s.tokens[s.next] }

func (s *scanner) pop() token {
	t := s.tokens[s.next]
	s.next++
	return t
}

// restOfLine returns the remaining tokens of the current line, up to a brace.
func (s *scanner) restOfLine() []token {
	var rest []token
	for s.more() && (len(rest) == 0 || !s.peek().startsLine) && !isBrace(s.peek()) {
		rest = append(rest, s.pop())
	}
	return rest
}

func isBrace(t token) bool { return t.text == "{" || t.text == "}" }

// block parses a server block or a snippet.
func (s *scanner) block() (block, error) {
	b := block{line: s.peek().line}
	var keys []string
	for again := true; again && s.more() && !isBrace(s.peek()); {
		key, comma := strings.CutSuffix(s.pop().text, ",")
		keys = append(keys, key)
		again = comma || s.more() && !s.peek().startsLine
	}
	if len(keys) == 0 {
		return b, fmt.Errorf("corefile: line %d: a %q where the addresses of a server block should be", b.line, s.peek().text)
	}
	if name, ok := strings.CutPrefix(keys[0], "("); ok && len(keys) == 1 {
		b.snippet = strings.TrimSuffix(name, ")")
	}
	for _, key := range keys {
		if a, ok := parseAddress(key); ok {
			b.addresses = append(b.addresses, a)
		}
	}
	b.noBraces = !s.more() || s.peek().text != "{"
	if !b.noBraces {
		s.next++
	}
	for s.more() {
		if s.peek().text == "}" && !b.noBraces {
			s.next++
			return b, nil
		}
		d, err := s.directive()
		if err != nil {
			return b, err
		}
		b.directives = append(b.directives, d)
	}
	if !b.noBraces {
		return b, fmt.Errorf("corefile: line %d: the server block has no end: a } is missing", b.line)
	}
	return b, nil
}

// directive parses a directive with its braces.
func (s *scanner) directive() (directive, error) {
	d := directive{line: s.peek().line}
	for _, t := range s.restOfLine() {
		d.words = append(d.words, t.text)
	}
	if len(d.words) == 0 {
		return d, fmt.Errorf("corefile: line %d: a %q where a plugin should be", d.line, s.peek().text)
	}
	if !s.more() || s.peek().text != "{" || s.peek().startsLine {
		return d, nil
	}
	s.next++
	d.braced = true
	for depth := 1; s.more(); {
		t := s.pop()
		switch {
		case t.text == "{":
			depth++
		case t.text == "}":
			depth--
		case t.startsLine || len(d.body) == 0:
			d.body = append(d.body, []string{t.text})
		default:
			d.body[len(d.body)-1] = append(d.body[len(d.body)-1], t.text)
		}
		if depth == 0 {
			return d, nil
		}
	}
	return d, fmt.Errorf("corefile: line %d: %s has no end: a } is missing", d.line, d.name())
}
