// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// TestReasonsAreDocumented: every reason in the sources is in the order of reasons and in docs/runbook.md.
func TestReasonsAreDocumented(t *testing.T) {
	t.Parallel()
	documented, err := os.ReadFile("../../../../docs/runbook.md")
	check.Must(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), "status.go", nil, 0)
	check.Must(t, err)
	found := 0
	ast.Inspect(file, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || fmt.Sprint(spec.Type) != "Reason" {
			return true
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		check.Must(t, err)
		found++
		if !slices.Contains(reasons, Reason(value)) {
			t.Errorf("reason %s has no place in the order of reasons", value)
		}
		if !strings.Contains(string(documented), "| `"+value+"` |") {
			t.Errorf("docs/runbook.md does not say what %s is", value)
		}
		return true
	})
	if found == 0 || found != len(reasons) {
		t.Errorf("there are %d reasons in the sources, %d in the order", found, len(reasons))
	}
}
