// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trace follows one service from its Service to its DNS answer, through the hub and every member that can be read, and reports where
// it is broken. What it follows are the results of the agents' controllers, from package dryrun.
package trace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/dryrun"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/memberdns"
	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Hop is a stage of the data flow from the pods of a service to its DNS name in other clusters.
type Hop string

// The hops, in the order of the data flow.
const (
	HopHub        Hop = "hub" // the hub could not be read
	HopMembership Hop = "membership"
	HopExport     Hop = "ServiceExport"
	HopService    Hop = "Service"
	HopEndpoints  Hop = "endpoints"
	HopAgent      Hop = "agent"
	HopRecord     Hop = "hub record"
	HopHeartbeat  Hop = "heartbeat"
	HopNamespace  Hop = "namespace"
	HopImport     Hop = "ServiceImport"
	HopGateway    Hop = "gateway"
	HopDerived    Hop = "derived Service"
	HopSlices     Hop = "mirrored slices"
	HopProxy      Hop = "kube-proxy"
	HopAccess     Hop = "access"
	HopDNS        Hop = "DNS"
	HopAlias      Hop = "alias"
)

// Health is the result of a check of a hop.
type Health string

// Values of Health.
const (
	OK Health = "ok"
	// Note is worth knowing, but does not break the service.
	Note   Health = "note"
	Broken Health = "broken"
	// NotKnown is something that was seen, and of which this program does not know whether it breaks the service.
	NotKnown Health = "not known"
)

// Step is the result of one hop in one cluster.
type Step struct {
	// Cluster is empty if the step is about all clusters.
	Cluster clusterset.ClusterID `json:"cluster,omitempty"`
	Hop     Hop                  `json:"hop"`
	State   Health               `json:"state"`
	Found   string               `json:"found"`
	// Fix is what to do; empty if there is nothing to do.
	Fix string `json:"fix,omitempty"`
}

// Result holds the steps of a trace.
type Result struct {
	Key   clusterset.ServiceKey `json:"service"`
	Steps []Step                `json:"steps"`
}

// Broken returns the first broken step, nil if there is none. It may be the cause of later ones.
func (t Result) Broken() *Step { return t.first(func(s Health) bool { return s == Broken }) }

// NotKnown returns the first step that neither works nor is broken, nil if there is none.
func (t Result) NotKnown() *Step {
	return t.first(func(s Health) bool { return s != OK && s != Note && s != Broken })
}

// IsIncomplete reports whether the hub or a cluster could not be read.
func (t Result) IsIncomplete() bool {
	return slices.ContainsFunc(t.Steps, func(s Step) bool { return s.Hop == HopHub || s.Hop == HopMembership && s.State == NotKnown })
}

func (t Result) first(is func(Health) bool) *Step {
	i := slices.IndexFunc(t.Steps, func(s Step) bool { return is(s.State) })
	if i < 0 {
		return nil
	}
	return &t.Steps[i]
}

// Options select the service to trace, and how.
type Options struct {
	Clusterset *survey.Clusterset
	Key        clusterset.ServiceKey
	// From is the member that must import the service. Elsewhere, a missing namespace is only a note. It may be empty.
	From clusterset.ClusterID
	// Client is whose access is checked. If it is empty, the rules that can deny clients are named.
	Client access.Client
	// Resolve returns the DNS servers of a member; none if the DNS is not to be checked.
	Resolve func(context.Context, *survey.Member) ([]memberdns.Resolver, error)
	// Settle is the time after which a broken hop is reported: changes take some time to reach all clusters.
	Settle time.Duration
}

// DefaultSettle is the value of Options.Settle unless the user sets another.
const DefaultSettle = 3 * time.Second

// settleInterval is the time between two checks of a broken service.
const settleInterval = 500 * time.Millisecond

// Run follows a service through every reachable member. It does not report faults that disappear within o.Settle. It changes
// nothing: the writes of the agents are sent as dry-run requests. It follows an alias to its import.
func Run(ctx context.Context, o Options) (Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t := &tracer{Options: o, hub: o.Clusterset.Hub}
	t.readMembers(ctx)
	if err := t.followAlias(ctx); err != nil {
		return Result{}, err
	}
	var result Result
	err := wait.PollUntilContextTimeout(ctx, settleInterval, max(o.Settle, settleInterval), true, func(settling context.Context) (bool, error) {
		reading, cancel := context.WithTimeout(ctx, survey.ReadTimeout) // a slow API server may take longer than the service has time to settle
		defer cancel()
		steps, err := t.traceOnce(reading)
		if err != nil {
			return false, err
		}
		result = Result{o.Key, steps}
		if result.Broken() == nil && result.NotKnown() == nil || !t.hub.IsRead() { // without a hub, nothing shows that it settles
			return true, nil
		}
		if settling.Err() != nil {
			return false, nil
		}
		t.refresh(reading)
		return false, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && (result.Broken() != nil || result.NotKnown() != nil) {
		return result, nil
	}
	return result, err
}

// tracer is the state of a trace.
type tracer struct {
	Options
	hub   *survey.Hub
	views []*dryrun.View
	// unread has a step for each cluster that could not be read.
	unread []Step
	// alias is the Service that is traced. If it is only an alias, Key is its import.
	alias   clusterset.ServiceKey
	follows following
	// exported is true if any cluster exports the service.
	exported bool
	// grants are the names of the grants of the service in the clusters that can be read.
	grants map[clusterset.ClusterID][]string
}

// traceOnce follows the service once: first in the exporters, then in the importers.
func (t *tracer) traceOnce(ctx context.Context) ([]Step, error) {
	var members []*memberTrace
	t.grants = map[clusterset.ClusterID][]string{}
	steps := slices.Concat(t.hubSteps(), t.unread, t.nonMembers())
	for _, view := range t.views {
		v, err := t.traceMember(ctx, view)
		switch {
		case err != nil && context.Cause(ctx) != nil:
			return nil, err
		case err != nil:
			steps = append(steps, unreadStep(view.Member, err))
			continue
		}
		members = append(members, v)
		t.grants[v.id()] = v.grants
	}
	if t.follows == followsNothing {
		for _, v := range members {
			steps = append(steps, v.aliasSteps(t)...)
		}
		return steps, nil
	}
	t.exported = len(t.hub.Records.Service(t.Key).Exports) > 0
	for _, v := range members {
		steps = append(steps, v.exportSteps(t.hub)...)
		t.exported = t.exported || v.Sources.Local != nil || !t.hub.IsRead() && v.serviceImport != nil
	}
	steps = append(steps, t.unreachableExporters(members)...)
	for _, v := range members {
		steps = append(steps, v.gapSteps(t)...)
	}
	if !t.exported && t.hub.IsRead() && !slices.ContainsFunc(steps, func(s Step) bool { return s.State == Broken }) {
		steps = append(steps, t.notExported(ctx, members))
	}
	downgradeEndpointSteps(steps)
	for _, v := range members {
		steps = append(append(steps, v.importSteps(t)...), v.aliasSteps(t)...)
	}
	steps = append(steps, t.traceAccess(ctx)...)
	return append(steps, unseen(steps)...), nil
}

// unseen returns a step if no cluster was seen that imports the service, and nothing says why: then nothing shows that it works.
func unseen(steps []Step) []Step {
	if slices.ContainsFunc(steps, func(s Step) bool { return s.State == Broken || s.State == OK && s.Hop == HopImport }) {
		return nil
	}
	return []Step{{Hop: HopImport, State: NotKnown, Found: "none of the clusters that were read imports it", Fix: "pass the contexts of the clusters in which it is used (--contexts or --all-contexts)"}}
}

// downgradeEndpointSteps turns missing endpoints of one exporter into a note if another exporter has ready ones.
func downgradeEndpointSteps(steps []Step) {
	some := slices.ContainsFunc(steps, func(s Step) bool { return s.Hop == HopEndpoints && s.State == OK })
	for i := range steps {
		if some && steps[i].Hop == HopEndpoints && steps[i].State == Broken {
			steps[i].State = Note
		}
	}
}

// nonMembers returns a step for each cluster that names this clusterset but is not a member.
func (t *tracer) nonMembers() []Step {
	var steps []Step
	for _, u := range t.Clusterset.Unreached {
		if u.Cluster == "" {
			continue
		}
		steps = append(steps, Step{
			u.Cluster, HopMembership, Broken, fmt.Sprintf("context %s: %v", u.Context, u.Err),
			fmt.Sprintf("have it join: kubectl clusterset join --context %s --hub-context %s --cluster-id %s", u.Context, t.hub.KubeContext.Name, u.Cluster),
		})
	}
	return steps
}

// unreachableExporters returns a step for each exporter of which only the records on the hub can be read.
func (t *tracer) unreachableExporters(members []*memberTrace) []Step {
	var steps []Step
	for _, export := range t.hub.Records.Service(t.Key).Exports {
		if slices.ContainsFunc(members, func(v *memberTrace) bool { return v.id() == export.Cluster }) {
			continue
		}
		step := Step{export.Cluster, HopRecord, Note, "exports it; none of the contexts that were read leads to this cluster, so only its records on the hub are known", ""}
		if last := t.hub.LastHeartbeat(export.Cluster); last.State() != survey.StateConnected {
			step.Found += "; " + last.String()
		}
		steps = append(steps, step)
	}
	return steps
}

// notExported returns a step for a service that no cluster exports. It names a cluster that has the Service.
func (t *tracer) notExported(ctx context.Context, members []*memberTrace) Step {
	step := Step{Hop: HopExport, State: Broken, Found: "no cluster exports it", Fix: "create the Service, and then a ServiceExport beside it"}
	for _, v := range members {
		if v.hasService(ctx) {
			step.Found = fmt.Sprintf("no cluster exports it, though %s has the Service", v.id())
			step.Fix = fmt.Sprintf("kubectl clusterset export %s --namespace %s --context %s", t.Key.Name, t.Key.Namespace, v.view.Member.KubeContext.Name)
			return step
		}
	}
	return step
}
