// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"
	"slices"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/dryrun"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/explain"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/phrase"
	"github.com/tombolo-mcs/tombolo/internal/access"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// traceAccess returns the steps about a client that uses a service through gateways. If no client is given, a step of each cluster that has
// gateways names the rules by which they can deny clients. There are none if no cluster exports the service.
func (t *tracer) traceAccess(ctx context.Context) []Step {
	if !t.exported {
		return nil
	}
	current := *t.Clusterset
	current.Hub = t.hub
	if t.Client != (access.Client{}) {
		isExporter := func(e clusterset.Export) bool { return e.Cluster == t.Client.Cluster }
		return accessSteps(t.Client, explain.CanConnect(ctx, &current, t.Key, t.Client), slices.ContainsFunc(t.hub.Records.Service(t.Key).Exports, isExporter))
	}
	return denyingSteps(explain.Rules(ctx, &current, t.Key), t.hasGateways)
}

// hasGateways reports whether a cluster that was read has gateways.
func (t *tracer) hasGateways(id clusterset.ClusterID) bool {
	return slices.ContainsFunc(t.views, func(v *dryrun.View) bool { return v.Member.ID == id && v.Gateways.Exist })
}

// denyingSteps returns a step for each cluster whose gateways can deny clients.
func denyingSteps(explained []explain.ClusterRules, hasGateways func(clusterset.ClusterID) bool) []Step {
	var steps []Step
	for _, a := range explained {
		if !hasGateways(a.Cluster) {
			continue // nothing enforces its rules
		}
		var rules []string
		for _, r := range a.Rules {
			if r.Action == string(policyv1alpha1.ActionDeny) {
				rules = append(rules, r.Rule)
			}
		}
		if len(rules) > 0 {
			steps = append(steps, Step{a.Cluster, HopAccess, Note, "its gateways can deny clients: " + phrase.FirstThree(rules) + "; --client checks one", ""})
		}
	}
	return steps
}

// accessSteps returns the steps of a client. That one exporter denies it breaks the service only if no other one serves it.
func accessSteps(client access.Client, verdicts []explain.Access, isLocal bool) []Step {
	who := client.Namespace + "/" + client.ServiceAccount
	served := isLocal
	var steps []Step
	for _, a := range verdicts {
		step := Step{Cluster: client.Cluster, Hop: HopAccess, State: OK}
		switch a.Verdict {
		case explain.Denied:
			step = deniedStep(client, a)
			step.Found = who + " " + step.Found
		case explain.Allowed:
			step.Found = who + " may use it from " + string(a.Exporter) + "; by its own cluster: " + a.ImportRule + "; by the exporter: " + a.ExportRule
		case explain.NotEnforced:
			step.Found = who + " may use it from " + string(a.Exporter) + ": " + a.Reason
		default:
			step.State, step.Found = Note, "it is not known whether "+who+" may use it from "+string(a.Exporter)+": "+a.Reason
		}
		served = served || a.Verdict != explain.Denied
		steps = append(steps, step)
	}
	for i := range steps {
		if served && steps[i].State == Broken {
			steps[i].State = Note
		}
	}
	return steps
}

// deniedStep returns the step of a client that is denied.
func deniedStep(client access.Client, a explain.Access) Step {
	by, rule := a.Exporter, a.ExportRule
	if rule == "" {
		by, rule = client.Cluster, a.ImportRule
	}
	step := Step{client.Cluster, HopAccess, Broken, fmt.Sprintf("is denied the endpoints of %s by %s: %s", a.Exporter, by, rule), ""}
	step.Fix = fmt.Sprintf("see which rules %s has: kubectl clusterset explain, or kubectl get serviceexportgrants,clusterserviceaccesspolicies --all-namespaces", by)
	if rule == "" {
		step.Found, step.Fix = fmt.Sprintf("is denied the endpoints of %s: %s", a.Exporter, a.Reason), "see the message"
	}
	return step
}
