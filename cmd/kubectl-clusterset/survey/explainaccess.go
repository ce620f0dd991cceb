// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"slices"

	"github.com/tombolo-mcs/tombolo/internal/access"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// ExplainedAccess are the rules of a cluster about who may use a service through gateways.
type ExplainedAccess struct {
	Cluster clusterset.ClusterID `json:"cluster"`
	// Direction is Export if the rules decide about clients of other clusters, and Import if they decide about those of this cluster.
	Direction policyv1alpha1.Direction `json:"direction"`
	// Rules are in the order in which they are evaluated.
	Rules []ExplainedRule `json:"rules,omitempty"`
	// Reason is why the rules are not known, or which of them are not valid.
	Reason string `json:"reason,omitempty"`
}

// ExplainedRule is a rule that decides about clients.
type ExplainedRule struct {
	Rule string `json:"rule"`
	// Action is Accept, Deny or Pass.
	Action  string `json:"action"`
	Clients string `json:"clients"`
}

// ExplainAccess returns the rules that decide who may use a service through gateways: those of each exporter about its export, and of each
// reachable cluster about its import. They are sorted by cluster; a cluster without rules is left out.
func (c *Clusterset) ExplainAccess(ctx context.Context, key clusterset.ServiceKey) []ExplainedAccess {
	var exporters []clusterset.ClusterID
	for _, export := range c.Hub.Records.Service(key).Exports {
		exporters = append(exporters, export.Cluster)
	}
	members := c.Hub.Records.Members()
	if !c.Hub.IsRead() { // then it is not known which members export it
		for _, m := range c.Members {
			members, exporters = append(members, m.ID), append(exporters, m.ID)
		}
	}
	slices.Sort(members)
	var result []ExplainedAccess
	add := func(a ExplainedAccess) {
		if a.Reason != "" || len(a.Rules) != 1 || a.Rules[0].Rule != access.NoRule {
			result = append(result, a)
		}
	}
	for _, id := range members {
		if slices.Contains(exporters, id) {
			add(c.explainAccess(ctx, id, policyv1alpha1.DirectionExport, key))
		}
		if c.Member(id) != nil {
			add(c.explainAccess(ctx, id, policyv1alpha1.DirectionImport, key))
		}
	}
	return result
}

func (c *Clusterset) explainAccess(ctx context.Context, id clusterset.ClusterID, direction policyv1alpha1.Direction, key clusterset.ServiceKey) ExplainedAccess {
	rules, service, err := c.rulesOf(ctx, id, direction, key)
	result := ExplainedAccess{Cluster: id, Direction: direction, Reason: reasonOf(err)}
	if rules == nil {
		return result
	}
	for _, rule := range rules.Applying(service) {
		result.Rules = append(result.Rules, ExplainedRule(rule))
	}
	return result
}
