// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package corefile

import (
	"fmt"
	"slices"
	"strings"
)

func begin(mark string) string { return "# BEGIN " + mark }
func end(mark string) string   { return "# END " + mark }

// region is a range of marked lines: the index of the first line, and the index after the last one.
type region struct{ from, to int }

// lines returns the lines of a text, including their line ends.
func lines(text string) []string { return strings.SplitAfter(text, "\n") }

// lineEnd returns the line end of a text's first line.
func lineEnd(text string) string {
	if first := lines(text)[0]; strings.HasSuffix(first, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// regions returns the regions with this mark, and an error if a begin or end is missing.
func regions(text, mark string) ([]region, error) {
	var found []region
	open := -1
	for i, line := range lines(text) {
		switch strings.TrimSpace(line) {
		case begin(mark):
			if open >= 0 {
				return nil, unpaired(open, begin(mark), end(mark))
			}
			open = i
		case end(mark):
			if open < 0 {
				return nil, unpaired(i, end(mark), begin(mark))
			}
			found = append(found, region{open, i + 1})
			open = -1
		}
	}
	if open >= 0 {
		return nil, unpaired(open, begin(mark), end(mark))
	}
	return found, nil
}

func unpaired(index int, has, lacks string) error {
	return fmt.Errorf("corefile: line %d: %q without %q: another user has edited what is between them: remove what is ours by hand", index+1, has, lacks)
}

// insertion is the position of the marked block.
type insertion struct {
	// index is the line before which the block is inserted; -1 for the end of the text.
	index int
	// open is set if the last line of the block has no line end.
	open bool
}

// cutForward returns a text without the marked server block, and the position for a new one.
func cutForward(text string) (string, insertion, error) {
	found, err := regions(text, forwardMark)
	if err != nil {
		return "", insertion{}, err
	}
	switch len(found) {
	case 0:
		return text, insertion{index: -1, open: text != "" && !strings.HasSuffix(text, "\n")}, nil
	case 1:
	default:
		return "", insertion{}, fmt.Errorf("corefile: line %d: a second %q: remove it by hand", found[1].from+1, begin(forwardMark))
	}
	all, r := lines(text), found[0]
	if strings.HasSuffix(all[r.to-1], "\n") {
		return strings.Join(slices.Delete(all, r.from, r.to), ""), insertion{index: r.from}, nil
	}
	// The last line of the original text had no line end. AddForward had added one before its block.
	unmarked := strings.Join(all[:r.from], "")
	return strings.TrimSuffix(unmarked, lineEnd(unmarked)), insertion{index: -1, open: true}, nil
}

// insert returns the text with the block inserted.
func (p insertion) insert(text string, block []string) string {
	eol := lineEnd(text)
	added := strings.Join(block, eol)
	switch {
	case p.open:
		return text + eol + added
	case p.index < 0:
		return text + added + eol
	}
	all := lines(text)
	return strings.Join(all[:p.index], "") + added + eol + strings.Join(all[p.index:], "")
}
