// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

// needed are the kinds without which the controllers do not start, by their group and version, and who installs them.
var needed = []struct {
	group   fmt.Stringer
	kinds   []string
	install string
}{
	{
		mcsv1beta1.GroupVersion,
		[]string{mcsv1beta1.ServiceExportPluralName, mcsv1beta1.ServiceImportPluralName},
		"apply the CRDs of the Multi-Cluster Services API",
	},
	{
		policyv1alpha1.GroupVersion,
		[]string{"serviceexportgrants", "clusterserviceaccesspolicies", "serviceimportroutingpolicies"},
		`"kubectl clusterset upgrade" installs the kinds of this version, and so does its kustomization manifests/agent`,
	},
}

// checkCRDs returns nil if the cluster serves the needed kinds, else what to do.
func checkCRDs(config *rest.Config, mgr manager.Manager) error {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("set up discovery: %w", err)
	}
	for _, n := range needed {
		resources, err := client.ServerResourcesForGroupVersion(n.group.String())
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("ask what the cluster serves: %w", err)
		}
		served := map[string]bool{}
		if resources != nil {
			for _, resource := range resources.APIResources {
				served[resource.Name] = true
			}
		}
		for _, kind := range n.kinds {
			if !served[kind] {
				return fmt.Errorf("the cluster does not serve %s.%s: %s", kind, n.group, n.install)
			}
		}
	}
	return nil
}
