// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// header is what every Go source starts with.
const header = "// Copyright The Tombolo Authors.\n// SPDX-License-Identifier: Apache-2.0\n"

// checkFiles holds every Go file below root, whatever its module and build constraints, to what can be seen without
// types: the header, and no sleeping in tests.
func checkFiles(root string) ([]violation, error) {
	var found []violation
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if entry.IsDir() {
			if skipDir(rel) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(rel, ".go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		of, err := checkFile(rel, text)
		found = append(found, of...)
		return err
	})
	return found, err
}

func skipDir(rel string) bool {
	base := filepath.Base(rel)
	return rel == "bin" || rel == "out" || base == "testdata" || (rel != "." && strings.HasPrefix(base, "."))
}

func checkFile(rel string, text []byte) ([]violation, error) {
	var found []violation
	// A build constraint may stand above the header: gofumpt puts generators' constraints there.
	body := string(text)
	for strings.HasPrefix(body, "//go:build ") {
		_, body, _ = strings.Cut(body, "\n")
		body = strings.TrimLeft(body, "\n")
	}
	if !strings.HasPrefix(body, header) {
		found = append(found, violation{file: rel, line: 1, rule: "header", text: "the file does not start with the copyright and licence lines"})
	}
	if !strings.HasSuffix(rel, "_test.go") {
		return found, nil
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, rel, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, pos := range sleeps(file) {
		found = append(found, violation{
			file: rel, line: fset.Position(pos).Line, rule: "sleep",
			text: "a test must not sleep: wait for what is to happen, or use testing/synctest",
		})
	}
	return found, nil
}

// importName returns the name by which a file knows a package, "" if it does not import it.
func importName(file *ast.File, path string) string {
	for _, spec := range file.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err != nil || p != path {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path[strings.LastIndexByte(path, '/')+1:]
	}
	return ""
}

func isSelector(expr ast.Expr, x, sel string) bool {
	s, ok := expr.(*ast.SelectorExpr)
	if !ok || x == "" || s.Sel.Name != sel {
		return false
	}
	ident, ok := s.X.(*ast.Ident)
	return ok && ident.Name == x
}
