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
	// line is where it begins. bare says that it has no braces, and ends with the text.
	line int
	bare bool
}

// directive is a plugin in a server block, or an import.
type directive struct {
	// words are those before its braces, beginning with the name, and line is the first one's.
	words []string
	line  int
	// body has the lines between its braces, as words. braced says that it has braces, even if nothing is in them.
	body   [][]string
	braced bool
}

func (d directive) name() string { return d.words[0] }

// token is a word of a Corefile.
type token struct {
	text string
	line int
	// fresh says that it is the first of its line.
	fresh bool
}

// tokens returns the words of a text as CoreDNS' lexer finds them.
func tokens(text string) []token {
	var found []token
	last := 0
	for d := caddyfile.NewDispenser("Corefile", strings.NewReader(text)); d.Next(); {
		found = append(found, token{text: d.Val(), line: d.Line(), fresh: d.Line() > last})
		last = d.Line() + strings.Count(d.Val(), "\n")
	}
	return found
}

// scanner goes through the tokens of a Corefile.
type scanner struct {
	tokens []token
	next   int
}

// scan returns the server blocks of a text, and its snippets as blocks that have no address. What is imported is left out.
// An error says which line CoreDNS could not read either.
func scan(text string) ([]block, error) {
	s := &scanner{tokens: tokens(text)}
	var blocks []block
	for s.more() {
		if t := s.peek(); t.text == "import" && t.fresh {
			s.restOfLine()
			continue
		}
		b, err := s.block()
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, b)
	}
	return blocks, nil
}

func (s *scanner) more() bool  { return s.next < len(s.tokens) }
func (s *scanner) peek() token { return s.tokens[s.next] }

func (s *scanner) take() token {
	t := s.tokens[s.next]
	s.next++
	return t
}

// restOfLine returns the tokens of the current line that are left, up to a brace.
func (s *scanner) restOfLine() []token {
	var rest []token
	for s.more() && (len(rest) == 0 || !s.peek().fresh) && !isBrace(s.peek()) {
		rest = append(rest, s.take())
	}
	return rest
}

func isBrace(t token) bool { return t.text == "{" || t.text == "}" }

// block reads a server block, or a snippet.
func (s *scanner) block() (block, error) {
	b := block{line: s.peek().line}
	var keys []string
	for again := true; again && s.more() && !isBrace(s.peek()); {
		key, comma := strings.CutSuffix(s.take().text, ",")
		keys = append(keys, key)
		again = comma || s.more() && !s.peek().fresh
	}
	if len(keys) == 0 {
		return b, fmt.Errorf("corefile: line %d: a %q where the addresses of a server block should be", b.line, s.peek().text)
	}
	for _, key := range keys {
		if a, ok := parseAddress(key); ok {
			b.addresses = append(b.addresses, a)
		}
	}
	b.bare = !s.more() || s.peek().text != "{"
	if !b.bare {
		s.next++
	}
	for s.more() {
		if s.peek().text == "}" && !b.bare {
			s.next++
			return b, nil
		}
		d, err := s.directive()
		if err != nil {
			return b, err
		}
		b.directives = append(b.directives, d)
	}
	if !b.bare {
		return b, fmt.Errorf("corefile: line %d: the server block has no end: a } is missing", b.line)
	}
	return b, nil
}

// directive reads one directive and what is in its braces.
func (s *scanner) directive() (directive, error) {
	d := directive{line: s.peek().line}
	for _, t := range s.restOfLine() {
		d.words = append(d.words, t.text)
	}
	if len(d.words) == 0 {
		return d, fmt.Errorf("corefile: line %d: a %q where a plugin should be", d.line, s.peek().text)
	}
	if !s.more() || s.peek().text != "{" || s.peek().fresh {
		return d, nil
	}
	s.next++
	d.braced = true
	for depth := 1; s.more(); {
		t := s.take()
		switch {
		case t.text == "{":
			depth++
		case t.text == "}":
			depth--
		case t.fresh || len(d.body) == 0:
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
