// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Access says whether a client may use a service of one exporting cluster, and which rules decide.
type Access struct {
	Exporter clusterset.ClusterID `json:"exporter"`
	Verdict  Verdict              `json:"verdict"`
	// ImportRule is the rule of the client's cluster, and ExportRule that of the exporter. They are empty if they are not asked.
	ImportRule string `json:"importRule,omitempty"`
	ExportRule string `json:"exportRule,omitempty"`
	// Reason is why the verdict is not known, or not enforced, or why no rule is asked.
	Reason string `json:"reason,omitempty"`
}

// Verdict is a verdict about a client.
type Verdict string

// The verdicts.
const (
	Allowed Verdict = "Allowed"
	Denied  Verdict = "Denied"
	// NotEnforced: no gateway is between the client and the pods of the exporter.
	NotEnforced Verdict = "NotEnforced"
	// Unknown: the rules of a cluster could not be read.
	Unknown Verdict = "Unknown"
)

// CanConnect returns whether a client may use a service, for each cluster that exports it, sorted by cluster. Client.Cluster is the client's
// own. The result is empty if no cluster exports the service.
func CanConnect(ctx context.Context, c *survey.Clusterset, key clusterset.ServiceKey, client access.Client) []Access {
	var result []Access
	for _, export := range c.Hub.Records.Service(key).Exports {
		switch {
		case export.Cluster == client.Cluster:
		case !export.IsGrantedTo(client.Cluster):
			result = append(result, Access{
				Exporter: export.Cluster, Verdict: Denied,
				Reason: fmt.Sprintf("no ServiceExportGrant names cluster %s, so it does not import the service", client.Cluster),
			})
		default:
			result = append(result, accessTo(ctx, c, export.Cluster, key, client))
		}
	}
	return result
}

func accessTo(ctx context.Context, c *survey.Clusterset, exporter clusterset.ClusterID, key clusterset.ServiceKey, from access.Client) Access {
	result := Access{Exporter: exporter}
	if reach.IsDirect(c.Hub.Records.Cluster(from.Cluster), c.Hub.Records.Cluster(exporter)) {
		result.Verdict, result.Reason = NotEnforced, "the pods of both clusters reach each other directly: use NetworkPolicies"
		return result
	}
	for _, id := range []clusterset.ClusterID{from.Cluster, exporter} {
		if member := c.Hub.Records.Member(id); member != nil && member.Spec.Suspended {
			result.Verdict, result.Reason = Denied, fmt.Sprintf("cluster %s is suspended", id)
			return result
		}
	}
	imported, err := decide(ctx, c, from.Cluster, policyv1alpha1.DirectionImport, key, access.Client{
		Cluster: exporter, Namespace: from.Namespace, ServiceAccount: from.ServiceAccount,
	})
	result.ImportRule = imported.Rule
	if imported.Rule != "" && !imported.Allowed {
		result.Verdict, result.Reason = Denied, reasonOf(err)
		return result
	}
	exported, exportErr := decide(ctx, c, exporter, policyv1alpha1.DirectionExport, key, from)
	result.ExportRule, result.Reason = exported.Rule, reasonOf(errors.Join(err, exportErr))
	switch {
	case exported.Rule != "" && !exported.Allowed:
		result.Verdict = Denied
	case imported.Rule == "" || exported.Rule == "":
		result.Verdict = Unknown
	default:
		result.Verdict = Allowed
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
func decide(
	ctx context.Context, c *survey.Clusterset, id clusterset.ClusterID, direction policyv1alpha1.Direction, key clusterset.ServiceKey, from access.Client,
) (access.Verdict, error) {
	rules, service, err := rulesOf(ctx, c, id, direction, key)
	if rules == nil {
		return access.Verdict{}, err
	}
	return rules.Decide(service, from), err
}

// rulesOf returns the rules of a cluster and what they decide about a service, and which of them are not valid; nil if they cannot be read.
func rulesOf(
	ctx context.Context, c *survey.Clusterset, id clusterset.ClusterID, direction policyv1alpha1.Direction, key clusterset.ServiceKey,
) (*access.Rules, access.Service, error) {
	service := access.Service{Key: key}
	m := c.Member(id)
	if m == nil {
		return nil, service, fmt.Errorf("none of the contexts that were read leads to cluster %s: its rules cannot be read", id)
	}
	ctx, cancel := context.WithTimeout(ctx, survey.ReadTimeout)
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
