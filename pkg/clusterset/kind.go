// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"reflect"
	"strings"
)

// KindOf returns the kind of an object of a Go type for messages, as in "ServiceImport", and that of a list in the plural, as in
// "ServiceImports".
func KindOf(object any) string {
	name := reflect.Indirect(reflect.ValueOf(object)).Type().Name()
	kind, isList := strings.CutSuffix(name, "List")
	switch {
	case !isList || strings.HasSuffix(kind, "Endpoints"):
		return kind
	case strings.HasSuffix(kind, "y"):
		return strings.TrimSuffix(kind, "y") + "ies"
	case strings.HasSuffix(kind, "s"):
		return kind + "es"
	}
	return kind + "s"
}
