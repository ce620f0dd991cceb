// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Access says whether a client may use a service of one exporting cluster, and which rules decide.
type Access struct {
	Exporter clusterset.ClusterID `json:"exporter"`
	Verdict  AccessVerdict        `json:"verdict"`
	// ImportRule is the rule of the client's cluster, and ExportRule that of the exporter. They are empty if they are not asked.
	ImportRule string `json:"importRule,omitempty"`
	ExportRule string `json:"exportRule,omitempty"`
	// Reason is why the verdict is not known, or not enforced, or why no rule is asked.
	Reason string `json:"reason,omitempty"`
}

// AccessVerdict is a verdict about a client.
type AccessVerdict string

// The verdicts.
const (
	AccessAllowed AccessVerdict = "Allowed"
	AccessDenied  AccessVerdict = "Denied"
	// AccessNotEnforced: no gateway is between the client and the pods of the exporter.
	AccessNotEnforced AccessVerdict = "NotEnforced"
	// AccessUnknown: the rules of a cluster could not be read.
	AccessUnknown AccessVerdict = "Unknown"
)

// Access returns whether a client may use a service, for each cluster that exports it, sorted by cluster. Client.Cluster is the client's
// own. The result is empty if no cluster exports the service.
func (c *Clusterset) Access(ctx context.Context, key clusterset.ServiceKey, client access.Client) []Access {
	var result []Access
	for _, export := range c.Hub.Records.Service(key).Exports {
		switch {
		case export.Cluster == client.Cluster:
		case !export.IsGrantedTo(client.Cluster):
			result = append(result, Access{
				Exporter: export.Cluster, Verdict: AccessDenied,
				Reason: fmt.Sprintf("no ServiceExportGrant names cluster %s, so it does not import the service", client.Cluster),
			})
		default:
			result = append(result, c.accessTo(ctx, export.Cluster, key, client))
		}
	}
	return result
}

func (c *Clusterset) accessTo(ctx context.Context, exporter clusterset.ClusterID, key clusterset.ServiceKey, from access.Client) Access {
	result := Access{Exporter: exporter}
	if reach.IsDirect(c.Hub.Records.Cluster(from.Cluster), c.Hub.Records.Cluster(exporter)) {
		result.Verdict, result.Reason = AccessNotEnforced, "the pods of both clusters reach each other directly: use NetworkPolicies"
		return result
	}
	for _, id := range []clusterset.ClusterID{from.Cluster, exporter} {
		if member := c.Hub.Records.Member(id); member != nil && member.Spec.Suspended {
			result.Verdict, result.Reason = AccessDenied, fmt.Sprintf("cluster %s is suspended", id)
			return result
		}
	}
	imported, err := c.decide(ctx, from.Cluster, policyv1alpha1.DirectionImport, key, access.Client{
		Cluster: exporter, Namespace: from.Namespace, ServiceAccount: from.ServiceAccount,
	})
	result.ImportRule = imported.Rule
	if imported.Rule != "" && !imported.Allowed {
		result.Verdict, result.Reason = AccessDenied, reasonOf(err)
		return result
	}
	exported, exportErr := c.decide(ctx, exporter, policyv1alpha1.DirectionExport, key, from)
	result.ExportRule, result.Reason = exported.Rule, reasonOf(errors.Join(err, exportErr))
	switch {
	case exported.Rule != "" && !exported.Allowed:
		result.Verdict = AccessDenied
	case imported.Rule == "" || exported.Rule == "":
		result.Verdict = AccessUnknown
	default:
		result.Verdict = AccessAllowed
	}
	return result
}

func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// decide returns what the rules of a cluster say, and which of them are not valid. The verdict has no rule if they cannot be read.
func (c *Clusterset) decide(
	ctx context.Context, id clusterset.ClusterID, direction policyv1alpha1.Direction, key clusterset.ServiceKey, from access.Client,
) (access.Verdict, error) {
	rules, service, err := c.rulesOf(ctx, id, direction, key)
	if rules == nil {
		return access.Verdict{}, err
	}
	return rules.Decide(service, from), err
}

// rulesOf returns the rules of a cluster and what they decide about a service, and which of them are not valid; nil if they cannot be read.
func (c *Clusterset) rulesOf(
	ctx context.Context, id clusterset.ClusterID, direction policyv1alpha1.Direction, key clusterset.ServiceKey,
) (*access.Rules, access.Service, error) {
	service := access.Service{Key: key}
	m := c.Member(id)
	if m == nil {
		return nil, service, fmt.Errorf("none of the contexts that were read leads to cluster %s: its rules cannot be read", id)
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	objects, err := caches.AccessObjects(ctx, m.Client)
	if err != nil {
		return nil, service, fmt.Errorf("cluster %s: %w", id, err)
	}
	if direction == policyv1alpha1.DirectionExport {
		var export mcsv1beta1.ServiceExport
		err := m.Client.Get(ctx, key, &export)
		if client.IgnoreNotFound(err) != nil {
			return nil, service, fmt.Errorf("cluster %s: %w", id, err)
		}
		service.GrantedOnly = clusterset.IsGrantedOnly(&export)
	}
	objects.Properties = c.Hub.Records.Properties()
	rules, err := access.New(direction, objects)
	if err != nil {
		err = fmt.Errorf("cluster %s: %w", id, err)
	}
	return rules, service, err
}
