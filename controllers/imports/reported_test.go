// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"errors"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/importing"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestRefusedAreCounted: the metric counts all refusals, although only the first reasons are stored.
func TestRefusedAreCounted(t *testing.T) {
	t.Parallel()
	metrics, err := NewMetrics(prometheus.NewRegistry(), time.Time{})
	check.Must(t, err)
	refused := func(name string, total int, reasons ...error) {
		key := clusterset.ServiceKey{Namespace: "shop", Name: name}
		metrics.update(importing.Observed{Sources: sources.Sources{Key: key, Hub: sources.Hub{Refused: reasons, RefusedTotal: total}}}, importing.Plan{})
	}
	see := func(want float64) {
		t.Helper()
		check.Equal(t, "tombolo_refused_records", want, testutil.ToFloat64(metrics.records.gauge))
	}
	refused("web", 1000, errors.New("the first"), errors.New("and more"))
	refused("db", 1, errors.New("the only one"))
	see(1001)
	refused("web", 2, errors.New("the first"), errors.New("the second"))
	see(3)
	refused("web", 0)
	see(1)
}
