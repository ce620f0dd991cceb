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

// region is where marked lines stand: from the index of the first to that behind the last.
type region struct{ from, to int }

// lines returns the lines of a text, each with its end.
func lines(text string) []string { return strings.SplitAfter(text, "\n") }

// lineEnd returns how the lines of a text end, as its first does.
func lineEnd(text string) string {
	if first := lines(text)[0]; strings.HasSuffix(first, "\r\n") {
		return "\r\n"
	}
	return "\n"
}

// regions returns where a text has lines with this mark, and an error where a mark stands alone.
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

// place is where a marked block stood, or is to stand.
type place struct {
	// index is that of the line before which it stands; -1 for the end of the text.
	index int
	// open says that nothing ends the block's last line.
	open bool
}

// cutForward returns a text without our server block, and where a new one is to stand.
func cutForward(text string) (string, place, error) {
	found, err := regions(text, forwardMark)
	if err != nil {
		return "", place{}, err
	}
	switch len(found) {
	case 0:
		return text, place{index: -1, open: text != "" && !strings.HasSuffix(text, "\n")}, nil
	case 1:
	default:
		return "", place{}, fmt.Errorf("corefile: line %d: a second %q: remove it by hand", found[1].from+1, begin(forwardMark))
	}
	all, r := lines(text), found[0]
	if strings.HasSuffix(all[r.to-1], "\n") {
		return strings.Join(slices.Delete(all, r.from, r.to), ""), place{index: r.from}, nil
	}
	// The text that it was added to had no end of its last line, which we have lent it.
	bare := strings.Join(all[:r.from], "")
	return strings.TrimSuffix(bare, lineEnd(bare)), place{index: -1, open: true}, nil
}

// insert returns the text with a block of lines.
func (p place) insert(text string, block []string) string {
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
