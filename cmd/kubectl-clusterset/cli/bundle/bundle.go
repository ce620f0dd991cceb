// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
)

// maxExplained is how many services with problems are explained.
const maxExplained = 100

// Write writes a gzipped tar archive of what can be seen of a clusterset. version is that of the command. What cannot be had
// is noted in it, and no error.
func Write(ctx context.Context, out io.Writer, found *survey.Clusterset, version string) error {
	a := newArchive(out, found.Hub.Now)
	a.learnCredentials(found.Hub.Place.Config)
	hubClient, err := hub.Client(found.Hub.Place.Config)
	if err != nil {
		return err
	}
	for _, m := range found.Members {
		a.learnCredentials(m.Place.Config)
	}
	// What is exported as annotations is a user's: it goes to all clusters, but not to us.
	sights := found.Sights(ctx)
	a.learnAnnotations(ctx, hubClient, sights)

	status := survey.Assess(found.Hub, sights, found.Unreached)
	versions := map[string]string{"kubectl-clusterset": version}
	if err := a.object("status.json", status); err != nil {
		return err
	}
	if err := a.explanations(found.Hub, status); err != nil {
		return err
	}
	if err := a.hub(ctx, hubClient); err != nil {
		return err
	}
	a.serverVersion(versions, "hub", found.Hub.Place.Config)
	for _, m := range found.Members {
		if err := a.member(ctx, m); err != nil {
			return err
		}
		a.serverVersion(versions, string(m.ID), m.Place.Config)
	}
	for _, u := range found.Unreached {
		a.notef("context %s: %v", u.Place, u.Err)
	}
	if err := a.object("versions.json", versions); err != nil {
		return err
	}
	return a.close()
}

// learnCredentials has the user's own credentials taken out of all texts.
func (a *archive) learnCredentials(config *rest.Config) {
	a.secrets.learn(config.BearerToken, config.Password, string(config.KeyData), string(config.CertData))
}

// learnAnnotations has the values of exported annotations taken out of all texts, such as conditions that quote them.
func (a *archive) learnAnnotations(ctx context.Context, c client.Reader, sights []survey.Sight) {
	learn := func(key, value string) { a.secrets.learn(value, key+"="+value) }
	for _, s := range sights {
		for i := range s.Exports {
			for key, value := range s.Exports[i].Spec.ExportedAnnotations {
				learn(key, value)
			}
		}
		for i := range s.Imports {
			for key, value := range s.Imports[i].Annotations {
				if !isOurAnnotation(key) {
					learn(key, value)
				}
			}
		}
	}
	records := &hubv1alpha1.PublishedServiceList{}
	if err := c.List(ctx, records); err != nil {
		a.notef("hub: %v", err)
		return
	}
	for i := range records.Items {
		for key, value := range records.Items[i].Spec.Annotations {
			learn(key, string(value))
		}
	}
}

// explanations adds how the services with problems are merged.
func (a *archive) explanations(h *survey.Hub, status survey.Status) error {
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
		e, ok := h.Explain(clusterset.ServiceKey{Namespace: s.Namespace, Name: s.Name})
		if !ok {
			continue
		}
		if err := a.object(fmt.Sprintf("explained/%s.%s.json", s.Namespace, s.Name), e); err != nil {
			return err
		}
	}
	return nil
}

// hub adds what the hub holds.
func (a *archive) hub(ctx context.Context, c client.Reader) error {
	for _, kind := range []struct {
		name string
		list client.ObjectList
		take fields
	}{
		{"members", &hubv1alpha1.MemberList{}, whole},
		{"heartbeats", &hubv1alpha1.HeartbeatList{}, whole},
		{"publishedservices", &hubv1alpha1.PublishedServiceList{}, recordFacts},
		{"publishedendpoints", &hubv1alpha1.PublishedEndpointsList{}, nothing},
	} {
		if err := a.list(ctx, c, "hub/"+kind.name+".json", kind.list, kind.take); err != nil {
			return err
		}
	}
	return nil
}

// list adds the objects of a kind. Those that may not be read are noted.
func (a *archive) list(ctx context.Context, c client.Reader, name string, list client.ObjectList, take fields, options ...client.ListOption) error {
	if err := c.List(ctx, list, append(options, client.Limit(maxObjects))...); err != nil {
		a.notef("%s: %v", name, err)
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
