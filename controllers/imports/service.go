// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/merge"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
	"github.com/tombolo-mcs/tombolo/pkg/render"
)

// derived is what became of a derived Service.
type derived struct {
	// service is the Service as it stands: nil where this cluster has no IP family for it, or where something is in its way.
	service *corev1.Service
	// obstacle is what is in the way of it, or of its slices.
	obstacle error
	// site is what the cluster adds, less what its API server has just refused.
	site render.Site
}

// writeService writes the derived Service. Where the API server refuses part of it, the rest is better than nothing.
func (r *Reconciler) writeService(ctx context.Context, v view, d decision) (derived, error) {
	site, observed := d.site, v.derived()
	desired := render.Service(d.merged, site)
	changes := plan.Service(desired, observed)
	r.announceReplacement(v, changes)
	for {
		written, err := r.applyService(ctx, desired, changes)
		observed = standing(observed, written)
		less, lookup := r.concede(ctx, d.merged, site, answer{desired, written, err})
		switch {
		case lookup != nil:
			return derived{}, lookup
		case less != nil:
			site = *less
			desired = render.Service(d.merged, site)
			changes = plan.Service(desired, observed)
			continue
		case errors.Is(err, apply.ErrForeign):
			return derived{obstacle: err, site: site}, nil
		case err != nil || desired == nil:
			return derived{site: site}, err
		}
		at := slices.IndexFunc(observed, func(s *corev1.Service) bool { return s.Name == desired.Name })
		return derived{service: observed[at], site: site}, nil
	}
}

// answer is what the API server made of a derived Service.
type answer struct {
	desired *corev1.Service
	written []*corev1.Service
	err     error
}

// concede returns what to ask for instead, nil where that would change nothing: no setting that the API server has
// shown not to know (spec D6), or no address that another Service has. Each time it is less.
func (r *Reconciler) concede(ctx context.Context, m merge.Merged, site render.Site, a answer) (*render.Site, error) {
	var unknown []clusterset.Setting
	if a.err == nil && len(a.written) > 0 {
		unknown = render.Dropped(m, site, a.written[len(a.written)-1])
	} else {
		unknown = render.Refused(m, site, fieldsOf(a.err))
	}
	if len(unknown) > 0 {
		r.Unknown.learn(unknown)
		site.Unknown = with(site.Unknown, unknown)
		return &site, nil
	}
	if !apierrors.IsInvalid(a.err) || len(site.IPs) == 0 {
		return nil, nil
	}
	if taken, err := r.taken(ctx, a.desired); err != nil || !taken {
		return nil, err
	}
	site.IPs = nil // others are better than none
	return &site, nil
}

// applyService carries out the changes that lead to the desired derived Service and returns what it wrote. A Service that
// gets its two addresses back gets them one after the other.
func (r *Reconciler) applyService(ctx context.Context, desired *corev1.Service, changes []plan.Change[*corev1.Service]) ([]*corev1.Service, error) {
	written, err := apply.Do(ctx, r.Writer, changes)
	if err != nil || len(written) == 0 || len(written[0].Spec.ClusterIPs) >= len(desired.Spec.ClusterIPs) {
		return written, err
	}
	completed, err := apply.Do(ctx, r.Writer, plan.Service(desired, written))
	return append(written, completed...), err
}

// standing returns the derived Services as they stand after some of them were written.
func standing(observed, written []*corev1.Service) []*corev1.Service {
	if len(written) > 0 {
		return written[len(written)-1:]
	}
	return observed
}

// taken reports whether another Service has one of the addresses that a derived Service is to have. An address that no
// Service has is free, or will be in a moment: the API server releases it only after it has deleted the Service that
// had it.
func (r *Reconciler) taken(ctx context.Context, desired *corev1.Service) (bool, error) {
	services := &corev1.ServiceList{}
	if err := r.Member.List(ctx, services, client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("list Services: %w", err)
	}
	return slices.ContainsFunc(services.Items, func(s corev1.Service) bool {
		another := s.Namespace != desired.Namespace || s.Name != desired.Name
		return another && slices.ContainsFunc(s.Spec.ClusterIPs, func(ip string) bool { return slices.Contains(desired.Spec.ClusterIPs, ip) })
	}), nil
}
