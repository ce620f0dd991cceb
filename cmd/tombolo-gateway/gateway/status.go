// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/gateway/wire"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// reportInterval is the shortest time between two writes of the GatewayStatus, except for news, and lookInterval the time between two looks
// for changes.
const (
	reportInterval = 5 * time.Second
	lookInterval   = 200 * time.Millisecond
)

// report returns what a gateway with some addresses reports: which of the clusters it reaches. Times of former are kept if nothing has
// changed.
func report(
	addresses []string, reachable map[clusterset.ClusterID]error, former gatewayv1alpha1.GatewayReport, now time.Time,
) gatewayv1alpha1.GatewayReport {
	since := map[string]gatewayv1alpha1.ClusterReachability{}
	for _, cluster := range former.Clusters {
		since[cluster.Cluster] = cluster
	}
	result := gatewayv1alpha1.GatewayReport{Addresses: addresses, Versions: wire.Versions()}
	for _, id := range slices.Sorted(maps.Keys(reachable)) {
		err := reachable[id]
		cluster := gatewayv1alpha1.ClusterReachability{Cluster: string(id), Reachable: err == nil, Since: metav1.NewTime(now)}
		if err != nil {
			message := []rune(strings.ToValidUTF8(err.Error(), "?"))
			cluster.Reason, cluster.Message = "ConnectionFailed", string(message[:min(len(message), gatewayv1alpha1.MaxReachabilityText)])
		}
		if before, known := since[cluster.Cluster]; known && before.Reachable == cluster.Reachable {
			cluster.Since = before.Since
		}
		if len(result.Clusters) < gatewayv1alpha1.MaxReportedClusters {
			result.Clusters = append(result.Clusters, cluster)
		}
	}
	return result
}

// reporter writes the GatewayStatus of this pod.
type reporter struct {
	options Options
	api     client.Client
	written *gatewayv1alpha1.GatewayStatus
	wrote   time.Time // when the status was last written, and it was not the first
	failed  time.Time // when it could not be written
	// reported are the clusters that were reported since the start, and whether one was reported as reached.
	reported map[clusterset.ClusterID]bool
}

// isDue reports whether the status may be written now: after reportInterval, or at once if a cluster was not reported yet, or is reached
// for the first time. So services that are imported from a new cluster do not wait, and a cluster causes two early writes at most.
func (r *reporter) isDue(reachable map[clusterset.ClusterID]error, now time.Time) bool {
	if now.Sub(r.failed) < reportInterval {
		return false
	}
	for id, err := range reachable {
		if reached, known := r.reported[id]; !known || err == nil && !reached {
			return true
		}
	}
	return now.Sub(r.wrote) >= reportInterval
}

// remember stores what was reported.
func (r *reporter) remember(reachable map[clusterset.ClusterID]error) {
	if r.reported == nil {
		r.reported = map[clusterset.ClusterID]bool{}
	}
	for id, err := range reachable {
		r.reported[id] = r.reported[id] || err == nil
	}
}

// run writes the status when it has changed and is due, until ctx ends.
func (r *reporter) run(ctx context.Context, reachable func() map[clusterset.ClusterID]error) {
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		if known := reachable(); r.isDue(known, time.Now()) {
			err := r.write(ctx, known)
			switch {
			case err == nil:
				r.remember(known)
			case !errors.Is(err, context.Canceled):
				r.written, r.failed = nil, time.Now() // read it again
				r.options.Log.Error(err, "cannot write the GatewayStatus")
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (r *reporter) write(ctx context.Context, reachable map[clusterset.ClusterID]error) error {
	if r.written == nil {
		existing := &gatewayv1alpha1.GatewayStatus{}
		err := r.api.Get(ctx, client.ObjectKey{Namespace: r.options.Namespace, Name: r.options.PodName}, existing)
		if apierrors.IsNotFound(err) {
			return r.create(ctx, report(r.options.PodIPs, reachable, gatewayv1alpha1.GatewayReport{}, time.Now()))
		}
		if err != nil {
			return err
		}
		r.written = existing
	}
	desired := r.written.DeepCopy()
	desired.Report = report(r.options.PodIPs, reachable, r.written.Report, time.Now().Truncate(time.Second))
	if equality.Semantic.DeepEqual(desired.Report, r.written.Report) {
		return nil
	}
	if err := r.api.Update(ctx, desired); err != nil {
		return err
	}
	r.written, r.wrote = desired, time.Now()
	return nil
}

func (r *reporter) create(ctx context.Context, first gatewayv1alpha1.GatewayReport) error {
	status := &gatewayv1alpha1.GatewayStatus{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: r.options.Namespace, Name: r.options.PodName, Labels: map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: r.options.PodName, UID: types.UID(r.options.PodUID)}},
		},
		Report: first,
	}
	if err := r.api.Create(ctx, status); err != nil {
		return err
	}
	r.written = status
	return nil
}
