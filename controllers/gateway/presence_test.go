// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// The Service of the gateways that is deleted and created again, with or without an address at once, is withdrawn only if it is gone for
// longer than the grace; its addresses likewise. A start of the agent counts as the beginning of an absence.
//
// spec: G4
func TestPresence(t *testing.T) {
	t.Parallel()
	const none, bare, full = "", "no address", "address"
	type step struct {
		after     time.Duration // since the first step
		exists    string
		service   bool
		addresses bool
		waits     time.Duration // until the end of the grace
	}
	for name, steps := range map[string][]step{
		"deleted and created": {
			{0, full, true, true, 0},
			{time.Minute, none, true, true, absenceGrace},
			{time.Minute + time.Second, none, true, true, absenceGrace - time.Second},
			{time.Minute + 2*time.Second, full, true, true, 0},
		},
		"its new address is there later": {
			{0, full, true, true, 0},
			{5 * time.Second, none, true, true, absenceGrace},
			{6 * time.Second, bare, true, true, absenceGrace - time.Second},
			{12 * time.Second, full, true, true, 0},
			{13 * time.Second, bare, true, true, absenceGrace},
			{23 * time.Second, bare, true, false, 0},
		},
		"deleted for good": {
			{0, full, true, true, 0},
			{time.Second, none, true, true, absenceGrace},
			{time.Second + absenceGrace, none, false, false, 0},
			{time.Hour, none, false, false, 0},
			{2 * time.Hour, full, true, true, 0},
		},
		"deleted several times": {
			{0, full, true, true, 0},
			{time.Second, none, true, true, absenceGrace},
			{9 * time.Second, full, true, true, 0},
			{12 * time.Second, none, true, true, absenceGrace},
			{21 * time.Second, none, true, true, time.Second},
		},
		"an agent that starts without it": {
			{0, none, false, false, absenceGrace}, {3 * time.Second, full, true, true, 0},
		},
		"a cluster without gateways":   {{0, none, false, false, absenceGrace}, {absenceGrace, none, false, false, 0}},
		"a cluster without an address": {{0, bare, true, false, absenceGrace}, {absenceGrace, bare, true, false, 0}},
		"a clock that is set back":     {{0, full, true, true, 0}, {time.Hour, none, true, true, absenceGrace}, {0, none, true, true, absenceGrace}, {absenceGrace, none, false, false, 0}},
	} {
		start, p := time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC), &presence{}
		for i, s := range steps {
			now := start.Add(s.after)
			var existing *corev1.Service
			var address []hubv1alpha1.GatewayAddress
			if s.exists != none {
				existing = &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "gateways"}}
			}
			if s.exists == full {
				address = []hubv1alpha1.GatewayAddress{{Host: "198.51.100.1", Port: 443}}
			}
			service, until := p.withService(existing, now)
			addresses, addressesUntil := p.withAddresses(address, now)
			if until.IsZero() {
				until = addressesUntil
			}
			waits := time.Duration(0)
			if !until.IsZero() {
				waits = until.Sub(now)
			}
			got := step{s.after, s.exists, service != nil, len(addresses) > 0, waits}
			if got != s {
				t.Errorf("%s: step %d: %+v, want %+v", name, i, got, s)
			}
		}
	}
}
