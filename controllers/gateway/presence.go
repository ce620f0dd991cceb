// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// absenceGrace is the time for which the Service of the gateways, or its addresses, may be gone until the gateways count as withdrawn. A
// withdrawal closes all connections of the gateways, and a Service that is replaced is deleted and created again.
const absenceGrace = 10 * time.Second

// presence has the last known Service and addresses of the gateways.
type presence struct {
	service   *corev1.Service
	addresses []hubv1alpha1.GatewayAddress
	// serviceGone and addressesGone are since when there are none; zero if there are, or if this is not known yet.
	serviceGone, addressesGone time.Time
}

// withService returns the Service of the gateways: the one that exists, or the last known one during the grace, nil if none is known. until
// is the end of the grace; zero if there is no grace.
func (p *presence) withService(existing *corev1.Service, now time.Time) (service *corev1.Service, until time.Time) {
	until = grace(&p.serviceGone, existing != nil, now)
	if existing != nil || until.IsZero() {
		p.service = existing
	}
	return p.service, until
}

// withAddresses returns the addresses of the gateways, which are those before during the grace. until is its end; zero if there is no
// grace.
func (p *presence) withAddresses(existing []hubv1alpha1.GatewayAddress, now time.Time) (addresses []hubv1alpha1.GatewayAddress, until time.Time) {
	until = grace(&p.addressesGone, len(existing) > 0, now)
	if len(existing) > 0 || until.IsZero() {
		p.addresses = existing
	}
	return p.addresses, until
}

// grace notes since when something is gone, and returns when the grace ends; zero if it is there, or the grace is over.
func grace(gone *time.Time, exists bool, now time.Time) time.Time {
	switch {
	case exists:
		*gone = time.Time{}
		return time.Time{}
	case gone.IsZero() || now.Before(*gone): // the clock was set
		*gone = now
	}
	if until := gone.Add(absenceGrace); now.Before(until) {
		return until
	}
	return time.Time{}
}
