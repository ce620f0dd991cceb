// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/caches"
	"github.com/tombolo-mcs/tombolo/controllers/imports"
	"github.com/tombolo-mcs/tombolo/controllers/routing"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/preference"
)

// readRoutingPolicies reads the ServiceImportRoutingPolicies if their kind is installed, and reports whether the agent may read them. An
// import without its policy would use other clusters, so no controller starts before. The kind is installed later than the agent if an
// old installation is upgraded.
func (s *starter) readRoutingPolicies(ctx context.Context, policies *caches.RoutingPolicies) (readable bool, err error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(caches.DefinitionMetadata().GroupVersionKind())
	err = s.manager.GetAPIReader().List(ctx, list, client.MatchingFieldsSelector{Selector: caches.OnlyRoutingDefinition})
	switch {
	case apierrors.IsForbidden(err):
		s.options.Log.Error(err, "ServiceImportRoutingPolicies are not read: apply the ClusterRole of this version, and restart the agent")
		return false, nil
	case err != nil:
		return false, fmt.Errorf("find the CustomResourceDefinition %s: %w", policyv1alpha1.RoutingDefinition, err)
	case len(list.Items) == 0:
		return true, nil
	}
	return true, policies.Watch(ctx)
}

// addRouting lets imports use the ServiceImportRoutingPolicies, and adds the controller of their status.
func (s *starter) addRouting(ctx context.Context, imported *imports.Reconciler) error {
	policies, readable := caches.NewRoutingPolicies(s.manager.GetCache()), false
	read := s.waitFor(ctx, func() (err error) {
		readable, err = s.readRoutingPolicies(ctx, policies)
		return err
	})
	imported.Routing, imported.RoutingChanges = policies.In, policies.Subscribe
	imported.DefaultSources, _ = preference.ParseSources(s.options.DefaultSources) // Validate has checked them
	if !read || !readable {
		return nil
	}
	definitions, err := cache.New(s.manager.GetConfig(), cache.Options{
		HTTPClient: s.manager.GetHTTPClient(), Scheme: s.manager.GetScheme(), Mapper: s.manager.GetRESTMapper(), NewInformer: newInformer(s.options.Log),
		DefaultFieldSelector: caches.OnlyRoutingDefinition,
	})
	if err != nil {
		return err
	}
	r := &routing.Reconciler{
		Cluster: imported.Sources.Cluster, Hub: imported.Sources.Hub, Policies: policies, Member: imported.Member, Definitions: definitions,
		Writer: imported.Writer, Clock: imported.Clock,
	}
	return errors.Join(s.manager.Add(definitions), r.Add(s.manager, s.manager.GetCache(), s.controllerOptions()))
}
