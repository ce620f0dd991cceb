// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package writing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/definition"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/identity"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/workload"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// Kinds of which upgrade deletes objects that this version no longer has. CRDs, namespaces, Secrets and the kinds of users stay.
var (
	prunedInNamespace = []schema.GroupVersionKind{
		appsv1.SchemeGroupVersion.WithKind("Deployment"),
		corev1.SchemeGroupVersion.WithKind("Service"),
		corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		corev1.SchemeGroupVersion.WithKind("ResourceQuota"),
		policyv1.SchemeGroupVersion.WithKind("PodDisruptionBudget"),
		networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
		rbacv1.SchemeGroupVersion.WithKind("RoleBinding"),
		rbacv1.SchemeGroupVersion.WithKind("Role"),
		corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
	}
	prunedOfPolicies = []schema.GroupVersionKind{
		admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyBinding"),
		admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicy"),
	}
	prunedInCluster = slices.Concat(prunedOfPolicies, []schema.GroupVersionKind{
		rbacv1.SchemeGroupVersion.WithKind("ClusterRoleBinding"),
		rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	})
)

// ObsoleteInMember returns the objects that an earlier version has installed in a member and that no profile or option of this version
// has. The command has applied them, no other client has set a field of them, and they have the label of all objects of a member.
func ObsoleteInMember(ctx context.Context, c *connection.Cluster, running map[string]*appsv1.Deployment, r *output.Report) ([]*unstructured.Unstructured, error) {
	known, err := workload.AllObjects()
	if err != nil {
		return nil, err
	}
	rights, err := manifests.Render("dns/corefile") // those of "dns --by kubernetes"
	if err != nil {
		return nil, err
	}
	labelled := client.MatchingLabels{identity.LabelPartOf: identity.PartOf}
	namespaced, err := listKinds(ctx, c, prunedInNamespace, r, labelled, client.InNamespace(manifests.AgentNamespace))
	if err != nil {
		return nil, err
	}
	clusterWide, err := listKinds(ctx, c, prunedInCluster, r, labelled)
	if err != nil {
		return nil, err
	}
	isUsed := func(o *unstructured.Unstructured) bool {
		return o.GetKind() == "ConfigMap" && isMounted(o.GetName(), running)
	}
	return obsolete(slices.DeleteFunc(append(namespaced, clusterWide...), isUsed), append(known, rights...), r), nil
}

// ObsoletePolicies returns the admission policies that an earlier version has installed on the hub and that this version does not have.
func ObsoletePolicies(ctx context.Context, c *connection.Cluster, rendered []*unstructured.Unstructured, r *output.Report) ([]*unstructured.Unstructured, error) {
	found, err := listKinds(ctx, c, prunedOfPolicies, r)
	if err != nil {
		return nil, err
	}
	isOther := func(o *unstructured.Unstructured) bool { return !strings.HasSuffix(o.GetName(), definition.HubSuffix) }
	return obsolete(slices.DeleteFunc(found, isOther), rendered, r), nil
}

// obsolete returns the found objects that are not known. Objects that other clients have changed stay, and are reported.
func obsolete(found, known []*unstructured.Unstructured, r *output.Report) []*unstructured.Unstructured {
	names := map[string]bool{}
	for _, object := range known {
		names[install.NameOf(object)] = true
	}
	var result []*unstructured.Unstructured
	for _, object := range found {
		switch {
		case names[install.NameOf(object)] || !install.WasApplied(object):
		case install.OnlyOwn(object):
			r.Notef("%s is of an earlier version and will be deleted", install.NameOf(object))
			result = append(result, object)
		default:
			r.Notef("%s is of an earlier version, and stays because another client has changed it: delete it by hand", install.NameOf(object))
		}
	}
	return result
}

// isMounted reports whether one of the Deployments mounts a ConfigMap. Its pods need it until they are replaced.
func isMounted(name string, deployments map[string]*appsv1.Deployment) bool {
	for _, d := range deployments {
		if slices.ContainsFunc(d.Spec.Template.Spec.Volumes, func(v corev1.Volume) bool { return v.ConfigMap != nil && v.ConfigMap.Name == name }) {
			return true
		}
	}
	return false
}

// listKinds returns the objects of these kinds. It reports kinds that cannot be read: their objects stay.
func listKinds(
	ctx context.Context, c *connection.Cluster, kinds []schema.GroupVersionKind, r *output.Report, options ...client.ListOption,
) ([]*unstructured.Unstructured, error) {
	var result []*unstructured.Unstructured
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		err := c.Client.List(ctx, list, options...)
		switch {
		case connection.IsAbsent(err):
		case apierrors.IsForbidden(err):
			r.Notef("objects of kind %s that this version no longer has stay, if there are any: %v", kind.Kind, err)
		case err != nil:
			return nil, fmt.Errorf("list %s of %s: %w", kind.Kind, c.What, err)
		}
		result = append(result, Pointers(list.Items)...)
	}
	return result, nil
}
