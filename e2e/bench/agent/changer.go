// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// changer changes the endpoints of services in their cluster, as their pods would.
type changer struct {
	m      *member
	slices []*changing
}

type changing struct {
	mu    sync.Mutex
	slice *discoveryv1.EndpointSlice
}

// newChanger reads the slices as they stand.
func newChanger(ctx context.Context, m *member, subjects []*subject) (*changer, error) {
	c := &changer{m: m}
	for _, s := range subjects {
		slice := &discoveryv1.EndpointSlice{}
		if err := m.kube.Get(ctx, client.ObjectKeyFromObject(s.slice), slice); err != nil {
			return nil, err
		}
		c.slices = append(c.slices, &changing{slice: slice})
	}
	return c, nil
}

// change gives an endpoint of the i-th service an address that none has had for long. meanwhile is called with that
// address before it is written. It returns when the API server had taken it.
func (c *changer) change(ctx context.Context, i int, meanwhile func(address string)) (time.Time, error) {
	one := c.slices[i]
	one.mu.Lock()
	defer one.mu.Unlock()
	to := address(c.m.number, firstChange+int(c.m.changes.Add(1))%firstChange)
	if one.slice.Annotations == nil {
		one.slice.Annotations = map[string]string{}
	}
	one.slice.Annotations[corev1.EndpointsLastChangeTriggerTime] = time.Now().UTC().Format(time.RFC3339Nano)
	one.slice.Endpoints[0].Addresses[0] = to
	meanwhile(to)
	err := c.m.kube.Update(ctx, one.slice)
	return time.Now(), err
}

// background changes services, one after the other, so many a second, until the function that it returns is called. That
// lets those end that were begun, so that each slice here is as the API server has it, and returns how many a second it were.
func (c *changer) background(ctx context.Context, rate int) (stop func() (float64, error)) {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(setupWidth)
	began, made := time.Now(), 0
	told, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(time.Second / time.Duration(rate))
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-told:
				return
			case <-groupCtx.Done():
				return
			case <-tick.C:
			}
			made++
			group.Go(func() error {
				_, err := c.change(groupCtx, i%len(c.slices), func(string) {})
				return err
			})
		}
	}()
	return func() (float64, error) {
		elapsed := time.Since(began)
		close(told)
		<-ended
		if err := group.Wait(); err != nil {
			return 0, fmt.Errorf("changes in the background: %w", err)
		}
		return float64(made) / elapsed.Seconds(), nil
	}
}
