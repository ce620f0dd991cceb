// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// violation is a place where a rule is broken.
type violation struct {
	file string // relative to the module's root, with slashes
	line int
	rule string
	text string
}

// String returns file:line: rule: text.
func (v violation) String() string {
	return fmt.Sprintf("%s:%d: %s: %s", v.file, v.line, v.rule, v.text)
}

// check returns the violations in the module at root, sorted by place. A folder of the layout that does not exist yet
// breaks no rule.
func check(root string) ([]violation, error) {
	m, err := load(root)
	if err != nil {
		return nil, err
	}
	found, err := checkFiles(root)
	if err != nil {
		return nil, err
	}
	for _, p := range m.pkgs {
		g, placed := groupOf(p.rel)
		if !placed {
			found = append(found, m.at(p.files[0].Package, "import-order", fmt.Sprintf(
				"%s has no place in the order of imports; give it one in tools/architecture/places.go", p.name())))
			continue
		}
		found = append(found, m.checkImports(p, g)...)
		if mustBePure[g] {
			found = append(found, m.checkPurity(p)...)
		}
		if g != e2e && g != tools && g != cmd {
			found = append(found, m.checkState(p)...)
		}
		if !mayWrite[g] {
			found = append(found, m.checkWrites(p)...)
		}
	}
	slices.SortFunc(found, func(a, b violation) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line), cmp.Compare(a.text, b.text))
	})
	return slices.Compact(found), nil
}

func (p *pkg) name() string {
	return cmp.Or(p.rel, "the module's root package")
}

func (m *module) at(pos token.Pos, rule, text string) violation {
	where := m.fset.Position(pos)
	rel, err := filepath.Rel(m.root, where.Filename)
	if err != nil {
		rel = where.Filename
	}
	return violation{file: filepath.ToSlash(rel), line: where.Line, rule: rule, text: text}
}

// eachImport calls f with the path of every import of the package.
func (p *pkg) eachImport(f func(spec *ast.ImportSpec, path string)) {
	for _, file := range p.files {
		for _, spec := range file.Imports {
			if path, err := strconv.Unquote(spec.Path.Value); err == nil {
				f(spec, path)
			}
		}
	}
}

// checkImports holds imports of the module's own packages to mayImport, and those of pkg/api to apiImports.
func (m *module) checkImports(p *pkg, g group) []violation {
	var found []violation
	p.eachImport(func(spec *ast.ImportSpec, path string) {
		rel, own := strings.CutPrefix(path, m.path+"/")
		switch {
		case own:
			target, placed := groupOf(rel)
			if placed && !slices.Contains(mayImport[g], target) {
				found = append(found, m.at(spec.Pos(), "import-order", fmt.Sprintf(
					"%s (%s) must not import %s (%s)", p.name(), g, rel, target)))
			}
		case g == api && isModule(path) && !within(path, apiImports):
			found = append(found, m.at(spec.Pos(), "import-order", fmt.Sprintf(
				"the hub's types import only %s and pkg/clusterset, not %s", strings.Join(apiImports, ", "), path)))
		}
	})
	return found
}

// isModule reports whether a path is no package of the standard library.
func isModule(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.Contains(first, ".")
}
