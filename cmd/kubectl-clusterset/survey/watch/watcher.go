// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// watcher is the state of Watch.
type watcher struct {
	signal        chan struct{}
	found, cached survey.Clusterset
	clock         apiserver.Clock
	hub           *watchedServer
	members       []*watchedServer
	objects       []survey.MemberObjects
	// due is the time at which a member is silent unless its heartbeat was renewed.
	due time.Time
	// ids are the members on the hub when the objects were read.
	ids []clusterset.ClusterID
}

// changed wakes up Watch.
func (w *watcher) changed() {
	select {
	case w.signal <- struct{}{}:
	default:
	}
}

// start fills the caches of the hub and of all members, in parallel.
func (w *watcher) start(ctx context.Context) error {
	members, servers, errs := w.found.Members, make([]*watchedServer, len(w.found.Members)), make([]error, len(w.found.Members))
	var group sync.WaitGroup
	for i, m := range members {
		group.Go(func() {
			servers[i], errs[i] = watchServer(ctx, m.KubeContext.Config, m.Client, memberKinds(), w.changed)
		})
	}
	err := w.startHub(ctx)
	group.Wait()
	if err != nil {
		return err
	}
	w.found.Members, w.cached.Members, w.found.Unreached = nil, nil, slices.Clone(w.found.Unreached)
	for i, m := range members {
		if errs[i] != nil {
			w.found.Unreached = append(w.found.Unreached, survey.Unreached{Context: m.KubeContext.Name, Cluster: m.ID, Err: errs[i]})
			continue
		}
		cached := *m
		cached.Client = servers[i]
		w.found.Members = append(w.found.Members, m)
		w.cached.Members = append(w.cached.Members, &cached)
		w.members = append(w.members, servers[i])
	}
	w.objects = make([]survey.MemberObjects, len(w.members))
	return nil
}

// startHub fills the cache of the hub, unless the hub could not be read.
func (w *watcher) startHub(ctx context.Context) error {
	if !w.found.Hub.IsRead() {
		return nil
	}
	config := apiserver.Config(w.found.Hub.KubeContext.Config)
	config.Wrap(w.clock.Wrap)
	c, err := hub.Client(config)
	if err != nil {
		return fmt.Errorf("the hub: %w", err)
	}
	if w.hub, err = watchServer(ctx, config, c, hubKinds(), w.changed); err != nil {
		return fmt.Errorf("watch the hub at %s: %w", config.Host, err)
	}
	return nil
}

// observeHub reads the hub if it has changed, and returns why it does not answer, and false if it does.
func (w *watcher) observeHub(ctx context.Context) (Unanswered, bool) {
	if !w.found.Hub.IsRead() { // its problem says so
		w.due = time.Now().Add(survey.DefaultInterval)
		return Unanswered{}, false
	}
	if w.hub.stale.Swap(false) || !time.Now().Before(w.due) {
		w.readHub(ctx)
	}
	failure, fails := w.hub.unanswered(w.found.Hub.KubeContext.Name)
	if !fails { // otherwise its time is the time of its content
		now := *w.found.Hub
		now.Now = w.clock.Now()
		w.found.Hub, w.cached.Hub = &now, &now
	}
	return failure, fails
}

// observe reads what has changed.
func (w *watcher) observe(ctx context.Context) Observation {
	hubFailure, hubFails := w.observeHub(ctx)
	w.readMembers(ctx)
	if slices.ContainsFunc(w.members, func(s *watchedServer) bool { return s.stale.Load() }) {
		w.due = earlier(w.due, time.Now().Add(survey.DefaultInterval))
	}
	found, cached := w.found, w.cached
	result := Observation{
		Clusterset: &found, Cached: &cached, Objects: slices.Clone(w.objects), Status: assess.Assess(found.Hub, w.objects, found.Unreached, found.Unread...),
	}
	for i, s := range w.members {
		if u, failing := s.unanswered(found.Members[i].KubeContext.Name); failing {
			result.Unanswered = append(result.Unanswered, u)
		}
	}
	if hubFails {
		result.Unanswered = append(result.Unanswered, hubFailure)
	}
	return result
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// confirmTimeout limits the time of the request to the hub before members count as silent.
const confirmTimeout = 5 * time.Second

// readHub reads the hub from its cache. If members seem to be silent, it may be the connection to the hub that is interrupted, without an
// error so far, or its watches have not resumed: then the hub must confirm first that it has no later heartbeats. While it does not answer,
// its content and its time stay as they were.
func (w *watcher) readHub(ctx context.Context) {
	w.due = time.Now().Add(survey.DefaultInterval)
	snapshot, err := hub.Read(ctx, w.hub)
	if err != nil {
		return
	}
	h := survey.NewHub(w.found.Hub.KubeContext, snapshot, w.clock.Now())
	h.Version = w.found.Hub.Version
	lost := silentSince(w.found.Hub, h)
	if _, failing := w.hub.unanswered(""); failing || len(lost) > 0 {
		ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
		defer cancel()
		var live hubv1alpha1.HeartbeatList
		err := w.hub.Client.List(ctx, &live)
		w.hub.note(err)
		if err != nil || isBehind(h, lost, live.Items) {
			return
		}
	}
	w.due = time.Now().Add(untilSilence(h))
	w.found.Hub, w.cached.Hub = h, h
}

// readMembers reads the objects of the members that have changed, from their caches.
func (w *watcher) readMembers(ctx context.Context) {
	ids := w.found.Hub.Records.Members()
	slices.Sort(ids)
	all := !slices.Equal(ids, w.ids) // what gateways report is read for each other member
	w.ids = ids
	var group sync.WaitGroup
	for i, s := range w.members {
		if !s.stale.Swap(false) && !all {
			continue
		}
		group.Go(func() {
			read := w.cached.Members[i].ReadObjects(ctx, ids)
			if _, failing := s.unanswered(""); failing && len(read.Errs) > 0 && w.objects[i].ID != "" {
				return // what was read before remains until the API server answers
			}
			if len(read.Errs) > 0 {
				s.stale.Store(true) // it is read again when the hub is due
			}
			w.objects[i] = read
		})
	}
	group.Wait()
}
