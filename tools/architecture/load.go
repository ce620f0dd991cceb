// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// listed is what go list says about a package.
type listed struct {
	ImportPath string
	Dir        string
	Export     string
	GoFiles    []string
	CgoFiles   []string
	Imports    []string
	ImportMap  map[string]string
	Deps       []string
	Module     *struct {
		Path string
		Main bool
	}
	Error *struct{ Err string }
}

// pkg is a package of the module, parsed and type-checked without its tests.
type pkg struct {
	listed
	rel   string // path below the module, "" for its root
	files []*ast.File
	types *types.Package
	info  *types.Info
}

// module is the module under check.
type module struct {
	root string
	path string
	fset *token.FileSet
	pkgs []*pkg
}

// load lists, parses and type-checks the packages of the module at root. A package that does not compile is an error:
// nothing could be said about it.
func load(root string) (*module, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	all, err := list(root)
	if err != nil {
		return nil, err
	}
	m := &module{root: root, fset: token.NewFileSet()}
	exports := map[string]string{}
	for _, l := range all {
		exports[l.ImportPath] = l.Export
	}
	imp := importer.ForCompiler(m.fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	for _, l := range all {
		if l.Module == nil || !l.Module.Main {
			continue
		}
		m.path = l.Module.Path
		p := &pkg{listed: l, rel: strings.TrimPrefix(strings.TrimPrefix(l.ImportPath, m.path), "/")}
		if err := p.check(m.fset, imp); err != nil {
			return nil, err
		}
		m.pkgs = append(m.pkgs, p)
	}
	return m, nil
}

// list runs go list, which compiles what is not compiled yet: the export data are what types come from.
func list(root string) ([]listed, error) {
	cmd := exec.Command("go", "list", "-e", "-export", "-deps",
		"-json=ImportPath,Dir,Export,GoFiles,CgoFiles,Imports,ImportMap,Deps,Module,Error", "./...")
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w\n%s", root, err, stderr.String())
	}
	var all []listed
	for decoder := json.NewDecoder(bytes.NewReader(stdout)); ; {
		var l listed
		err := decoder.Decode(&l)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("go list in %s: %w", root, err)
		}
		if l.Error != nil {
			return nil, fmt.Errorf("go list in %s: %s: %s\n%s", root, l.ImportPath, l.Error.Err, stderr.String())
		}
		all = append(all, l)
	}
}

func (p *pkg) check(fset *token.FileSet, imp types.Importer) error {
	for _, name := range append(append([]string{}, p.GoFiles...), p.CgoFiles...) {
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments)
		if err != nil {
			return err
		}
		p.files = append(p.files, file)
	}
	p.info = &types.Info{
		Uses:       map[*ast.Ident]types.Object{},
		Defs:       map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	config := types.Config{Importer: imp, FakeImportC: true}
	var err error
	p.types, err = config.Check(p.ImportPath, fset, p.files, p.info)
	return err
}
