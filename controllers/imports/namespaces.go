// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"slices"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// NamespacePolicy says into which namespaces of a cluster services are imported (design decision 4).
type NamespacePolicy struct {
	// Allowed are the only ones; empty means all that are not denied.
	Allowed []string
	// Denied are those into which nothing is imported, the agent's own among them.
	Denied []string
}

// Allows reports whether services of a namespace are imported. Reserved namespaces never are.
func (p NamespacePolicy) Allows(namespace string) bool {
	return !clusterset.IsReservedNamespace(namespace) &&
		!slices.Contains(p.Denied, namespace) &&
		(len(p.Allowed) == 0 || slices.Contains(p.Allowed, namespace))
}
