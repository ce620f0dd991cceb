// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import "strings"

// quotePrefixes precede quoted annotations in conditions, Events and problems of conflicts. A quote may be cut, so a search for
// the values is not enough.
var quotePrefixes = []string{"Conflicting exported annotations", "exported annotations (using"}

// annotationField is the name of the field for annotations in statuses and explanations.
const annotationField = "exported annotations"

// withoutAnnotations returns a JSON value without quoted annotations.
func withoutAnnotations(value any) any {
	switch value := value.(type) {
	case string:
		for _, quote := range quotePrefixes {
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
			result["disagree"] = withoutValues(value["disagree"])
		}
		return result
	}
	return value
}

// withoutValues returns the clusters that disagree, without their values.
func withoutValues(disagree any) any {
	list, ok := disagree.([]any)
	if !ok {
		return disagree
	}
	result := make([]any, len(list))
	for i, item := range list {
		result[i] = item
		if disagreement, ok := item.(map[string]any); ok {
			result[i] = map[string]any{"cluster": disagreement["cluster"]}
		}
	}
	return result
}
