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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/manifests"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	"github.com/tombolo-mcs/tombolo/pkg/apply"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
)

// clusterUID returns the UID of the kube-system namespace, which tells a cluster from others that bear its ID.
func clusterUID(ctx context.Context, c *cluster) (string, error) {
	system := &corev1.Namespace{}
	if err := c.client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", fmt.Errorf("get namespace kube-system of %s: %w", c.what, err)
	}
	return string(system.UID), nil
}

// mayRun returns all that may run in a member, whatever its profile, in the order in which it can be taken away.
func mayRun() ([]*unstructured.Unstructured, error) {
	objects, err := manifests.Install(manifests.InstallOptions{Parts: manifests.Production})
	slices.Reverse(objects)
	return objects, err
}

// stopAgent stops the agent and returns when none of its pods runs: what it owns can be taken away then.
func (l *leaving) stopAgent(ctx context.Context) error {
	objects, err := mayRun()
	if err != nil {
		return err
	}
	agent, err := agentDeployment(objects)
	if err != nil {
		return err
	}
	if err := remove(ctx, l.member, []*unstructured.Unstructured{agent}, l.r, func(*unstructured.Unstructured) bool { return true }); err != nil {
		return err
	}
	if l.dryRun {
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

// clean takes away all that Tombolo has made in the member (K3), and what made it.
func (l *leaving) clean(ctx context.Context) error {
	if err := l.cleanImports(ctx); err != nil {
		return err
	}
	if err := l.cleanExports(ctx); err != nil {
		return err
	}
	if err := l.cleanDNS(ctx); err != nil {
		return err
	}
	objects, err := mayRun()
	if err != nil {
		return err
	}
	if err := remove(ctx, l.member, objects, l.r, isOutsideNamespace); err != nil {
		return err
	}
	// Last: after an interruption, the next run finds out by them who leaves.
	if err := l.cleanProperties(ctx); err != nil {
		return err
	}
	l.r.notef("ServiceExports, and the kinds of the Multi-Cluster Services API, are left: they are yours")
	return nil
}

// cleanDNS takes back what the verb dns has changed, where CoreDNS usually is. What people have added by hand is theirs.
func (l *leaving) cleanDNS(ctx context.Context) error {
	d := &dnsEdit{installing: l.installing, by: byNone, member: l.member, r: l.r, key: client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "coredns"}}
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
		return nil
	}
	if edited != config.Data[corefileKey] {
		config.Data[corefileKey] = edited
		outcome, err := l.member.install.Update(ctx, config)
		if err != nil {
			return again(err)
		}
		l.r.did(outcome, "ConfigMap "+d.key.String())
	} else if strings.Contains(edited, zone) {
		l.r.notef("ConfigMap %s speaks of %s: take out by hand what was added by hand", d.key, zone)
	}
	return d.takeRights(ctx)
}

// isOutsideNamespace leaves out what goes with the agent's namespace.
func isOutsideNamespace(object *unstructured.Unstructured) bool {
	return object.GetNamespace() != manifests.AgentNamespace
}

// cleanImports removes what the agent has imported, the import first: nobody is to find a name without a Service.
func (l *leaving) cleanImports(ctx context.Context) error {
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
	if err := removeOurs(ctx, l, "ServiceImports", pointers(imports.Items)); err != nil {
		return err
	}
	if err := removeOurs(ctx, l, "derived Services", pointers(services.Items)); err != nil {
		return err
	}
	return removeOurs(ctx, l, "mirrored EndpointSlices", pointers(endpoints.Items))
}

func pointers[T any](items []T) []*T {
	result := make([]*T, 0, len(items))
	for i := range items {
		result = append(result, &items[i])
	}
	return result
}

// removeOurs removes objects that bear our mark, by the same guarded way as the agent does.
func removeOurs[T client.Object](ctx context.Context, l *leaving, what string, objects []T) error {
	if len(objects) == 0 {
		return nil
	}
	l.r.did(install.Deleted, fmt.Sprintf("%d %s", len(objects), what))
	if l.dryRun {
		return nil
	}
	changes := make([]plan.Change[T], 0, len(objects))
	for _, object := range objects {
		changes = append(changes, plan.Change[T]{Verb: plan.Delete, Object: object, Observed: object})
	}
	_, err := apply.Do(ctx, apply.ToMember(l.member.client, l.member.client), changes)
	return again(err)
}

// cleanExports takes from the ServiceExports what the agent said of them: nobody would correct it any more.
func (l *leaving) cleanExports(ctx context.Context) error {
	exports := &mcsv1beta1.ServiceExportList{}
	err := l.member.client.List(ctx, exports)
	if isAbsentKind(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list ServiceExports: %w", err)
	}
	var changes []plan.Change[*mcsv1beta1.ServiceExport]
	for _, export := range pointers(exports.Items) {
		if len(export.Status.Conditions) > 0 {
			bare := export.DeepCopy()
			bare.Status = mcsv1beta1.ServiceExportStatus{}
			changes = append(changes, plan.Change[*mcsv1beta1.ServiceExport]{Verb: plan.UpdateStatus, Object: bare, Observed: export})
		}
	}
	if len(changes) == 0 {
		return nil
	}
	l.r.did(install.Configured, fmt.Sprintf("status of %d ServiceExports", len(changes)))
	if l.dryRun {
		return nil
	}
	_, err = apply.Do(ctx, apply.ToMember(l.member.client, l.member.client), changes)
	return again(err)
}

// again says what to do where objects have changed under our hands.
func again(err error) error {
	if err != nil {
		return fmt.Errorf("%w: run this again", err)
	}
	return nil
}

// cleanProperties takes away the membership, and the ID if join has made it.
func (l *leaving) cleanProperties(ctx context.Context) error {
	for _, name := range []string{aboutv1beta1.ClusterSetProperty, aboutv1beta1.ClusterIDProperty} {
		there, err := property(ctx, l.member, name)
		if err != nil {
			return err
		}
		if there == nil || name == aboutv1beta1.ClusterIDProperty && there.Labels[labelPartOf] != partOf {
			continue
		}
		object, err := newProperty(name, there.Spec.Value)
		if err != nil {
			return err
		}
		outcome, err := l.member.install.Delete(ctx, object)
		if err != nil {
			return err
		}
		l.r.did(outcome, nameOf(object))
	}
	return nil
}
