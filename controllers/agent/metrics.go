// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/imports"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// metrics are the metrics of an agent.
type metrics struct {
	registry prometheus.Registerer
	imports  imports.Metrics
	hub      prometheus.Gauge
	token    prometheus.Gauge
	// refused is 1 while the hub refuses the record of the gateways.
	refused prometheus.Gauge
	// missing is 1 for each kind that the cluster does not serve as the agent needs it, and 0 for the others.
	missing *prometheus.GaugeVec
}

func newMetrics(registry prometheus.Registerer, since time.Time) (metrics, error) {
	if registry == nil {
		registry = prometheus.NewRegistry()
	}
	ofImports, err := imports.NewMetrics(registry, since)
	if err != nil {
		return metrics{}, fmt.Errorf("register metrics: %w", err)
	}
	m := metrics{registry: registry, imports: ofImports, hub: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tombolo_hub_connected",
		Help: "1 while everything can be read from the hub, else 0.",
	}), token: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tombolo_hub_token_expiry_timestamp_seconds",
		Help: "Unix time at which the agent's token for the hub expires; 0 if the agent does not renew it or has not read it yet.",
	}), refused: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tombolo_gateway_record_refused",
		Help: "1 while the hub refuses the record of this cluster's gateways, for example because the Member does not allow an address, else 0.",
	}), missing: prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "tombolo_kind_missing",
		Help: "1 while this cluster does not serve the kind as the agent needs it, for example because other CRDs have replaced those of this version, else 0.",
	}, []string{"kind"})}
	return m, m.register(m.hub, m.token, m.refused, m.missing)
}

func (m metrics) register(collectors ...prometheus.Collector) error {
	for _, collector := range collectors {
		if err := m.registry.Register(collector); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}

// setReachability sets whether everything can be read from the hub.
func (m metrics) setReachability(r hub.Reachability) {
	m.hub.Set(map[hub.Reachability]float64{hub.Reachable: 1, hub.Unreachable: 0}[r])
}

// setTokenExpiry sets the time at which the token for the hub expires.
func (m metrics) setTokenExpiry(at time.Time) { m.token.Set(float64(at.Unix())) }

// setKinds sets which of the needed kinds are missing.
func (m metrics) setKinds(kinds []servedKind) {
	for _, kind := range kinds {
		missing := 0.0
		if kind.err != nil {
			missing = 1
		}
		m.missing.WithLabelValues(kind.name).Set(missing)
	}
}

var (
	exportsDesc     = prometheus.NewDesc("tombolo_exports", "ServiceExports in this cluster.", nil, nil)
	unexportedDesc  = prometheus.NewDesc("tombolo_exports_not_ready", "ServiceExports in this cluster that are not published on the hub.", nil, nil)
	conflictingDesc = prometheus.NewDesc("tombolo_exports_conflicting", "ServiceExports in this cluster with which another cluster's export is in conflict.", nil, nil)
	importsDesc     = prometheus.NewDesc("tombolo_imports", "ServiceImports in this cluster that are managed by Tombolo.", nil, nil)
	notImportedDesc = prometheus.NewDesc("tombolo_imports_not_ready", "ServiceImports in this cluster, managed by Tombolo, that cannot be used.", nil, nil)
)

// objectCounts counts exports and imports in the cache at each scrape. It reads the stores of their informers, because a list would be a
// copy of all objects.
type objectCounts struct{ member cache.Cache }

// Describe sends the descriptions of the metrics.
func (objectCounts) Describe(descriptions chan<- *prometheus.Desc) {
	for _, description := range []*prometheus.Desc{exportsDesc, unexportedDesc, conflictingDesc, importsDesc, notImportedDesc} {
		descriptions <- description
	}
}

// Collect counts the objects. Objects that cannot be read are an invalid metric, so that they are not missing unnoticed.
func (i objectCounts) Collect(values chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	gauge := func(description *prometheus.Desc, value int) {
		values <- prometheus.MustNewConstMetric(description, prometheus.GaugeValue, float64(value))
	}
	exports, err := stored(ctx, i.member, &mcsv1beta1.ServiceExport{})
	if err != nil {
		values <- prometheus.NewInvalidMetric(exportsDesc, err)
		return
	}
	ready, conflicting := 0, 0
	for _, export := range exports {
		if meta.IsStatusConditionTrue(export.Status.Conditions, string(mcsv1beta1.ServiceExportConditionReady)) {
			ready++
		}
		if meta.IsStatusConditionTrue(export.Status.Conditions, string(mcsv1beta1.ServiceExportConditionConflict)) {
			conflicting++
		}
	}
	gauge(exportsDesc, len(exports))
	gauge(unexportedDesc, len(exports)-ready)
	gauge(conflictingDesc, conflicting)
	imported, err := stored(ctx, i.member, &mcsv1beta1.ServiceImport{})
	if err != nil {
		values <- prometheus.NewInvalidMetric(importsDesc, err)
		return
	}
	ours, usable := 0, 0
	for _, serviceImport := range imported {
		if !clusterset.IsManaged(serviceImport.Labels) {
			continue
		}
		ours++
		if meta.IsStatusConditionTrue(serviceImport.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)) {
			usable++
		}
	}
	gauge(importsDesc, ours)
	gauge(notImportedDesc, ours-usable)
}

// stored returns all objects of a kind. They must not be changed.
func stored[T client.Object](ctx context.Context, from cache.Cache, of T) ([]T, error) {
	informer, err := from.GetInformer(ctx, of)
	if err != nil {
		return nil, err
	}
	reader, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("the informer of %T is a %T, which has no store", of, informer)
	}
	var all []T
	for _, object := range reader.GetStore().List() {
		if o, ok := object.(T); ok {
			all = append(all, o)
		}
	}
	return all, nil
}
