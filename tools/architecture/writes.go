// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"fmt"
	"go/types"
	"slices"
)

// checkWrites finds uses of methods that change a cluster: only pkg/apply may, because its guard keeps us away from
// objects that are not ours. A small interface of a consumer's own is recognised by what its methods take.
func (m *module) checkWrites(p *pkg) []violation {
	var found []violation
	for ident, object := range p.info.Uses {
		fn, ok := object.(*types.Func)
		if !ok || fn.Pkg() == nil || !writes(fn) {
			continue
		}
		if g, own := m.placeOf(fn.Pkg().Path()); own && mayWrite[g] {
			continue
		}
		found = append(found, m.at(ident.Pos(), "cluster-write", fmt.Sprintf(
			"%s calls %s of %s: only pkg/apply changes a cluster", p.name(), fn.Name(), fn.Pkg().Path())))
	}
	return found
}

// placeOf returns the group of a package of this module, false for any other package.
func (m *module) placeOf(path string) (group, bool) {
	if len(path) <= len(m.path) || path[:len(m.path)+1] != m.path+"/" {
		return "", false
	}
	return groupOf(path[len(m.path)+1:])
}

func writes(fn *types.Func) bool {
	path := fn.Pkg().Path()
	if fn.Signature().Recv() == nil {
		return path == controllerutil && slices.Contains(writeFuncs, fn.Name())
	}
	if !slices.Contains(writeMethods, fn.Name()) {
		return false
	}
	return within(path, clientPackages) || takesClientTypes(fn.Signature())
}

// takesClientTypes reports whether a parameter is of a type of controller-runtime's client package, as Object or
// CreateOption are.
func takesClientTypes(signature *types.Signature) bool {
	for param := range signature.Params().Variables() {
		t := param.Type()
		if slice, ok := t.(*types.Slice); ok {
			t = slice.Elem()
		}
		named, ok := types.Unalias(t).(*types.Named)
		if ok && named.Obj().Pkg() != nil && within(named.Obj().Pkg().Path(), clientPackages[:1]) {
			return true
		}
	}
	return false
}
