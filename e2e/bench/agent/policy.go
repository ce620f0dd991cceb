// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/bench/agent/world"
	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// who is measured: the importer's agent with a ServiceImportRoutingPolicy for all imports, and without one.
const preferring, plain = "policy", "none"

// policyChange is a change of endpoints.
const policyChange = "Policy/change=endpoints"

// withPolicy measures what a change of endpoints costs the importer's agent with a policy, beside the same without: CPU and requests. The
// last of three sources serves, so all of them are evaluated. Both are measured in each round, in alternating order.
func withPolicy(ctx context.Context, b *bench, w *world.World) (err error) {
	r := &fanoutRun{bench: b, changes: b.size}
	if r.services, err = world.CreateServices(ctx, b.log, w.Members[0], fewServices); err != nil {
		return err
	}
	stop, err := w.StartAgents(ctx, b.program)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop(), w.CleanUp(ctx)) }()
	if _, err := world.ExportAll(ctx, w, r.services); err != nil {
		return err
	}
	order := []string{plain, preferring}
	if _, _, err := r.workOnce(ctx, w); err != nil { // a process is slower at first
		return err
	}
	for round := range b.rounds {
		for _, who := range order {
			if err := r.prefer(ctx, w.Members[1], who); err != nil {
				return err
			}
			used, caused, err := r.workOnce(ctx, w)
			if err != nil {
				return err
			}
			requests := float64(caused.In(w.Members[1].Cluster.Name)) / float64(r.changes)
			b.log("round %d of %d, %s: %.3f ms of CPU and %.2f requests for a change", round+1, b.rounds, who, used, requests)
			b.Add(policyChange, who, "cpu-ms/change", used)
			b.Add(policyChange, who, "requests/change", requests)
		}
		slices.Reverse(order)
	}
	b.Compare(policyChange, "cpu-ms/change", preferring, plain, results.AtMost(1.1))
	b.Compare(policyChange, "requests/change", preferring, plain, results.AtMost(1.1))
	return r.prefer(ctx, w.Members[1], plain)
}

// prefer creates or deletes the importer's policy, and returns when it is in effect, or no more, in all imports.
func (r *fanoutRun) prefer(ctx context.Context, m *world.Member, who string) error {
	policy := &policyv1alpha1.ServiceImportRoutingPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: world.Namespace, Name: "locality"}}
	policy.Spec.Sources = []policyv1alpha1.Source{{SameCluster: true}, {SameProperty: "region"}, {Any: true}}
	err, effective := client.IgnoreNotFound(m.Admin.Delete(ctx, policy)), 0
	if who == preferring {
		err, effective = m.Admin.Create(ctx, policy), len(r.services)
	}
	if err != nil {
		return err
	}
	err = lab.Await(ctx, 100*time.Millisecond, world.RoundTimeout, func(ctx context.Context) error {
		all, found := &mcsv1beta1.ServiceImportList{}, 0
		err := m.Admin.List(ctx, all, client.InNamespace(world.Namespace))
		for _, i := range all.Items {
			if meta.FindStatusCondition(i.Status.Conditions, conditions.TypePreferred) != nil {
				found++
			}
		}
		if err == nil && found != effective {
			err = fmt.Errorf("%d imports have a policy, not %d", found, effective)
		}
		return err
	})
	if err != nil {
		return err
	}
	return m.Agent.AwaitIdle(ctx)
}
