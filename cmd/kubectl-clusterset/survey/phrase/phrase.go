// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package phrase has the forms of lists, numbers and flags in the messages of a survey.
package phrase

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Shortened returns a value, cut to fit into a table or a sentence.
func Shortened(value string) string {
	const most = 60
	if runes := []rune(value); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return value
}

// IDs returns IDs separated by commas; of many, the first five and the number of the others.
func IDs(ids []clusterset.ClusterID) string {
	const most = 5
	var words []string
	for i, id := range ids {
		if i == most {
			words = append(words, fmt.Sprintf("%d more", len(ids)-most))
			break
		}
		words = append(words, string(id))
	}
	return strings.Join(words, ", ")
}

// Counted returns "1 import", "2 imports".
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// FirstThree returns the first three names, sorted, and the number of the others.
func FirstThree(names []string) string {
	const most = 3
	slices.Sort(names)
	text := strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// ContextFlag returns the flag of kubectl that selects a context; empty if there is none.
func ContextFlag(context string) string {
	if context == "" {
		return ""
	}
	return " --context " + context
}
