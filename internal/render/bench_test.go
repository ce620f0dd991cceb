// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/internal/render"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset/clustersettest"
)

// BenchmarkRender renders all objects of an import: the derived Service, the slices and the ServiceImport.
func BenchmarkRender(b *testing.B) {
	for _, size := range clustersettest.Sizes() {
		b.Run(size.String(), func(b *testing.B) {
			m, sources := merged(b, size.Exports()...), size.Slices()
			site := render.Site{
				IPFamilies:  []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol},
				DerivedName: clusterset.ShortDerivedName(m.Key.Name),
			}
			b.ReportAllocs()
			for b.Loop() {
				service, slices := render.Service(m, site), render.Slices(m, site, sources)
				i := render.ServiceImport(m, site, []string{"10.96.0.10"})
				if service == nil || i == nil || len(slices) != len(sources) {
					b.Fatal(service, i, len(slices))
				}
			}
		})
	}
}
