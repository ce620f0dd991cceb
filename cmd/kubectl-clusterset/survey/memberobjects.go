// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/imports"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// MemberObjects are the objects of a reachable member.
type MemberObjects struct {
	ID      clusterset.ClusterID
	Context string
	// Agent is Present if the agent runs in the member, not beside the hub.
	Agent   Presence
	Exports []mcsv1beta1.ServiceExport
	Imports []mcsv1beta1.ServiceImport
	// Aliases are the Services that have the endpoints of an import too; none if the user may not read Services.
	Aliases []corev1.Service
	// Gaps are the Services that a label asks to export and that have no ServiceExport; none if the user may not read Services.
	Gaps []LabelGap
	// Grants and Policies are its rules about access; none if it has not their kinds.
	Grants   []policyv1alpha1.ServiceExportGrant
	Policies []policyv1alpha1.ClusterServiceAccessPolicy
	// Namespaces is the policy for the namespaces into which it imports.
	Namespaces imports.NamespacePolicy
	// Gateways are what its gateways report of each other member; nil if it has no gateways.
	Gateways map[clusterset.ClusterID]GatewayReach
	// Err is the error of reading its exports, imports, rules or gateways.
	Err error
}

// Presence states whether an object exists.
type Presence string

// Values of Presence.
const (
	Present Presence = "Present"
	Missing Presence = "Missing"
)

// ReadObjects lists the exports and imports of the member, and reads what its gateways report of the other members.
func (m *Member) ReadObjects(ctx context.Context, others []clusterset.ClusterID) MemberObjects {
	s := MemberObjects{ID: m.ID, Context: m.KubeContext.Name, Agent: Missing, Namespaces: m.namespaces()}
	if m.Agent != nil {
		s.Agent = Present
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	exported, imported := &mcsv1beta1.ServiceExportList{}, &mcsv1beta1.ServiceImportList{}
	for _, list := range []client.ObjectList{exported, imported} {
		if err := m.Client.List(ctx, list); err != nil {
			s.Err = fmt.Errorf("list %T of cluster %s: %w", list, m.ID, err)
			return s
		}
	}
	s.Exports, s.Imports = exported.Items, imported.Items
	services := &corev1.ServiceList{}
	if err := m.Client.List(ctx, services); err != nil && !apierrors.IsForbidden(err) {
		s.Err = fmt.Errorf("list Services of cluster %s: %w", m.ID, err)
		return s
	}
	var err error
	if s.Gaps, err = m.allGaps(ctx, services.Items, s.Exports); err != nil {
		s.Err = err
		return s
	}
	for _, service := range services.Items {
		if clusterset.IsAlias(&service) {
			s.Aliases = append(s.Aliases, service)
		}
	}
	rules, err := caches.AccessObjects(ctx, m.Client)
	if err != nil {
		s.Err = fmt.Errorf("cluster %s: %w", m.ID, err)
		return s
	}
	s.Grants, s.Policies = rules.Grants, rules.Policies
	g, err := m.readGateways(ctx)
	s.Gateways, s.Err = g.reachOfAll(others), err
	return s
}

// ReadObjects returns the objects of all reachable members, in their order. It reads them in parallel.
func (c *Clusterset) ReadObjects(ctx context.Context) []MemberObjects {
	result := make([]MemberObjects, len(c.Members))
	var group sync.WaitGroup
	for i, m := range c.Members {
		group.Go(func() { result[i] = m.ReadObjects(ctx, c.Hub.Records.Members()) })
	}
	group.Wait()
	return result
}

// Status reads all reachable members, and returns the status of the clusterset.
func (c *Clusterset) Status(ctx context.Context) Status {
	return Assess(c.Hub, c.ReadObjects(ctx), c.Unreached)
}
