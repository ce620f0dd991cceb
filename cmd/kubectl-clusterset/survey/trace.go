// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Hop is a station on the way of a service from the cluster that has its pods to the name that others ask for.
type Hop string

// The hops, in the order of the way.
const (
	HopMembership Hop = "membership"
	HopExport     Hop = "ServiceExport"
	HopService    Hop = "Service"
	HopEndpoints  Hop = "endpoints"
	HopAgent      Hop = "agent"
	HopRecord     Hop = "hub record"
	HopHeartbeat  Hop = "heartbeat"
	HopNamespace  Hop = "namespace"
	HopImport     Hop = "ServiceImport"
	HopDerived    Hop = "derived Service"
	HopSlices     Hop = "mirrored slices"
	HopProxy      Hop = "kube-proxy"
	HopDNS        Hop = "DNS"
)

// Health says how a hop is.
type Health string

// How a hop can be.
const (
	OK Health = "ok"
	// Note: something that a person should know; the service works all the same, as far as this hop goes.
	Note   Health = "note"
	Broken Health = "broken"
)

// Step is what was found at one hop in one cluster.
type Step struct {
	// Cluster is where; empty where it is about all of them.
	Cluster clusterset.ClusterID `json:"cluster,omitempty"`
	Hop     Hop                  `json:"hop"`
	State   Health               `json:"state"`
	Found   string               `json:"found"`
	// Fix is what to do; empty where there is nothing to do.
	Fix string `json:"fix,omitempty"`
}

// Traced is the way of a service, as far as it could be followed.
type Traced struct {
	Key   clusterset.ServiceKey `json:"service"`
	Steps []Step                `json:"steps"`
}

// Broken returns the first broken hop, nil where there is none: what comes after it may be broken because of it.
func (t Traced) Broken() *Step {
	for i := range t.Steps {
		if t.Steps[i].State == Broken {
			return &t.Steps[i]
		}
	}
	return nil
}

// Tracing says what to follow, and from where.
type Tracing struct {
	Clusterset *Clusterset
	Key        clusterset.ServiceKey
	// From is the member in which the service is wanted. Elsewhere it need not be imported. It may be empty.
	From clusterset.ClusterID
	// Resolve returns all who answer DNS questions in a member; none where the question is not to be asked.
	Resolve func(context.Context, *Member) ([]Resolver, error)
	// Settle is how long what is found broken may take to mend itself: changes are on their way all the time.
	Settle time.Duration
}

// settleStep is how often what is broken is looked at again.
const settleStep = 500 * time.Millisecond

// Trace follows a service through every member that can be reached. What is broken at first and mends itself within
// o.Settle is not reported. It changes nothing: what agents would write, API servers are asked to judge.
func Trace(ctx context.Context, o Tracing) (Traced, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &tracer{Tracing: o, hub: o.Clusterset.Hub}
	if err := t.look(ctx); err != nil {
		return Traced{}, err
	}
	var result Traced
	err := wait.PollUntilContextTimeout(ctx, settleStep, max(o.Settle, settleStep), true, func(ctx context.Context) (bool, error) {
		steps, err := t.round(ctx)
		if err != nil {
			return false, err
		}
		result = Traced{o.Key, steps}
		if result.Broken() == nil {
			return true, nil
		}
		return false, t.refresh(ctx)
	})
	if errors.Is(err, context.DeadlineExceeded) && result.Broken() != nil {
		return result, nil
	}
	return result, err
}

// tracer is a trace under way.
type tracer struct {
	Tracing
	hub   *Hub
	looks []*Look
	// exported says whether anybody exports the service.
	exported bool
}

// look opens all members. One that cannot be read is a broken hop and no reason to stop.
func (t *tracer) look(ctx context.Context) error {
	for _, m := range t.Clusterset.Members {
		l, err := m.Look(ctx, t.hub, t.Key.Namespace)
		if err != nil {
			return err
		}
		t.looks = append(t.looks, l)
	}
	return nil
}

// refresh reads the hub again.
func (t *tracer) refresh(ctx context.Context) error {
	h, err := ReadHub(ctx, t.hub.Place)
	if err != nil {
		return err
	}
	t.hub = h
	for _, l := range t.looks {
		l.Against(h)
	}
	return nil
}

// round follows the service once: first where it comes from, then where it goes to.
func (t *tracer) round(ctx context.Context) ([]Step, error) {
	views := make([]*view, len(t.looks))
	for i, l := range t.looks {
		v, err := t.view(ctx, l)
		if err != nil {
			return nil, err
		}
		views[i] = v
	}
	steps := t.strangers()
	t.exported = len(t.hub.Records.Service(t.Key).Exports) > 0
	for _, v := range views {
		steps = append(steps, v.exporting(t.hub)...)
		t.exported = t.exported || v.Known.Local != nil
	}
	steps = append(steps, t.unreachable(views)...)
	if !t.exported && !slices.ContainsFunc(steps, func(s Step) bool { return s.State == Broken }) {
		steps = append(steps, t.nobody(ctx, views))
	}
	excuse(steps)
	for _, v := range views {
		steps = append(steps, v.importing(t)...)
	}
	return steps, nil
}

// excuse makes the lack of endpoints in one exporter a note where another has some.
func excuse(steps []Step) {
	some := slices.ContainsFunc(steps, func(s Step) bool { return s.Hop == HopEndpoints && s.State == OK })
	for i := range steps {
		if some && steps[i].Hop == HopEndpoints && steps[i].State == Broken {
			steps[i].State = Note
		}
	}
}

// strangers returns the clusters that should be members and are not.
func (t *tracer) strangers() []Step {
	var steps []Step
	for _, u := range t.Clusterset.Unreached {
		if u.Cluster == "" {
			continue
		}
		steps = append(steps, Step{
			u.Cluster, HopMembership, Broken, fmt.Sprintf("context %s: %v", u.Place, u.Err),
			fmt.Sprintf("have it join: kubectl clusterset join --context %s --hub-context %s --cluster-id %s", u.Place, t.hub.Place.Name, u.Cluster),
		})
	}
	return steps
}

// unreachable returns the exporters of which only the records are known.
func (t *tracer) unreachable(views []*view) []Step {
	var steps []Step
	for _, export := range t.hub.Records.Service(t.Key).Exports {
		if slices.ContainsFunc(views, func(v *view) bool { return v.id() == export.Cluster }) {
			continue
		}
		step := Step{export.Cluster, HopRecord, Note, "exports it; none of the contexts leads to this cluster, so only its records on the hub are known", ""}
		if life := t.hub.lifeOf(export.Cluster); life.state() != StateConnected {
			step.Found += "; " + life.String()
		}
		steps = append(steps, step)
	}
	return steps
}

// nobody says that no cluster exports the service, and where there is one.
func (t *tracer) nobody(ctx context.Context, views []*view) Step {
	step := Step{Hop: HopExport, State: Broken, Found: "no cluster exports it", Fix: "create the Service, and then a ServiceExport beside it"}
	for _, v := range views {
		if v.hasService(ctx) {
			step.Found = fmt.Sprintf("no cluster exports it, though %s has the Service", v.id())
			step.Fix = fmt.Sprintf("kubectl clusterset export %s --namespace %s --context %s", t.Key.Name, t.Key.Namespace, v.look.Member.Place.Name)
			return step
		}
	}
	return step
}
