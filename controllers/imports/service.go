// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/merge"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
	"github.com/tombolo-mcs/tombolo/pkg/render"
)

// serviceResult is the result of writing a derived Service.
type serviceResult struct {
	// service is the written Service; nil if this cluster has none of its IP families, or if an unmanaged object has its name.
	service *corev1.Service
	// foreignErr is the error for an unmanaged object with the name of the Service or of one of its slices, or for a virtual IP that the API
	// server refuses.
	foreignErr error
	// site is the site without what the API server has just refused.
	site render.Site
}

// writeService writes the derived Service. If the API server refuses a setting or an address, it writes the Service without it.
func (r *Reconciler) writeService(ctx context.Context, v view, d decision) (serviceResult, error) {
	site, observed := d.site, v.derivedServices()
	desired := render.Service(d.merged, site)
	changes := plan.Service(desired, observed)
	r.announceReplacement(v, changes)
	for {
		written, err := r.applyService(ctx, desired, changes)
		if len(written) > 0 {
			observed = written[len(written)-1:]
		}
		relaxed, listErr := r.relaxDesired(ctx, d.merged, site, writeResult{desired, written, err})
		switch {
		case listErr != nil:
			return serviceResult{}, listErr
		case relaxed != nil:
			site = *relaxed
			desired = render.Service(d.merged, site)
			changes = plan.Service(desired, observed)
			continue
		case errors.Is(err, apply.ErrUnmanaged):
			return serviceResult{foreignErr: err, site: site}, nil
		case err != nil || desired == nil:
			return serviceResult{site: site}, err
		}
		at := slices.IndexFunc(observed, func(s *corev1.Service) bool { return s.Name == desired.Name })
		return serviceResult{service: observed[at], site: site}, nil
	}
}

// writeResult is the result of one attempt to write a derived Service.
type writeResult struct {
	desired *corev1.Service
	written []*corev1.Service
	err     error
}

// relaxDesired returns the site without the settings that the API server does not support (spec D6), or without addresses that
// another Service has. It returns nil if there is nothing to leave out. Each call leaves out more, so the caller's loop ends.
func (r *Reconciler) relaxDesired(ctx context.Context, m merge.Merged, site render.Site, result writeResult) (*render.Site, error) {
	var unsupported []clusterset.Setting
	if result.err == nil && len(result.written) > 0 {
		unsupported = render.DroppedSettings(m, site, result.written[len(result.written)-1])
	} else {
		unsupported = render.RefusedSettings(m, site, apply.RefusedFields(result.err))
	}
	if len(unsupported) > 0 {
		r.Unsupported.add(unsupported)
		site.UnknownSettings = with(site.UnknownSettings, unsupported)
		return &site, nil
	}
	if !apply.IsRefused(result.err) || len(site.IPs) == 0 {
		return nil, nil
	}
	if taken, err := r.addressTaken(ctx, result.desired); err != nil || !taken {
		return nil, err
	}
	site.IPs = nil // other addresses are better than none
	return &site, nil
}

// applyService applies the changes of the derived Service and returns what it wrote. It restores two addresses one after the other.
func (r *Reconciler) applyService(ctx context.Context, desired *corev1.Service, changes []plan.Change[*corev1.Service]) ([]*corev1.Service, error) {
	written, err := apply.Do(ctx, r.Writer, changes)
	if err != nil || len(written) == 0 || len(written[0].Spec.ClusterIPs) >= len(desired.Spec.ClusterIPs) {
		return written, err
	}
	completed, err := apply.Do(ctx, r.Writer, plan.Service(desired, written))
	return append(written, completed...), err
}

// addressTaken reports whether another Service has one of the addresses of the desired derived Service. If not, the API server
// releases the address as soon as it has deleted the Service that had it.
func (r *Reconciler) addressTaken(ctx context.Context, desired *corev1.Service) (bool, error) {
	services := &corev1.ServiceList{}
	if err := r.Member.List(ctx, services, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list Services: %w", err)
	}
	return slices.ContainsFunc(services.Items, func(s corev1.Service) bool {
		another := s.Namespace != desired.Namespace || s.Name != desired.Name
		return another && slices.ContainsFunc(s.Spec.ClusterIPs, func(ip string) bool { return slices.Contains(desired.Spec.ClusterIPs, ip) })
	}), nil
}
