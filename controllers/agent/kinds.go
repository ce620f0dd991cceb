// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// scope says whether the objects of a kind are in namespaces.
type scope string

const (
	namespaced    scope = "Namespaced"
	clusterScoped scope = "Cluster"
)

// kinds are the kinds of a group and version that the controllers need, with their status subresource.
type kinds struct {
	version schema.GroupVersion
	// scopes are by the plural name of the kind.
	scopes map[string]scope
	// install is how they are installed.
	install string
}

// needed are the kinds without which the controllers do not start.
var needed = []kinds{
	{
		schema.GroupVersion{Group: mcsv1beta1.GroupVersion.Group, Version: mcsv1beta1.GroupVersion.Version},
		map[string]scope{mcsv1beta1.ServiceExportPluralName: namespaced, mcsv1beta1.ServiceImportPluralName: namespaced},
		"apply the CRDs of the Multi-Cluster Services API",
	},
	{
		policyv1alpha1.GroupVersion,
		map[string]scope{"serviceexportgrants": namespaced, "clusterserviceaccesspolicies": clusterScoped, "serviceimportroutingpolicies": namespaced},
		`"kubectl clusterset upgrade" installs the kinds of this version, and so does its kustomization manifests/agent`,
	},
}

// missingError says that the cluster does not serve a kind as the agent needs it, and what to do.
type missingError struct{ text string }

func (m missingError) Error() string { return m.text }

// isMissing reports whether an error says that a kind is missing, not that the answer of the cluster is not known.
func isMissing(err error) bool { return errors.As(err, &missingError{}) }

// servedKind is a kind that the agent needs, and a missingError if it is not served as it is needed.
type servedKind struct {
	// name is as in the name of its CRD.
	name string
	err  error
}

// check returns all kinds, by name. served are the resources of the version, and versions those of the group that are served.
func (k kinds) check(served []metav1.APIResource, versions []string) []servedKind {
	var result []servedKind
	find := func(name string) int {
		return slices.IndexFunc(served, func(r metav1.APIResource) bool { return r.Name == name })
	}
	for _, name := range slices.Sorted(maps.Keys(k.scopes)) {
		i := find(name)
		var problem string
		switch {
		case i < 0 && len(versions) > 0 && !slices.Contains(versions, k.version.Version):
			problem = fmt.Sprintf("the cluster does not serve %s.%s, only %s: other CRDs have replaced those of this version", name, k.version, strings.Join(versions, ", "))
		case i < 0:
			problem = fmt.Sprintf("the cluster does not serve %s.%s", name, k.version)
		case served[i].Namespaced != (k.scopes[name] == namespaced):
			problem = fmt.Sprintf("the cluster serves %s.%s with another scope than %s", name, k.version, k.scopes[name])
		case find(name+"/status") < 0:
			problem = fmt.Sprintf("the cluster serves %s.%s without the subresource status", name, k.version)
		}
		kind := servedKind{name: name + "." + k.version.Group}
		if problem != "" {
			kind.err = missingError{problem + ": " + k.install}
		}
		result = append(result, kind)
	}
	return result
}

// checkCRDs returns nil if the cluster serves the needed kinds, else what to do. It sets the metric of each kind, unless the answer of the
// cluster is not known.
func checkCRDs(config *rest.Config, mgr manager.Manager, metrics metrics) error {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("set up discovery: %w", err)
	}
	var all []servedKind
	for _, k := range needed {
		resources, err := client.ServerResourcesForGroupVersion(k.version.String())
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("ask what the cluster serves: %w", err)
		}
		var served []metav1.APIResource
		if err == nil {
			served = resources.APIResources
		}
		groups, err := client.ServerGroups()
		if err != nil {
			return fmt.Errorf("ask what the cluster serves: %w", err)
		}
		all = append(all, k.check(served, versionsOf(groups, k.version.Group))...)
	}
	metrics.setKinds(all)
	for _, kind := range all {
		if kind.err != nil {
			return kind.err
		}
	}
	return nil
}

// versionsOf returns the versions of a group.
func versionsOf(groups *metav1.APIGroupList, name string) []string {
	var versions []string
	for _, group := range groups.Groups {
		for _, version := range group.Versions {
			if group.Name == name {
				versions = append(versions, version.Version)
			}
		}
	}
	return versions
}

// kindChanges receives when the cluster may serve other kinds: an API server ends the watches of a kind when its CRD changes.
type kindChanges chan struct{}

func (c kindChanges) notify() {
	select {
	case c <- struct{}{}:
	default: // one is enough
	}
}

// watchKinds checks the needed kinds after each of changes, until ctx ends. While one is missing, the agent is not ready and says why. What
// it has read stays in its caches, and existing traffic is unaffected. When the kinds are served again, its watches and refused writes are
// retried without a restart.
func (s *starter) watchKinds(ctx context.Context, metrics metrics) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.informers.changes:
		}
		// An API server serves a changed CRD a moment after it has ended the watches. If it does not answer, its return begins watches too.
		_ = wait.PollUntilContextCancel(ctx, retryInterval, false, func(context.Context) (bool, error) { // only ctx ends it
			err := checkCRDs(s.manager.GetConfig(), s.manager, metrics)
			if err == nil || isMissing(err) {
				s.setMissing(err)
			}
			return err == nil || !isMissing(err) && s.missingKind() == nil, nil
		})
	}
}

// setMissing stores and logs which kind is missing; nil if none is.
func (s *starter) setMissing(reason error) {
	if before := s.missingKind(); before != nil && reason == nil {
		s.options.Log.Info("the cluster serves all kinds again")
	}
	s.setWaiting(reason)
}

// missingKind returns what the running agent waits for.
func (s *starter) missingKind() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting
}
