// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"slices"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// NamespacePolicy selects the namespaces of a cluster into which services are imported (design decision 4).
type NamespacePolicy struct {
	// Allowed are the allowed namespaces. If empty, all that are not denied are allowed.
	Allowed []string
	// Denied are the denied namespaces, the agent's own among them.
	Denied []string
}

// Allows reports whether services of a namespace are imported. Reserved namespaces never are.
func (p NamespacePolicy) Allows(namespace string) bool {
	return !clusterset.IsReservedNamespace(namespace) &&
		!slices.Contains(p.Denied, namespace) &&
		(len(p.Allowed) == 0 || slices.Contains(p.Allowed, namespace))
}
