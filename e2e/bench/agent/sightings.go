// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// sightTimeout is how long a change may be on its way before the run counts as broken.
const sightTimeout = time.Minute

// sightings note when a watch in a cluster brings what is awaited: an address in a mirrored slice, or an import that is
// ready.
type sightings struct {
	mu      sync.Mutex
	awaited map[string]chan time.Time
	feeds   []*feed
}

// watchSightings returns when its watches are open.
func watchSightings(ctx context.Context, m *member) (*sightings, error) {
	s := &sightings{awaited: map[string]chan time.Time{}}
	slices, err := openFeed(ctx, m.kube, &discoveryv1.EndpointSliceList{}, namespace, func(o client.Object) {
		slice, now := o.(*discoveryv1.EndpointSlice), time.Now()
		if slice.Labels[discoveryv1.LabelManagedBy] != clusterset.ManagedBy {
			return
		}
		for _, e := range slice.Endpoints {
			s.see(e.Addresses[0], now)
		}
	})
	if err != nil {
		return nil, err
	}
	imports, err := openFeed(ctx, m.kube, &mcsv1beta1.ServiceImportList{}, namespace, func(o client.Object) {
		i, now := o.(*mcsv1beta1.ServiceImport), time.Now()
		if len(i.Spec.IPs) > 0 && meta.IsStatusConditionTrue(i.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)) {
			s.see(i.Name, now)
		}
	})
	s.feeds = []*feed{slices, imports}
	return s, err
}

func (s *sightings) see(what string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.awaited[what]; ok {
		delete(s.awaited, what)
		c <- at
	}
}

// expect has what is to come noted.
func (s *sightings) expect(what string) <-chan time.Time {
	c := make(chan time.Time, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awaited[what] = c
	return c
}

// lag returns how long after a time something was sighted, in milliseconds; 0 if before.
func lag(ctx context.Context, since time.Time, sighted <-chan time.Time) (float64, error) {
	ctx, cancel := context.WithTimeout(ctx, sightTimeout)
	defer cancel()
	select {
	case at := <-sighted:
		return max(0, milliseconds(at.Sub(since))), nil
	case <-ctx.Done():
		return 0, fmt.Errorf("a change has not arrived within %s: %w", sightTimeout, ctx.Err())
	}
}
