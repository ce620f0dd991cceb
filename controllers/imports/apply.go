// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/importing"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// apply reserves the numbers of a plan, or applies its stages: the next one if each change of the last one has ended as planned. An error means
// that the results of writes are not known, or that the plan was stale.
func (r *Reconciler) apply(ctx context.Context, o importing.Observed, p importing.Plan) (importing.Outcome, error) {
	if p.Reserve != nil {
		numbers, err := r.reserve(ctx, o.Sources.Key, o.Numbers, *p.Reserve)
		return importing.Outcome{Numbers: &numbers}, err
	}
	if len(p.Retain) > 0 {
		if err := r.Retained.retain(ctx, o.Sources.Key, p.Retain); err != nil {
			return importing.Outcome{}, err
		}
	}
	result := importing.Outcome{}
	for _, stage := range p.Stages {
		outcome, err := r.applyStage(ctx, o, stage)
		result.Stored = append(result.Stored, outcome.Stored...)
		result.Refused = append(result.Refused, outcome.Refused...)
		result.AddressesLost = result.AddressesLost || outcome.AddressesLost
		if err != nil || !outcome.IsAsPlanned() {
			return result, err
		}
	}
	return result, nil
}

// reserve returns the numbers after a reservation.
func (r *Reconciler) reserve(ctx context.Context, key clusterset.ServiceKey, numbers importing.Numbers, wanted importing.Reservation) (importing.Numbers, error) {
	var err error
	if wanted.VirtualIPs != nil {
		err = r.VirtualIPs.assign(ctx, key, *wanted.VirtualIPs, &numbers)
	} else {
		err = r.GatewayPorts.assign(ctx, key, wanted.Ports, &numbers)
	}
	return numbers, err
}

// applyStage applies all changes of a stage, also after one has failed.
func (r *Reconciler) applyStage(ctx context.Context, o importing.Observed, stage importing.Stage) (importing.Outcome, error) {
	outcome := importing.Outcome{}
	var errs []error
	for _, change := range stage {
		written, err := apply.Do(ctx, r.Writer, []plan.Change[plan.Object]{change})
		switch refused, is := refusalOf(change, err); {
		case err == nil:
			stored := importing.Stored{Change: change}
			if len(written) > 0 {
				stored.Object = written[0]
			}
			outcome.Stored = append(outcome.Stored, stored)
		case is:
			outcome.Refused = append(outcome.Refused, refused)
			lost, err := r.addressesLost(ctx, change)
			outcome.AddressesLost = outcome.AddressesLost || lost
			errs = append(errs, err)
		default:
			errs = append(errs, err)
		}
	}
	r.observe(o, outcome.Stored)
	return outcome, apply.Join(errs...)
}

// refusalOf returns why a change was refused; false if it was not: it was stored, nothing is known of it, or it was planned from stale data.
func refusalOf(change plan.Change[plan.Object], err error) (importing.Refused, bool) {
	if err == nil || !apply.IsRefused(err) {
		return importing.Refused{}, false
	}
	result := importing.Refused{Change: change, Kind: importing.Invalid, Fields: apply.RefusedFields(err), Err: err}
	for _, failure := range apply.WriteErrors(err) {
		result.Reason = apply.Cause(failure)
	}
	switch _, isImport := change.Object.(*mcsv1beta1.ServiceImport); {
	case apply.IsUnmanaged(err) && isImport && change.Verb == plan.Create:
		return result, false // another client has just created it: the watch event enqueues the service again
	case apply.IsUnmanaged(err):
		result.Kind = importing.Unmanaged
	case apierrors.IsForbidden(err):
		result.Kind = importing.Forbidden
	}
	return result, true
}

// addressesLost reports whether the addresses of a refused Service cannot be granted: another Service has one of them, or no range of the
// cluster's Services contains it. If not, the API server releases the address as soon as it has deleted the Service that had it.
func (r *Reconciler) addressesLost(ctx context.Context, change plan.Change[plan.Object]) (bool, error) {
	desired, isService := change.Object.(*corev1.Service)
	if !isService || change.Verb == plan.Delete || len(desired.Spec.ClusterIPs) == 0 || desired.Spec.ClusterIP == corev1.ClusterIPNone {
		return false, nil
	}
	if existing, ok := change.Existing.(*corev1.Service); ok && existing.Spec.ClusterIP != "" {
		return false, nil // it has its addresses
	}
	services := &corev1.ServiceList{}
	if err := r.Member.List(ctx, services, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list Services: %w", err)
	}
	if slices.ContainsFunc(services.Items, func(s corev1.Service) bool {
		another := s.Namespace != desired.Namespace || s.Name != desired.Name
		return another && slices.ContainsFunc(s.Spec.ClusterIPs, func(ip string) bool { return slices.Contains(desired.Spec.ClusterIPs, ip) })
	}) {
		return true, nil
	}
	ranges, err := r.ServiceRanges(ctx)
	if err != nil || len(ranges) == 0 {
		return false, err
	}
	return slices.ContainsFunc(desired.Spec.ClusterIPs, func(ip string) bool {
		address, err := netip.ParseAddr(ip)
		return err == nil && !slices.ContainsFunc(ranges, func(p netip.Prefix) bool { return p.Contains(address) })
	}), nil
}

// observe stores which slices were written, so that their watch events do not enqueue the service, and how old their changes are.
func (r *Reconciler) observe(o importing.Observed, stored []importing.Stored) {
	var written []*discoveryv1.EndpointSlice
	for _, s := range stored {
		if slice, ok := s.Object.(*discoveryv1.EndpointSlice); ok && slice.Labels[clusterset.LabelVirtualIPOf] == "" {
			written = append(written, slice)
			if s.IsKept() {
				r.own.add(o.Sources.Key, slice.ResourceVersion)
			}
		}
	}
	r.Metrics.observePropagation(o.Cluster, o.Sources.Key, o.SourceSlices(), written, r.Clock.Now())
}
