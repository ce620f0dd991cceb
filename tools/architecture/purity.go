// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// checkPurity holds a pure package to values: no client, clock, logger, metric or randomness.
func (m *module) checkPurity(p *pkg) []violation {
	var found []violation
	direct := false
	p.eachImport(func(spec *ast.ImportSpec, path string) {
		if within(path, impureImports) {
			direct = true
			found = append(found, m.at(spec.Pos(), "purity", fmt.Sprintf("%s is pure and must not import %s", p.name(), path)))
		}
	})
	for _, dep := range p.Deps {
		if !direct && within(dep, impureDeps) {
			found = append(found, m.at(p.files[0].Package, "purity", fmt.Sprintf(
				"%s is pure and must not reach %s through what it imports", p.name(), dep)))
			break
		}
	}
	for ident, object := range p.info.Uses {
		fn, ok := object.(*types.Func)
		if !ok || fn.Pkg() == nil || fn.Signature().Recv() != nil {
			continue
		}
		if slices.Contains(impureFuncs[fn.Pkg().Path()], fn.Name()) {
			found = append(found, m.at(ident.Pos(), "purity", fmt.Sprintf(
				"%s is pure and must not use %s.%s: take the time as a value", p.name(), fn.Pkg().Path(), fn.Name())))
		}
	}
	return found
}

// checkState finds assignments to variables of a package, which make them state. Tables that are only read are fine.
func (m *module) checkState(p *pkg) []violation {
	var found []violation
	report := func(expr ast.Expr) {
		if v := p.packageVar(expr); v != nil {
			found = append(found, m.at(expr.Pos(), "package-state", fmt.Sprintf(
				"%s changes the package variable %s: pass state in, or hold it in a value", p.name(), v.Name())))
		}
	}
	for _, file := range p.files {
		if ast.IsGenerated(file) {
			continue
		}
		ast.Inspect(file, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					for _, left := range n.Lhs {
						report(left)
					}
				}
			case *ast.IncDecStmt:
				report(n.X)
			case *ast.CallExpr:
				if fn, ok := n.Fun.(*ast.Ident); ok && isBuiltin(p.info, fn, "delete", "clear", "copy") && len(n.Args) > 0 {
					report(n.Args[0])
				}
			}
			return true
		})
	}
	return found
}

// packageVar returns the package variable that an assignment to expr would change, nil if there is none.
func (p *pkg) packageVar(expr ast.Expr) *types.Var {
	switch e := expr.(type) {
	case *ast.Ident:
		v, ok := p.info.Uses[e].(*types.Var)
		if ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
			return v
		}
	case *ast.SelectorExpr:
		if p.info.Selections[e] == nil {
			return p.packageVar(e.Sel)
		}
		return p.packageVar(e.X)
	case *ast.IndexExpr:
		return p.packageVar(e.X)
	case *ast.SliceExpr:
		return p.packageVar(e.X)
	case *ast.StarExpr:
		return p.packageVar(e.X)
	case *ast.ParenExpr:
		return p.packageVar(e.X)
	}
	return nil
}

func isBuiltin(info *types.Info, ident *ast.Ident, names ...string) bool {
	_, ok := info.Uses[ident].(*types.Builtin)
	return ok && slices.Contains(names, ident.Name)
}
