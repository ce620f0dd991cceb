// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/importing"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// A slice that is written because another source has failed is no change of its source.
//
// spec: P1
func TestFailoverIsNoPropagation(t *testing.T) {
	t.Parallel()
	registry, start := prometheus.NewRegistry(), time.Unix(1000, 0)
	m, err := NewMetrics(registry, start)
	check.Must(t, err)
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	source := func(id clusterset.ClusterID, changed int) clusterset.Slice {
		return clusterset.Slice{Cluster: id, ID: "0123456789", Trigger: at(changed)}
	}
	mirrored := func(id clusterset.ClusterID) []*discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{}
		s.Name = clusterset.MirroredSliceName("derived-1", id, "0123456789")
		s.Labels = map[string]string{discoveryv1.LabelServiceName: "derived-1", mcsv1beta1.LabelSourceCluster: string(id)}
		return []*discoveryv1.EndpointSlice{s}
	}
	observed := func(want uint64, sum float64) {
		t.Helper()
		families, err := registry.Gather()
		check.Must(t, err)
		for _, family := range families {
			for _, metric := range family.GetMetric() {
				if h := metric.GetHistogram(); h != nil && metric.GetLabel()[0].GetValue() == sourceRemote && (h.GetSampleCount() != want || h.GetSampleSum() != sum) {
					t.Errorf("observed %d changes that took %v s, want %d and %v s", h.GetSampleCount(), h.GetSampleSum(), want, sum)
				}
			}
		}
	}
	written := func(known []clusterset.Slice) {
		o := importing.Observed{Sources: sources.Sources{Key: webKey(), Hub: sources.Hub{Slices: known}}}
		m.update(o, importing.Plan{IsImported: true, IsLast: true})
	}
	before := []clusterset.Slice{source("a", 1), source("b", 1)}
	m.observePropagation("own", webKey(), before, mirrored("a"), at(2)) // only a serves
	observed(1, 1)
	m.observePropagation("own", webKey(), before, mirrored("a"), at(3)) // again, as the first write was not complete
	observed(2, 3)
	written(before)
	failed := []clusterset.Slice{source("a", 3600), source("b", 1)}
	m.observePropagation("own", webKey(), failed, mirrored("b"), at(3601)) // b serves instead
	observed(2, 3)
	written(failed)
	changed := []clusterset.Slice{source("a", 3600), source("b", 3602)}
	m.observePropagation("own", webKey(), changed, mirrored("b"), at(3604))
	observed(3, 5)
	m.update(importing.Observed{Sources: sources.Sources{Key: webKey()}}, importing.Plan{})
	if len(m.triggers.latest) > 0 {
		t.Errorf("%v is still stored", m.triggers.latest)
	}
}
