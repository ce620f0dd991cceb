// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/memberdns"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/phrase"
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
	Agent Presence
	// IsAgentNotReady is true if no pod of the agent is ready, for longer than a start takes.
	IsAgentNotReady bool

	Exports []mcsv1beta1.ServiceExport
	Imports []mcsv1beta1.ServiceImport
	// Aliases are the Services that have the endpoints of an import too; none if Services could not be read.
	Aliases []corev1.Service
	// Gaps are the Services that a label asks to export and that have no ServiceExport; none if Services could not be read.
	Gaps []LabelGap
	// Grants and Policies are its rules about access; none if it has not their kinds.
	Grants   []policyv1alpha1.ServiceExportGrant
	Policies []policyv1alpha1.ClusterServiceAccessPolicy
	// MissingRules are the kinds of rules that the cluster does not serve. Each agent has installed them.
	MissingRules []string
	// Namespaces is the policy for the namespaces into which it imports.
	Namespaces imports.NamespacePolicy
	// Gateways are what its gateways report of each other member; nil if it has no gateways.
	Gateways map[clusterset.ClusterID]GatewayReach
	// DNS is what its DNS does with the names of the clusterset.
	DNS memberdns.Configuration
	// Terminating are the namespaces that are being deleted: what is left in them is no problem.
	Terminating sets.Set[string]
	// Errs are why some of its objects could not be read; none if all were read.
	Errs []error
}

// Presence states whether an object exists.
type Presence string

// Values of Presence.
const (
	Present Presence = "Present"
	Missing Presence = "Missing"
	NotRead Presence = "NotRead"
)

// ReadObjects lists the exports and imports of the member, and reads what its gateways report of the other members. What cannot be read is
// left out, with the reasons in Errs.
func (m *Member) ReadObjects(ctx context.Context, others []clusterset.ClusterID) MemberObjects {
	s := MemberObjects{ID: m.ID, Context: m.KubeContext.Name, Agent: Missing, Namespaces: m.Namespaces()}
	switch {
	case m.Agent != nil:
		s.Agent, s.IsAgentNotReady = Present, hasNoReadyPod(m.Agent, time.Now())
	case m.SettingsErr != nil:
		s.Agent = NotRead
	}
	ctx, cancel := context.WithTimeout(ctx, ReadTimeout)
	defer cancel()
	s.note(m.SettingsErr)
	m.readServices(ctx, &s)
	rules, err := caches.AccessObjects(ctx, m.Client)
	s.note(err)
	s.Grants, s.Policies, s.MissingRules = rules.Grants, rules.Policies, m.missingRules()
	g, err := m.ReadGateways(ctx)
	s.note(err)
	s.Gateways = g.reachOfAll(others)
	s.DNS = m.DNSConfiguration(ctx)
	return s
}

// missingRules returns the kinds of rules that the cluster does not serve.
func (m *Member) missingRules() (kinds []string) {
	for _, kind := range []string{"ClusterServiceAccessPolicy", "ServiceExportGrant", "ServiceImportRoutingPolicy"} {
		_, err := m.Client.RESTMapper().RESTMapping(policyv1alpha1.GroupVersion.WithKind(kind).GroupKind(), policyv1alpha1.GroupVersion.Version)
		if meta.IsNoMatchError(err) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// note keeps an error of reading.
func (s *MemberObjects) note(err error) {
	if err != nil {
		s.Errs = append(s.Errs, err)
	}
}

// Err returns an error with all Errs; nil if there are none.
func (s *MemberObjects) Err() error {
	if len(s.Errs) == 0 {
		return nil
	}
	return fmt.Errorf("cluster %s: %w", s.ID, errors.Join(s.Errs...))
}

// readServices lists the exports, the imports, the Services and the namespaces.
func (m *Member) readServices(ctx context.Context, s *MemberObjects) {
	exported, imported := &mcsv1beta1.ServiceExportList{}, &mcsv1beta1.ServiceImportList{}
	services, namespaces := &corev1.ServiceList{}, &corev1.NamespaceList{}
	for _, list := range []client.ObjectList{exported, imported, services, namespaces} {
		if err := m.Client.List(ctx, list); err != nil {
			s.note(fmt.Errorf("list %s: %w", clusterset.KindOf(list), err))
		}
	}
	s.Terminating = terminating(namespaces.Items)
	s.Exports, s.Imports = exported.Items, imported.Items
	for _, service := range services.Items {
		if clusterset.IsAlias(&service) {
			s.Aliases = append(s.Aliases, service)
		}
	}
	if len(s.Errs) == 0 { // otherwise it is not known which exports are missing
		s.Gaps = m.allGaps(namespaces.Items, services.Items, s.Exports)
	}
}

// terminating returns the names of the namespaces that are being deleted.
func terminating(namespaces []corev1.Namespace) sets.Set[string] {
	result := sets.New[string]()
	for i := range namespaces {
		if !namespaces[i].DeletionTimestamp.IsZero() {
			result.Insert(namespaces[i].Name)
		}
	}
	return result
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

// DNSConfiguration reads what the DNS of the member does with the names of the clusterset.
func (m *Member) DNSConfiguration(ctx context.Context) memberdns.Configuration {
	return memberdns.Read(ctx, m.Client, m.Settings.ServiceCIDRs, m.KubeContext.Name)
}

// readyTimeout is how long a Deployment without a ready pod is no problem: longer than a start takes.
const readyTimeout = 2 * time.Minute

// hasNoReadyPod reports whether a Deployment has had too few ready pods for readyTimeout, and has none now.
func hasNoReadyPod(deployment *appsv1.Deployment, now time.Time) bool {
	return deployment.Status.ReadyReplicas == 0 && slices.ContainsFunc(deployment.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionFalse && now.Sub(c.LastTransitionTime.Time) >= readyTimeout
	})
}

// Failures explains Errs, with one failure for each next step.
func (s *MemberObjects) Failures() []apiserver.Failure {
	var result []apiserver.Failure
	messages := map[string][]string{}
	for _, err := range s.Errs {
		failure := apiserver.FailureOf(err, s.Context)
		if len(messages[failure.Next]) == 0 {
			result = append(result, failure)
		}
		if !slices.Contains(messages[failure.Next], failure.Message) {
			messages[failure.Next] = append(messages[failure.Next], failure.Message)
		}
	}
	for i := range result {
		result[i].Message = phrase.FirstThree(messages[result[i].Next])
	}
	return result
}
