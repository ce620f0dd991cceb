// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"net/netip"
	"testing"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset/clustersettest"
)

// BenchmarkEncode encodes all records of a service.
func BenchmarkEncode(b *testing.B) {
	for _, size := range clustersettest.Sizes() {
		b.Run(size.String(), func(b *testing.B) {
			exports, slices := size.Exports(), size.Slices()
			b.ReportAllocs()
			for b.Loop() {
				for _, e := range exports {
					if EncodeService(e).Name == "" {
						b.Fatal(e)
					}
				}
				for _, s := range slices {
					if len(EncodeEndpoints(exports[0].Key, s).Spec.Groups) == 0 {
						b.Fatal(s)
					}
				}
			}
		})
	}
}

// BenchmarkDecode checks and decodes all records of a service.
func BenchmarkDecode(b *testing.B) {
	for _, size := range clustersettest.Sizes() {
		b.Run(size.String(), func(b *testing.B) {
			var services []*hubv1alpha1.PublishedService
			var endpoints []*hubv1alpha1.PublishedEndpoints
			policies := map[string]Policy{}
			for _, e := range size.Exports() {
				record := onTheHub(b, EncodeService(e))
				services = append(services, record)
				policies[record.Namespace] = Policy{ID: e.Cluster, Ranges: clusterset.AddressRanges{Allowed: []netip.Prefix{netip.MustParsePrefix(clustersettest.SizedNetwork)}}}
			}
			for _, s := range size.Slices() {
				endpoints = append(endpoints, onTheHub(b, EncodeEndpoints(size.Exports()[0].Key, s)))
			}
			b.ReportAllocs()
			for b.Loop() {
				for _, record := range services {
					if _, err := DecodeService(record, policies[record.Namespace]); err != nil {
						b.Fatal(err)
					}
				}
				for _, record := range endpoints {
					if _, errs := DecodeEndpoints(record, policies[record.Namespace]); len(errs) > 0 {
						b.Fatal(errs)
					}
				}
			}
		})
	}
}
