// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"slices"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/render"
)

// knowsOwnExport reports whether the local API server says if this cluster exports the service, also if the hub was not read. Without a
// ServiceExport, the slices with this cluster's ID may be those of another cluster with the same ID, unless they show that they are
// this cluster's own (D6).
func (v view) knowsOwnExport(own clusterset.ClusterID) bool {
	return v.sources.Export != nil || slices.ContainsFunc(v.mirrored, func(s *discoveryv1.EndpointSlice) bool {
		return sourceOf(s) == own && render.IsLocal(s)
	})
}
