// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tombolo-mcs/tombolo/pkg/access"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/forward"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/wire"
)

// permissions returns who may use the service: all clients, as no policy is about the account of the client, though all are about its
// namespace, which costs most. It returns nil without rules.
func (c roleConfig) permissions(role string) (*forward.Permissions, error) {
	if c.Policies == nil {
		return nil, nil
	}
	direction := policyv1alpha1.DirectionExport
	if role == importRole {
		direction = policyv1alpha1.DirectionImport
	}
	objects := access.Objects{Namespaces: map[string]labels.Set{"bench": nil}}
	for i := range *c.Policies {
		objects.Policies = append(objects.Policies, policyv1alpha1.ClusterServiceAccessPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("policy-", i)},
			Spec: policyv1alpha1.ClusterServiceAccessPolicySpec{
				Tier: policyv1alpha1.TierAdmin, Direction: direction, Action: policyv1alpha1.ActionDeny,
				Peers: []policyv1alpha1.Peer{{
					Namespaces: []policyv1alpha1.NamespaceName{"bench"}, ServiceAccounts: []policyv1alpha1.ObjectName{policyv1alpha1.ObjectName(fmt.Sprint("account-", i))},
				}},
			},
		})
	}
	rules, err := access.New(direction, objects)
	if err != nil {
		return nil, err
	}
	return &forward.Permissions{Denied: func(id clusterset.ClusterID, request wire.Open) *wire.Refusal {
		service := access.Service{Key: clusterset.ServiceKey{Namespace: request.Namespace, Name: request.Service}}
		client := access.Client{Cluster: id, Namespace: request.ClientNamespace, ServiceAccount: request.ServiceAccount}
		if verdict := rules.Decide(service, client); !verdict.Allowed {
			return &wire.Refusal{Code: wire.CodeDenied, Text: verdict.Rule}
		}
		return nil
	}}, nil
}
