// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/bench/report"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// fact is what can be complete of a subject in a cluster.
type fact int

const (
	ready    fact = 1 << iota // the ServiceImport has addresses and is Ready
	mirrored                  // the slice is there with its endpoints
	exported                  // the ServiceExport is Ready
)

// arrivals notes when the subjects are complete, as a user's watches see it. The same watches look at agents and floor.
type arrivals struct {
	mu       sync.Mutex
	clusters []*clusterArrivals
	want     int
	complete int
	done     chan struct{} // closed when all are complete
	times    []time.Time   // when each became complete
	feeds    []*feed
}

// clusterArrivals are those in one cluster.
type clusterArrivals struct {
	all   *arrivals
	id    clusterset.ClusterID
	facts map[string]fact // by service, of the subjects that are awaited
	need  fact
}

// watchArrivals returns when its watches are open. The subjects are awaited in every member.
func watchArrivals(ctx context.Context, w *world, subjects []*subject) (*arrivals, error) {
	a := &arrivals{want: len(subjects) * len(w.members), done: make(chan struct{})}
	for i, m := range w.members {
		need := ready | mirrored
		if i == 0 {
			need |= exported
		}
		if err := a.watch(ctx, m, need, subjects); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// watchImport returns when the watches of a member that is to import the subjects are open.
func watchImport(ctx context.Context, m *member, subjects []*subject) (*arrivals, error) {
	a := &arrivals{want: len(subjects), done: make(chan struct{})}
	err := a.watch(ctx, m, ready|mirrored, subjects)
	return a, err
}

func (a *arrivals) watch(ctx context.Context, m *member, need fact, subjects []*subject) error {
	c := &clusterArrivals{all: a, id: m.id, facts: make(map[string]fact, len(subjects)), need: need}
	for _, s := range subjects {
		c.facts[s.service.Name] = 0
	}
	a.clusters = append(a.clusters, c)
	for _, o := range []struct {
		list client.ObjectList
		tell func(client.Object)
	}{
		{&mcsv1beta1.ServiceImportList{}, c.imported}, {&discoveryv1.EndpointSliceList{}, c.sliced}, {&mcsv1beta1.ServiceExportList{}, c.exported},
	} {
		f, err := openFeed(ctx, m.kube, o.list, namespace, o.tell)
		if err != nil {
			return err
		}
		a.feeds = append(a.feeds, f)
	}
	return nil
}

func (c *clusterArrivals) imported(o client.Object) {
	i := o.(*mcsv1beta1.ServiceImport)
	if len(i.Spec.IPs) > 0 && meta.IsStatusConditionTrue(i.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)) {
		c.note(i.Name, ready)
	}
}

func (c *clusterArrivals) sliced(o client.Object) {
	s := o.(*discoveryv1.EndpointSlice)
	if s.Labels[discoveryv1.LabelManagedBy] == clusterset.ManagedBy && len(s.Endpoints) == perSlice {
		c.note(s.Labels[mcsv1beta1.LabelServiceName], mirrored)
	}
}

func (c *clusterArrivals) exported(o client.Object) {
	e := o.(*mcsv1beta1.ServiceExport)
	if meta.IsStatusConditionTrue(e.Status.Conditions, string(mcsv1beta1.ServiceExportConditionReady)) {
		c.note(e.Name, exported)
	}
}

func (c *clusterArrivals) note(service string, f fact) {
	a := c.all
	a.mu.Lock()
	defer a.mu.Unlock()
	before, awaited := c.facts[service]
	if !awaited { // of an earlier part of the run
		return
	}
	c.facts[service] = before | f
	if before&c.need == c.need || (before|f)&c.need != c.need {
		return
	}
	a.complete++
	a.times = append(a.times, time.Now())
	if a.complete == a.want {
		close(a.done)
	}
}

// took returns how long after a time the last subject was complete, once all are.
func (a *arrivals) took(began time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.times[len(a.times)-1].Sub(began)
}

// curve returns how many subjects were complete over the time.
func (a *arrivals) curve(began time.Time) []report.Point {
	a.mu.Lock()
	defer a.mu.Unlock()
	points := []report.Point{{}}
	for i, at := range a.times {
		points = append(points, report.Point{X: at.Sub(began).Seconds(), Y: 100 * float64(i+1) / float64(a.want)})
	}
	return points
}

// await returns when all are complete, or an error that says what is missing.
func (a *arrivals) await(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	select {
	case <-a.done:
		return nil
	case <-ctx.Done():
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var counts []string
	for _, c := range a.clusters {
		had := map[fact]int{}
		for _, f := range c.facts {
			for _, one := range []fact{ready, mirrored, exported} {
				had[one] += int(f & one / one)
			}
		}
		counts = append(counts, fmt.Sprintf("%s has %d imports, %d slices, %d exports", c.id, had[ready], had[mirrored], had[exported]))
	}
	return fmt.Errorf("%d of %d are complete, of which all should be within %s (%s): %w", a.complete, a.want, within, strings.Join(counts, "; "), ctx.Err())
}

// cutOff returns how often watches were cut off.
func cutOff(feeds []*feed) int {
	n := 0
	for _, f := range feeds {
		n += f.cutOff()
	}
	return n
}
