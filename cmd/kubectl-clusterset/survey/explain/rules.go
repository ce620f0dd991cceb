// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"slices"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/access"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// ClusterRules are the rules of a cluster about who may use a service through gateways.
type ClusterRules struct {
	Cluster clusterset.ClusterID `json:"cluster"`
	// Direction is Export if the rules decide about clients of other clusters, and Import if they decide about those of this cluster.
	Direction policyv1alpha1.Direction `json:"direction"`
	// Rules are in the order in which they are evaluated.
	Rules []Rule `json:"rules,omitempty"`
	// Reason is why the rules are not known, or which of them are not valid.
	Reason string `json:"reason,omitempty"`
}

// Rule is a rule that decides about clients.
type Rule struct {
	Rule string `json:"rule"`
	// Action is Accept, Deny or Pass.
	Action  string `json:"action"`
	Clients string `json:"clients"`
}

// Rules returns the rules that decide who may use a service through gateways: those of each exporter about its export, and of each
// reachable cluster about its import. They are sorted by cluster; a cluster without rules is left out.
func Rules(ctx context.Context, c *survey.Clusterset, key clusterset.ServiceKey) []ClusterRules {
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
	var result []ClusterRules
	add := func(a ClusterRules) {
		if a.Reason != "" || len(a.Rules) != 1 || a.Rules[0].Rule != access.NoRule {
			result = append(result, a)
		}
	}
	for _, id := range members {
		if slices.Contains(exporters, id) {
			add(explainAccess(ctx, c, id, policyv1alpha1.DirectionExport, key))
		}
		if c.Member(id) != nil {
			add(explainAccess(ctx, c, id, policyv1alpha1.DirectionImport, key))
		}
	}
	return result
}

func explainAccess(ctx context.Context, c *survey.Clusterset, id clusterset.ClusterID, direction policyv1alpha1.Direction, key clusterset.ServiceKey) ClusterRules {
	rules, service, err := rulesOf(ctx, c, id, direction, key)
	result := ClusterRules{Cluster: id, Direction: direction, Reason: reasonOf(err)}
	if rules == nil {
		return result
	}
	for _, rule := range rules.Applying(service) {
		result.Rules = append(result.Rules, Rule(rule))
	}
	return result
}
