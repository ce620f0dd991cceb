// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/explain"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// maxExplained limits the number of services with an explanation.
const maxExplained = 100

// Write writes a gzipped tar archive of the data. version is that of the command. It notes missing data in the archive, and does
// not fail for it. It returns the notes about data that could not be read, besides the API servers in found.Unread.
func Write(ctx context.Context, out io.Writer, found *survey.Clusterset, version string) ([]string, error) {
	a := newArchive(out, found.Hub.Now)
	a.addCredentials(found.Hub.KubeContext.Config)
	for _, m := range found.Members {
		a.addCredentials(m.KubeContext.Config)
	}
	// Exported annotations are users' data: they must not be in a bug report.
	members := found.ReadObjects(ctx)
	a.addAnnotations(members)
	status := assess.Assess(found.Hub, members, found.Unreached, found.Unread...)
	versions := map[string]string{"kubectl-clusterset": version}
	if err := a.hub(ctx, found.Hub, versions); err != nil {
		return nil, err
	}
	if err := a.object("status.json", status); err != nil {
		return nil, err
	}
	if err := a.explanations(found.Hub, status); err != nil {
		return nil, err
	}
	for _, m := range found.Members {
		if err := a.member(ctx, m); err != nil {
			return nil, err
		}
		a.serverVersion(versions, string(m.ID), m.KubeContext.Config)
	}
	if len(a.unread) == 0 && !status.IsComplete() && len(found.Unread) == 0 {
		a.unreadf("some objects of members: see the problems in status.json")
	}
	for _, u := range found.Unreached {
		a.notef("context %s: %v", u.Context, u.Err)
	}
	if err := a.object("versions.json", versions); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return a.unread, a.close()
}

// addCredentials adds the user's own credentials to the secrets.
func (a *archive) addCredentials(config *rest.Config) {
	a.secrets.add(config.BearerToken, config.Password, string(config.KeyData), string(config.CertData))
}

// addAnnotations adds the values of exported annotations to the secrets, because conditions and other texts quote them.
func (a *archive) addAnnotations(members []survey.MemberObjects) {
	add := func(key, value string) { a.secrets.add(value, key+"="+value) }
	for _, s := range members {
		for i := range s.Exports {
			for key, value := range s.Exports[i].Spec.ExportedAnnotations {
				add(key, value)
			}
		}
		for i := range s.Imports {
			for key, value := range s.Imports[i].Annotations {
				if !isOurAnnotation(key) {
					add(key, value)
				}
			}
		}
	}
}

// addRecordAnnotations does so for the records on the hub.
func (a *archive) addRecordAnnotations(ctx context.Context, c client.Reader) {
	records := &hubv1alpha1.PublishedServiceList{}
	if err := c.List(ctx, records); err != nil {
		a.unreadf("hub/annotations: %v", err)
		return
	}
	for i := range records.Items {
		for key, value := range records.Items[i].Spec.Annotations {
			a.secrets.add(string(value), key+"="+string(value))
		}
	}
}

// explanations adds the explanations of services with problems.
func (a *archive) explanations(h *survey.Hub, status assess.Status) error {
	troubled := map[string]bool{}
	for _, p := range status.Problems {
		if p.Service != "" {
			troubled[p.Service] = true
		}
	}
	names := slices.Sorted(maps.Keys(troubled))
	if len(names) > maxExplained {
		a.notef("%d services with problems are not explained", len(names)-maxExplained)
		names = names[:maxExplained]
	}
	for _, s := range status.Services {
		if !slices.Contains(names, s.Key()) {
			continue
		}
		e, ok := explain.Service(h, clusterset.ServiceKey{Namespace: s.Namespace, Name: s.Name})
		if !ok {
			continue
		}
		if err := a.object(fmt.Sprintf("explained/%s.%s.json", s.Namespace, s.Name), e); err != nil {
			return err
		}
	}
	return nil
}

// hub adds the objects of the hub and its version, unless it could not be read.
func (a *archive) hub(ctx context.Context, h *survey.Hub, versions map[string]string) error {
	if !h.IsRead() {
		a.notef("hub: %v", h.Err)
		return nil
	}
	c, err := hub.Client(h.KubeContext.Config)
	if err != nil {
		return err
	}
	a.addRecordAnnotations(ctx, c)
	a.serverVersion(versions, "hub", h.KubeContext.Config)
	for _, kind := range []struct {
		name string
		list client.ObjectList
		take fields
	}{
		{"members", &hubv1alpha1.MemberList{}, whole},
		{"heartbeats", &hubv1alpha1.HeartbeatList{}, whole},
		{"publishedservices", &hubv1alpha1.PublishedServiceList{}, recordFacts},
		{"publishedendpoints", &hubv1alpha1.PublishedEndpointsList{}, nothing},
		{"publishedgateways", &hubv1alpha1.PublishedGatewayList{}, gatewayFacts},
	} {
		if err := a.list(ctx, c, "hub/"+kind.name+".json", kind.list, kind.take); err != nil {
			return err
		}
	}
	return nil
}

// isOptional reports whether a cluster, or a hub of an earlier version, may lack a kind.
func isOptional(list client.ObjectList) bool {
	switch list.(type) {
	case *gatewayv1alpha1.RemoteGatewayList, *gatewayv1alpha1.GatewayStatusList, *hubv1alpha1.PublishedGatewayList,
		*policyv1alpha1.ServiceExportGrantList, *policyv1alpha1.ClusterServiceAccessPolicyList, *policyv1alpha1.ServiceImportRoutingPolicyList:
		return true
	}
	return false
}

// list adds the objects of a kind. If they cannot be read, it adds a note.
func (a *archive) list(ctx context.Context, c client.Reader, name string, list client.ObjectList, take fields, options ...client.ListOption) error {
	err := c.List(ctx, list, append(options, client.Limit(maxObjects))...)
	if meta.IsNoMatchError(err) && isOptional(list) {
		return nil // a cluster without gateways, or a hub of an earlier version
	}
	if err != nil {
		a.unreadf("%s: %s", name, apiserver.FailureOf(err, "").Message)
		return nil
	}
	if list.GetContinue() != "" {
		a.notef("%s: there are more than %d", name, maxObjects)
	}
	objects, err := cleaned(list, take)
	if err != nil {
		return err
	}
	if len(objects) == 0 {
		return nil
	}
	return a.object(name, objects)
}
