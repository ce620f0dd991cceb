// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
)

// showHidden replaces a value of which JSON shows nothing, because its fields are not exported, by its text. Libraries log such values: the
// failed checks of /readyz were "statuses":[{}].
func showHidden(_ []string, a slog.Attr) slog.Attr {
	value := a.Value.Any()
	if a.Value.Kind() != slog.KindAny || !hasContent(reflect.ValueOf(value)) {
		return a
	}
	if _, is := value.(error); is {
		return a
	}
	encoded, err := json.Marshal(value)
	if err == nil && strings.Trim(string(encoded), "[]{},") == "" {
		a.Value = slog.StringValue(fmt.Sprintf("%+v", value))
	}
	return a
}

// hasContent reports whether a value is not an empty list, an empty map, nil, or a struct without fields.
func hasContent(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Array, reflect.Map:
		return v.Len() > 0
	case reflect.Struct:
		return v.NumField() > 0
	case reflect.Pointer, reflect.Interface:
		return !v.IsNil() && hasContent(v.Elem())
	default:
		return v.IsValid()
	}
}
