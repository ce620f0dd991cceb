// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "context"

// stage has a number of lanes that work side by side. What is to be done for one subject is done in one lane, in order.
type stage struct {
	lanes []chan func(context.Context) error
}

// backlog is more than a round puts into a lane.
const backlog = 1 << 16

// newStage starts a stage that works until ctx ends, or a job fails, which ends the floor.
func (b *bare) newStage(ctx context.Context) *stage {
	s := &stage{}
	for range b.width {
		lane := make(chan func(context.Context) error, backlog)
		s.lanes = append(s.lanes, lane)
		b.done.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case job := <-lane:
					if err := job(ctx); err != nil && ctx.Err() == nil {
						b.fail(err)
						return
					}
				}
			}
		})
	}
	return s
}

// do gives a lane something to do; nothing where the subject is none of ours.
func (s *stage) do(subject *bareSubject, job func(context.Context) error) {
	if subject == nil {
		return
	}
	s.lanes[subject.index%len(s.lanes)] <- job
}
