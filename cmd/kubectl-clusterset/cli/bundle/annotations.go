// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import "strings"

// quotes are after what a text quotes exported annotations: conditions, Events and problems of conflicts do. They may cut
// what they quote, so it is not enough to search for it.
var quotes = []string{"Conflicting exported annotations", "exported annotations (using"}

// annotationField is how statuses and explanations call the annotations that exporters disagree on.
const annotationField = "exported annotations"

// withoutAnnotations returns a JSON value without what it quotes of exported annotations.
func withoutAnnotations(value any) any {
	switch value := value.(type) {
	case string:
		for _, quote := range quotes {
			if before, _, found := strings.Cut(value, quote); found {
				return before + quote + " " + removed
			}
		}
	case []any:
		result := make([]any, len(value))
		for i := range value {
			result[i] = withoutAnnotations(value[i])
		}
		return result
	case map[string]any:
		result := map[string]any{}
		for key, inner := range value {
			result[key] = withoutAnnotations(inner)
		}
		if value["field"] == annotationField {
			result["using"] = removed
			result["disagree"] = withoutWords(value["disagree"])
		}
		return result
	}
	return value
}

// withoutWords returns who disagrees, without what they say.
func withoutWords(disagree any) any {
	list, ok := disagree.([]any)
	if !ok {
		return disagree
	}
	result := make([]any, len(list))
	for i, item := range list {
		result[i] = item
		if who, ok := item.(map[string]any); ok {
			result[i] = map[string]any{"cluster": who["cluster"]}
		}
	}
	return result
}
