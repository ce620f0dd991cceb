// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"go/token"
)

// sleeps returns where a test does nothing but let time pass, apart from what is written inside a call of synctest.Test, whose
// clock is fake: uses of time.Sleep, statements that only receive from a timer, and selects that go on as if nothing were amiss when
// time has passed. A timeout that fails the test has something to do, and a ticker beside another way out is a poll.
func sleeps(file *ast.File) []token.Pos {
	timeName, syncName := importName(file, "time"), importName(file, "testing/synctest")
	timers, tickers := madeBy(file, timeName, "NewTimer"), madeBy(file, timeName, "NewTicker")
	isTimer := func(channel ast.Expr) bool {
		return isCall(channel, timeName, "After") || isChannelOf(channel, timers)
	}
	inSelect := map[ast.Stmt]bool{}
	var found []token.Pos
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.CallExpr:
			return !isSelector(n.Fun, syncName, "Test")
		case *ast.SelectorExpr:
			if isSelector(n, timeName, "Sleep") {
				found = append(found, n.Pos())
			}
		case *ast.CommClause:
			inSelect[n.Comm] = true
			if channel := receivedFrom(n.Comm); channel != nil && len(n.Body) == 0 && isTimer(channel) {
				found = append(found, n.Pos())
			}
		case *ast.ExprStmt:
			channel := receivedFrom(n)
			if channel != nil && !inSelect[n] && (isTimer(channel) || isCall(channel, timeName, "Tick") || isChannelOf(channel, tickers)) {
				found = append(found, n.Pos())
			}
		}
		return true
	})
	return found
}

// madeBy returns the names of the variables that a file assigns the result of a function of a package to.
func madeBy(file *ast.File, pkg, function string) map[string]bool {
	names := map[string]bool{}
	ast.Inspect(file, func(node ast.Node) bool {
		assignment, ok := node.(*ast.AssignStmt)
		if !ok || len(assignment.Lhs) != len(assignment.Rhs) {
			return true
		}
		for i, value := range assignment.Rhs {
			if name, ok := assignment.Lhs[i].(*ast.Ident); ok && isCall(value, pkg, function) {
				names[name.Name] = true
			}
		}
		return true
	})
	return names
}

// receivedFrom returns the channel of a statement that receives and leaves what it receives, nil for any other.
func receivedFrom(statement ast.Stmt) ast.Expr {
	expression, ok := statement.(*ast.ExprStmt)
	if !ok {
		return nil
	}
	if receive, ok := expression.X.(*ast.UnaryExpr); ok && receive.Op == token.ARROW {
		return receive.X
	}
	return nil
}

func isCall(expr ast.Expr, pkg, function string) bool {
	call, ok := expr.(*ast.CallExpr)
	return ok && isSelector(call.Fun, pkg, function)
}

// isChannelOf reports whether an expression is the channel of one of these timers or tickers.
func isChannelOf(expr ast.Expr, names map[string]bool) bool {
	s, ok := expr.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "C" {
		return false
	}
	ident, ok := s.X.(*ast.Ident)
	return ok && names[ident.Name]
}
