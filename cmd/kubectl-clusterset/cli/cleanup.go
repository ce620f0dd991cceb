// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/manifests"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// clusterUID returns the UID of the kube-system namespace, which identifies a cluster.
func clusterUID(ctx context.Context, c *cluster) (string, error) {
	system := &corev1.Namespace{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", fmt.Errorf("get namespace kube-system of %s: %w", c.what, err)
	}
	return string(system.UID), nil
}

// allMemberObjects returns the objects of all profiles, of the gateways and of automatic export, in the order in which they can be deleted,
// without the kinds of which users have written objects.
func allMemberObjects() ([]*unstructured.Unstructured, error) {
	objects, err := manifests.Install(manifests.InstallOptions{Parts: manifests.Production, Gateway: true, AutoExport: true})
	slices.Reverse(objects)
	return slices.DeleteFunc(objects, isRuleDefinition), err
}

// isRuleDefinition reports whether an object defines a kind of grants or policies.
func isRuleDefinition(object *unstructured.Unstructured) bool {
	return isDefinition(object) && strings.HasSuffix(object.GetName(), "."+policyv1alpha1.GroupVersion.Group)
}

// stopAgent deletes the agent and waits until its pods do not exist, so that it does not create its objects again.
func (l *leaveCommand) stopAgent(ctx context.Context) error {
	objects, err := allMemberObjects()
	if err != nil {
		return err
	}
	agent, err := agentDeployment(objects)
	if err != nil {
		return err
	}
	if err := deleteObjects(ctx, l.member, []*unstructured.Unstructured{agent}, l.r, func(*unstructured.Unstructured) bool { return true }); err != nil {
		return err
	}
	if l.isDryRun() {
		return nil
	}
	pods := &corev1.PodList{}
	err = poll(ctx, func(ctx context.Context) (bool, error) {
		err := l.member.client.List(ctx, pods, client.InNamespace(manifests.AgentNamespace), client.MatchingLabels{"app.kubernetes.io/name": manifests.AgentDeployment})
		return err == nil && len(pods.Items) == 0, ignoreTransient(err)
	})
	if err != nil {
		return fmt.Errorf("%d pods of the agent are still there: %w", len(pods.Items), err)
	}
	return nil
}

// clean deletes all objects that Tombolo has created in the member (K3), and those that run it.
func (l *leaveCommand) clean(ctx context.Context) error {
	if err := l.cleanImports(ctx); err != nil {
		return err
	}
	if err := l.cleanExports(ctx); err != nil {
		return err
	}
	if err := l.cleanRules(ctx); err != nil {
		return err
	}
	if err := l.cleanAliases(ctx); err != nil {
		return err
	}
	if err := l.cleanDNS(ctx); err != nil {
		return err
	}
	objects, err := allMemberObjects()
	if err != nil {
		return err
	}
	if err := deleteObjects(ctx, l.member, objects, l.r, isOutsideNamespace); err != nil {
		return err
	}
	// Last: the next run after an interruption reads the cluster ID from them.
	if err := l.cleanProperties(ctx); err != nil {
		return err
	}
	l.r.notef("ServiceExports that users have created, grants, policies, and the kinds of these stay")
	return nil
}

// cleanDNS reverts the change of the command dns in the usual ConfigMap of CoreDNS. It does not change manual edits.
func (l *leaveCommand) cleanDNS(ctx context.Context) error {
	d := &dnsEdit{writeFlags: l.writeFlags, by: byNone, member: l.member, r: l.r, key: client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "coredns"}}
	config := &corev1.ConfigMap{}
	err := l.member.client.Get(ctx, d.key, config)
	if isAbsentKind(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("get ConfigMap %s: %w", d.key, err)
	}
	edited, err := d.edit(ctx, config.Data[corefileKey])
	if err != nil {
		l.r.notef("ConfigMap %s stays as it is (%v): take out by hand what forwards %s", d.key, err, zone)
		return nil // so do the rights
	}
	if edited != config.Data[corefileKey] {
		config.Data[corefileKey] = edited
		outcome, err := l.member.install.Update(ctx, config)
		if err != nil {
			return withRetryHint(err)
		}
		l.r.outcome(outcome, "configmap/"+d.key.Name)
	} else if strings.Contains(edited, zone) {
		l.r.notef("ConfigMap %s speaks of %s: take out by hand what was added by hand", d.key, zone)
	}
	return d.deleteRights(ctx, edited)
}

// isOutsideNamespace excludes objects that are deleted with the agent's namespace.
func isOutsideNamespace(object *unstructured.Unstructured) bool {
	return object.GetNamespace() != manifests.AgentNamespace
}

// cleanImports deletes the imports, then their Services, so that no DNS name is without a Service.
func (l *leaveCommand) cleanImports(ctx context.Context) error {
	c := l.member.client
	imports, services, endpoints := &mcsv1beta1.ServiceImportList{}, &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}
	managed := client.MatchingLabels{clusterset.LabelManagedBy: clusterset.ManagedBy}
	if err := c.List(ctx, imports, managed); err != nil && !isAbsentKind(err) {
		return fmt.Errorf("list ServiceImports: %w", err)
	}
	if err := c.List(ctx, services, managed); err != nil {
		return fmt.Errorf("list derived Services: %w", err)
	}
	if err := c.List(ctx, endpoints, client.MatchingLabels{discoveryv1.LabelManagedBy: clusterset.ManagedBy}); err != nil {
		return fmt.Errorf("list mirrored EndpointSlices: %w", err)
	}
	if err := deleteManaged(ctx, l, mcsv1beta1.SchemeGroupVersion.WithKind("ServiceImport").GroupKind(), pointers(imports.Items)); err != nil {
		return err
	}
	if err := deleteManaged(ctx, l, corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), pointers(services.Items)); err != nil {
		return err
	}
	return deleteManaged(ctx, l, discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice").GroupKind(), pointers(endpoints.Items))
}

func pointers[T any](items []T) []*T {
	result := make([]*T, 0, len(items))
	for i := range items {
		result = append(result, &items[i])
	}
	return result
}

// deleteManaged deletes managed objects, with the same checks as the agent.
func deleteManaged[T client.Object](ctx context.Context, l *leaveCommand, kind schema.GroupKind, objects []T) error {
	if len(objects) == 0 {
		return nil
	}
	for _, object := range objects {
		l.r.deleted(install.Deleted, object, kind)
	}
	if l.isDryRun() {
		return nil
	}
	changes := make([]plan.Change[T], 0, len(objects))
	for _, object := range objects {
		changes = append(changes, plan.Change[T]{Verb: plan.Delete, Object: object, Existing: object})
	}
	_, err := apply.Do(ctx, apply.ToMember(l.member.client, l.member.client), changes)
	return withRetryHint(err)
}

// cleanExports deletes the ServiceExports that the agent has created, and clears the status of the others, because no agent updates it
// any more.
func (l *leaveCommand) cleanExports(ctx context.Context) error {
	exports := &mcsv1beta1.ServiceExportList{}
	err := l.member.client.List(ctx, exports)
	if isAbsentKind(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list ServiceExports: %w", err)
	}
	var changes []plan.Change[*mcsv1beta1.ServiceExport]
	var managed []*mcsv1beta1.ServiceExport
	for _, export := range pointers(exports.Items) {
		if clusterset.IsAutomatic(export) {
			managed = append(managed, export)
		} else if len(export.Status.Conditions) > 0 {
			bare := export.DeepCopy()
			bare.Status = mcsv1beta1.ServiceExportStatus{}
			changes = append(changes, plan.Change[*mcsv1beta1.ServiceExport]{Verb: plan.UpdateStatus, Object: bare, Existing: export})
		}
	}
	kind := mcsv1beta1.SchemeGroupVersion.WithKind("ServiceExport").GroupKind()
	if err := deleteManaged(ctx, l, kind, managed); err != nil {
		return err
	}
	return clearStatus(ctx, l, kind, changes)
}

// cleanRules clears the status of grants and policies, because no agent enforces them any more.
func (l *leaveCommand) cleanRules(ctx context.Context) error {
	objects, err := manifests.Install(manifests.InstallOptions{Parts: manifests.AgentOnly})
	if err != nil {
		return err
	}
	for _, object := range objects {
		if !isRuleDefinition(object) {
			continue
		}
		defined, err := toDefinition(object)
		if err != nil {
			return err
		}
		kind := schema.GroupKind{Group: defined.Spec.Group, Kind: defined.Spec.Names.Kind}
		rules := &unstructured.UnstructuredList{}
		rules.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind(kind.Kind))
		if err := l.member.client.List(ctx, rules); err != nil && !isAbsentKind(err) {
			return fmt.Errorf("list %s: %w", defined.Spec.Names.Kind, err)
		}
		var changes []plan.Change[*unstructured.Unstructured]
		for _, rule := range pointers(rules.Items) {
			if _, ok := rule.Object["status"]; !ok {
				continue
			}
			bare := rule.DeepCopy()
			delete(bare.Object, "status")
			changes = append(changes, plan.Change[*unstructured.Unstructured]{Verb: plan.UpdateStatus, Object: bare, Existing: rule})
		}
		if err := clearStatus(ctx, l, kind, changes); err != nil {
			return err
		}
	}
	return nil
}

// cleanAliases removes the condition of aliases from the status of Services, because no agent updates it any more.
func (l *leaveCommand) cleanAliases(ctx context.Context) error {
	services := &corev1.ServiceList{}
	if err := l.member.client.List(ctx, services); err != nil {
		return fmt.Errorf("list Services: %w", err)
	}
	var changes []plan.Change[*corev1.Service]
	for _, service := range pointers(services.Items) {
		bare := service.DeepCopy()
		if meta.RemoveStatusCondition(&bare.Status.Conditions, conditions.TypeAlias) {
			changes = append(changes, plan.Change[*corev1.Service]{Verb: plan.UpdateStatus, Object: bare, Existing: service})
		}
	}
	return clearStatus(ctx, l, schema.GroupKind{Kind: "Service"}, changes)
}

// clearStatus applies changes of the status of users' objects.
func clearStatus[T client.Object](ctx context.Context, l *leaveCommand, kind schema.GroupKind, changes []plan.Change[T]) error {
	for _, change := range changes {
		l.r.outcome("status cleared", resourceName(kind, change.Object.GetName()))
	}
	if l.isDryRun() || len(changes) == 0 {
		return nil
	}
	_, err := apply.Do(ctx, apply.ToMember(l.member.client, l.member.client), changes)
	return withRetryHint(err)
}

// withRetryHint adds what to do if an object has changed since it was read.
func withRetryHint(err error) error {
	if err != nil {
		return fmt.Errorf("%w: run this again", err)
	}
	return nil
}
