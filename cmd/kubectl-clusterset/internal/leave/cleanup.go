// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package leave

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/clusterdns"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/definition"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/identity"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/workload"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/writing"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/manifests"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// stopAgent deletes the agent and waits until its pods do not exist, so that it does not create its objects again.
func (l *command) stopAgent(ctx context.Context) error {
	objects, err := workload.AllObjects()
	if err != nil {
		return err
	}
	agent, err := workload.AgentDeployment(objects)
	if err != nil {
		return err
	}
	if err := writing.DeleteAll(ctx, l.member, []*unstructured.Unstructured{agent}, l.r, func(*unstructured.Unstructured) bool { return true }); err != nil {
		return err
	}
	if l.IsDryRun() {
		return nil
	}
	pods := &corev1.PodList{}
	err = connection.Poll(ctx, func(ctx context.Context) (bool, error) {
		err := l.member.Client.List(ctx, pods, client.InNamespace(manifests.AgentNamespace), client.MatchingLabels{"app.kubernetes.io/name": manifests.AgentDeployment})
		return err == nil && len(pods.Items) == 0, connection.IgnoreTransient(err)
	})
	if err != nil {
		return fmt.Errorf("%d pods of the agent are still there: %w", len(pods.Items), err)
	}
	return nil
}

// clean deletes all objects that Tombolo has created in the member (K3), and those that run it.
func (l *command) clean(ctx context.Context) error {
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
	if err := clusterdns.Revert(ctx, l.member, l.r); err != nil {
		return err
	}
	objects, err := workload.AllObjects()
	if err != nil {
		return err
	}
	if err := writing.DeleteAll(ctx, l.member, objects, l.r, isOutsideNamespace); err != nil {
		return err
	}
	// Last: the next run after an interruption reads the cluster ID from them.
	if err := l.cleanProperties(ctx); err != nil {
		return err
	}
	l.r.Notef("ServiceExports that users have created, grants, policies, and the kinds of these stay")
	return nil
}

// isOutsideNamespace excludes objects that are deleted with the agent's namespace.
func isOutsideNamespace(object *unstructured.Unstructured) bool {
	return object.GetNamespace() != manifests.AgentNamespace
}

// cleanImports deletes the imports, then their Services, so that no DNS name is without a Service.
func (l *command) cleanImports(ctx context.Context) error {
	c := l.member.Client
	imports, services, endpoints := &mcsv1beta1.ServiceImportList{}, &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}
	managed := client.MatchingLabels{clusterset.LabelManagedBy: clusterset.ManagedBy}
	if err := c.List(ctx, imports, managed); err != nil && !connection.IsAbsent(err) {
		return fmt.Errorf("list ServiceImports: %w", err)
	}
	if err := c.List(ctx, services, managed); err != nil {
		return fmt.Errorf("list derived Services: %w", err)
	}
	if err := c.List(ctx, endpoints, client.MatchingLabels{discoveryv1.LabelManagedBy: clusterset.ManagedBy}); err != nil {
		return fmt.Errorf("list mirrored EndpointSlices: %w", err)
	}
	if err := deleteManaged(ctx, l, mcsv1beta1.SchemeGroupVersion.WithKind("ServiceImport").GroupKind(), writing.Pointers(imports.Items)); err != nil {
		return err
	}
	if err := deleteManaged(ctx, l, corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), writing.Pointers(services.Items)); err != nil {
		return err
	}
	return deleteManaged(ctx, l, discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice").GroupKind(), writing.Pointers(endpoints.Items))
}

// deleteManaged deletes managed objects, with the same checks as the agent.
func deleteManaged[T client.Object](ctx context.Context, l *command, kind schema.GroupKind, objects []T) error {
	if len(objects) == 0 {
		return nil
	}
	for _, object := range objects {
		l.r.Deleted(install.Deleted, object, kind)
	}
	if l.IsDryRun() {
		return nil
	}
	changes := make([]plan.Change[T], 0, len(objects))
	for _, object := range objects {
		changes = append(changes, plan.Change[T]{Verb: plan.Delete, Object: object, Existing: object})
	}
	_, err := apply.Do(ctx, apply.ToMember(l.member.Client, l.member.Client), changes)
	return withRetryHint(err)
}

// cleanExports deletes the ServiceExports that the agent has created, and clears the status of the others, because no agent updates it
// any more.
func (l *command) cleanExports(ctx context.Context) error {
	exports := &mcsv1beta1.ServiceExportList{}
	err := l.member.Client.List(ctx, exports)
	if connection.IsAbsent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list ServiceExports: %w", err)
	}
	var changes []plan.Change[*mcsv1beta1.ServiceExport]
	var managed []*mcsv1beta1.ServiceExport
	for _, export := range writing.Pointers(exports.Items) {
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
func (l *command) cleanRules(ctx context.Context) error {
	objects, err := manifests.Install(manifests.InstallOptions{Parts: manifests.AgentOnly})
	if err != nil {
		return err
	}
	for _, object := range objects {
		if !workload.IsRuleDefinition(object) {
			continue
		}
		defined, err := definition.To(object)
		if err != nil {
			return err
		}
		kind := schema.GroupKind{Group: defined.Spec.Group, Kind: defined.Spec.Names.Kind}
		rules := &unstructured.UnstructuredList{}
		rules.SetGroupVersionKind(policyv1alpha1.GroupVersion.WithKind(kind.Kind))
		if err := l.member.Client.List(ctx, rules); err != nil && !connection.IsAbsent(err) {
			return fmt.Errorf("list %s: %w", defined.Spec.Names.Kind, err)
		}
		var changes []plan.Change[*unstructured.Unstructured]
		for _, rule := range writing.Pointers(rules.Items) {
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
func (l *command) cleanAliases(ctx context.Context) error {
	services := &corev1.ServiceList{}
	if err := l.member.Client.List(ctx, services); err != nil {
		return fmt.Errorf("list Services: %w", err)
	}
	var changes []plan.Change[*corev1.Service]
	for _, service := range writing.Pointers(services.Items) {
		bare := service.DeepCopy()
		if meta.RemoveStatusCondition(&bare.Status.Conditions, conditions.TypeAlias) {
			changes = append(changes, plan.Change[*corev1.Service]{Verb: plan.UpdateStatus, Object: bare, Existing: service})
		}
	}
	return clearStatus(ctx, l, schema.GroupKind{Kind: "Service"}, changes)
}

// clearStatus applies changes of the status of users' objects.
func clearStatus[T client.Object](ctx context.Context, l *command, kind schema.GroupKind, changes []plan.Change[T]) error {
	for _, change := range changes {
		l.r.Outcome("status cleared", output.ResourceName(kind, change.Object.GetName()))
	}
	if l.IsDryRun() || len(changes) == 0 {
		return nil
	}
	_, err := apply.Do(ctx, apply.ToMember(l.member.Client, l.member.Client), changes)
	return withRetryHint(err)
}

// withRetryHint adds what to do if an object has changed since it was read.
func withRetryHint(err error) error {
	if err != nil {
		return fmt.Errorf("%w: run this again", err)
	}
	return nil
}

// cleanProperties deletes the ClusterProperties that the agent has created, that of the clusterset, and that of the ID if join created
// it.
func (l *command) cleanProperties(ctx context.Context) error {
	ofMember := &aboutv1beta1.ClusterPropertyList{}
	if err := l.member.Client.List(ctx, ofMember, client.MatchingLabels{clusterset.LabelManagedBy: clusterset.ManagedBy}); err != nil && !connection.IsAbsent(err) {
		return fmt.Errorf("list ClusterProperties: %w", err)
	}
	if err := deleteManaged(ctx, l, aboutv1beta1.GroupVersion.WithKind("ClusterProperty").GroupKind(), writing.Pointers(ofMember.Items)); err != nil {
		return err
	}
	for _, name := range []string{aboutv1beta1.ClusterSetProperty, aboutv1beta1.ClusterIDProperty} {
		existing, err := identity.Property(ctx, l.member, name)
		if err != nil {
			return err
		}
		if existing == nil || name == aboutv1beta1.ClusterIDProperty && existing.Labels[identity.LabelPartOf] != identity.PartOf {
			continue
		}
		object, err := identity.NewProperty(name, existing.Spec.Value)
		if err != nil {
			return err
		}
		outcome, err := l.member.Install.Delete(ctx, object)
		if err != nil {
			return err
		}
		l.r.Deleted(outcome, object, object.GroupVersionKind().GroupKind())
	}
	return nil
}
