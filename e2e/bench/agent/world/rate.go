// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"
)

// changeWidth is how many changes are in flight at most.
const changeWidth = 64

// StartChanges calls change with 0, 1, 2 and so on, so many times per second, until stop. A busy machine makes fewer: only
// what was missed in the last tenth of a second is made up for, because a burst would not be a steady rate. stop waits for
// the changes in flight, and returns how many were made per second.
func StartChanges(ctx context.Context, perSecond float64, change func(ctx context.Context, i int) error) (stop func() (float64, error)) {
	limiter := rate.NewLimiter(rate.Limit(perSecond), max(1, int(perSecond/10)))
	limiter.AllowN(time.Now(), limiter.Burst()) // begin without a burst
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(changeWidth)
	starting, cancel := context.WithCancel(groupCtx)
	began, made, ended := time.Now(), 0, make(chan struct{})
	go func() {
		defer close(ended)
		for limiter.Wait(starting) == nil {
			i := made
			group.Go(func() error { return change(groupCtx, i) })
			made++
		}
	}()
	return func() (float64, error) {
		cancel()
		<-ended
		if err := group.Wait(); err != nil {
			return 0, fmt.Errorf("changes at a steady rate: %w", err)
		}
		return float64(made) / time.Since(began).Seconds(), ctx.Err()
	}
}
