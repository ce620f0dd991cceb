// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/audit"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestAdmissionPolicy tries with the agent's token what an attacker could do with each right of the agent's roles: every verb of every kind and
// subresource. A right for which the test has no object fails it. All attempts are dry runs, of which an API server returns what it
// would store.
//
// spec: K4
func TestAdmissionPolicy(t *testing.T) {
	t.Parallel()
	cluster := lab.Start(t, lab.Member("a")).Cluster("a")
	lab.Must(t, membership.InstallCRDs(t.Context(), cluster))
	config, err := membership.InstallAgent(t.Context(), cluster)
	lab.Must(t, err)
	lab.Must(t, membership.InstallGateway(t.Context(), cluster))
	lab.Must(t, membership.InstallAutoExport(t.Context(), cluster))
	admin := membership.Client(t, cluster)
	world.CreateNamespace(t, "shop", admin)
	world.CreateNamespace(t, "member-b", admin)
	f := &fence{rights: agentRights(t)}
	f.admin, err = dynamic.NewForConfig(cluster.Config())
	lab.Must(t, err)
	f.agent, err = dynamic.NewForConfig(config)
	lab.Must(t, err)
	f.typed, err = client.New(config, client.Options{Scheme: admin.Scheme()})
	lab.Must(t, err)
	world.Eventually(t, f.inForce)

	t.Run("no other rights", f.testNoOtherRights)
	for _, right := range f.rights {
		if slices.Contains([]string{"get", "list", "watch"}, right.Verb) {
			continue
		}
		t.Run(right.String(), func(t *testing.T) {
			t.Parallel()
			resource, subresource, _ := strings.Cut(right.Resource, "/")
			s, known := samples[schema.GroupResource{Group: right.Group, Resource: resource}]
			if !known {
				t.Fatalf("the agent may %s, and no test tries what an attacker could do with it: add an object to samples", right)
			}
			f.try(t, right, s.in(right), subresource)
		})
	}
}

// fence is a cluster with the agent's manifests.
type fence struct {
	rights []audit.Right
	// admin and agent have the rights of the cluster's administrator and of the agent; typed those of the agent.
	admin, agent dynamic.Interface
	typed        client.Client
}

// agentRights returns what all manifests of a member grant to the agent.
func agentRights(t *testing.T) []audit.Right {
	t.Helper()
	objects, err := manifests.Render("agent")
	lab.Must(t, err)
	labelled, err := manifests.AutoExportRights()
	lab.Must(t, err)
	account := types.NamespacedName{Namespace: manifests.AgentNamespace, Name: manifests.AgentServiceAccount}
	rights, err := audit.Rights(append(objects, labelled...), account)
	lab.Must(t, err)
	return rights
}

// sample is an object of a kind that the agent may write.
type sample struct {
	version, kind string
	// scope is the namespace of objects of the test; empty if the kind has none.
	scope string
	// name is set if the agent writes one object only.
	name string
	// label is the managed-by label without which the agent may not write; empty if the kind needs none.
	label   string
	content map[string]any
	// refused are changes of a valid object that the agent may not write, by their name.
	refused map[string]func(o map[string]any)

	resource schema.GroupVersionResource
}

const managedBy, sliceManagedBy = clusterset.LabelManagedBy, "endpointslice.kubernetes.io/managed-by"

var samples = map[schema.GroupResource]sample{
	{Resource: "services"}: {
		version: "v1", kind: "Service", scope: "shop", label: managedBy,
		content: map[string]any{"spec": map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}},
		refused: map[string]func(map[string]any){
			"external addresses": with([]any{"203.0.113.9"}, "spec", "externalIPs"),
			"a LoadBalancer":     with("LoadBalancer", "spec", "type"),
			"a NodePort":         with("NodePort", "spec", "type"),
			"an ExternalName": func(o map[string]any) {
				o["spec"] = map[string]any{"type": "ExternalName", "externalName": "example.com"}
			},
		},
	},
	{Group: "discovery.k8s.io", Resource: "endpointslices"}: {
		version: "v1", kind: "EndpointSlice", scope: "shop", label: sliceManagedBy,
		content: map[string]any{"addressType": "IPv4", "endpoints": []any{}},
		refused: map[string]func(map[string]any){"endpoints of the API server": func(o map[string]any) {
			with("default", "metadata", "namespace")(o)
			with("kubernetes", "metadata", "labels", "kubernetes.io/service-name")(o)
		}},
	},
	{Group: "multicluster.x-k8s.io", Resource: "serviceexports"}: {version: "v1beta1", kind: "ServiceExport", scope: "shop", label: managedBy},
	{Group: "multicluster.x-k8s.io", Resource: "serviceimports"}: {
		version: "v1beta1", kind: "ServiceImport", scope: "shop", label: managedBy,
		content: map[string]any{"spec": map[string]any{"type": "ClusterSetIP", "ports": []any{}}},
	},
	{Group: "about.k8s.io", Resource: "clusterproperties"}: {
		version: "v1beta1", kind: "ClusterProperty", label: managedBy, content: map[string]any{"spec": map[string]any{"value": "x"}},
		refused: map[string]func(map[string]any){
			"the cluster's ID":    with("cluster.clusterset.k8s.io", "metadata", "name"),
			"the clusterset":      with("clusterset.k8s.io", "metadata", "name"),
			"one of clusterset's": with("x.clusterset.k8s.io", "metadata", "name"),
		},
	},
	{Group: "policy.tombolo-mcs.io", Resource: "serviceexportgrants"}: {
		version: "v1alpha1", kind: "ServiceExportGrant", scope: "shop",
		content: map[string]any{"spec": map[string]any{"to": []any{map[string]any{"clusters": []any{"b"}}}}},
	},
	{Group: "policy.tombolo-mcs.io", Resource: "serviceimportroutingpolicies"}: {
		version: "v1alpha1", kind: "ServiceImportRoutingPolicy", scope: "shop",
		content: map[string]any{"spec": map[string]any{"sources": []any{map[string]any{"sameCluster": true}}}},
	},
	{Group: "policy.tombolo-mcs.io", Resource: "clusterserviceaccesspolicies"}: {
		version: "v1alpha1", kind: "ClusterServiceAccessPolicy",
		content: map[string]any{"spec": map[string]any{
			"tier": "Admin", "direction": "Import", "action": "Deny", "priority": int64(1), "peers": []any{map[string]any{"clusters": []any{"b"}}},
		}},
	},
	{Group: "gateway.tombolo-mcs.io", Resource: "remotegateways"}: {
		version: "v1alpha1", kind: "RemoteGateway", scope: manifests.AgentNamespace,
		content: map[string]any{"spec": map[string]any{"bundle": "x", "versions": []any{int64(1)}}},
	},
	{Group: "coordination.k8s.io", Resource: "leases"}: {version: "v1", kind: "Lease", scope: manifests.AgentNamespace, name: "tombolo-agent"},
	{Resource: "configmaps"}:                           {version: "v1", kind: "ConfigMap", scope: manifests.AgentNamespace, name: "tombolo-gateway-ports"},
	{Resource: "secrets"}: {
		version: "v1", kind: "Secret", scope: manifests.AgentNamespace, name: clusterset.GatewayAuthoritySecret, content: map[string]any{"type": "Opaque"},
		refused: map[string]func(map[string]any){"the token of another account": func(o map[string]any) {
			o["type"] = "kubernetes.io/service-account-token"
			with("tombolo-gateway", "metadata", "annotations", "kubernetes.io/service-account.name")(o)
		}},
	},
	{Resource: "events"}: {
		version: "v1", kind: "Event", scope: manifests.AgentNamespace, content: map[string]any{
			"involvedObject": map[string]any{"kind": "Lease", "namespace": manifests.AgentNamespace, "name": "x"}, "reason": "x",
		},
	},
	{Group: "events.k8s.io", Resource: "events"}: {
		version: "v1", kind: "Event", scope: "shop", content: map[string]any{
			"regarding": map[string]any{"kind": "Service", "namespace": "shop", "name": "x"}, "reason": "x", "action": "x", "type": "Normal",
			"eventTime": "2026-01-02T03:04:05.000000Z", "reportingController": "tombolo-agent", "reportingInstance": "x",
		},
	},
}

// in returns the sample for a right.
func (s sample) in(right audit.Right) sample {
	resource, _, _ := strings.Cut(right.Resource, "/")
	s.resource = schema.GroupVersionResource{Group: right.Group, Version: s.version, Resource: resource}
	if right.Name != "" {
		s.name = right.Name
	}
	return s
}

// object returns a valid object of the agent, changed.
func (s sample) object(name string, changes ...func(map[string]any)) *unstructured.Unstructured {
	o := runtime.DeepCopyJSON(map[string]any{"metadata": map[string]any{}})
	for k, v := range runtime.DeepCopyJSON(s.content) {
		o[k] = v
	}
	u := &unstructured.Unstructured{Object: o}
	u.SetGroupVersionKind(s.resource.GroupVersion().WithKind(s.kind))
	u.SetNamespace(s.scope)
	u.SetName(name)
	if s.name != "" {
		u.SetName(s.name)
	}
	if s.kind == "RemoteGateway" {
		with(u.GetName(), "spec", "cluster")(u.Object)
	}
	if s.label != "" {
		u.SetLabels(map[string]string{s.label: clusterset.ManagedBy})
	}
	for _, change := range changes {
		change(u.Object)
	}
	return u
}

// with returns the function that sets a field.
func with(value any, fields ...string) func(map[string]any) {
	return func(o map[string]any) {
		if err := unstructured.SetNestedField(o, value, fields...); err != nil {
			panic(err)
		}
	}
}

var owner = []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "00000000-0000-0000-0000-000000000001"}}

// metadata are changes of metadata that no subresource may make; the first two no other write either.
func metadata(s sample) map[string]func(map[string]any) {
	return map[string]func(map[string]any){
		"a finalizer":         with([]any{"example.com/x"}, "metadata", "finalizers"),
		"an owner":            with(owner, "metadata", "ownerReferences"),
		"our label":           with(clusterset.ManagedBy, "metadata", "labels", managedBy),
		"our label of slices": with(clusterset.ManagedBy, "metadata", "labels", sliceManagedBy),
		"another's label":     with("x", "metadata", "labels", managedBy),
		"no label":            with(map[string]any{}, "metadata", "labels"),
		"an annotation":       with("x", "metadata", "annotations", "tombolo-mcs.io/import"),
		"a label and a finalizer": func(o map[string]any) {
			with(clusterset.ManagedBy, "metadata", "labels", managedBy)(o)
			with([]any{"example.com/x"}, "metadata", "finalizers")(o)
		},
		"a forged author": func(o map[string]any) {
			with([]any{map[string]any{
				"manager": clusterset.FieldManager, "operation": "Update", "apiVersion": s.resource.GroupVersion().String(), "fieldsType": "FieldsV1",
				"fieldsV1": map[string]any{"f:metadata": map[string]any{"f:labels": map[string]any{".": map[string]any{}}}},
			}}, "metadata", "managedFields")(o)
		},
		"another spec": with("evil", "spec", "selector", "app"),
	}
}

var added = []string{"a finalizer", "an owner"}

// reserved are the namespaces in which the agent writes nothing.
var reserved = []string{"kube-system", "kube-public", "kube-node-lease", manifests.AgentNamespace, "member-b"}

// inForce returns nil once the API server has read the policies and roles, which are new.
func (f *fence) inForce(ctx context.Context) error {
	service := samples[schema.GroupResource{Resource: "services"}].in(audit.Right{Resource: "services"})
	configMap := samples[schema.GroupResource{Resource: "configmaps"}].in(audit.Right{Resource: "configmaps"})
	_, err := f.agent.Resource(configMap.resource).Namespace(configMap.scope).Create(ctx, configMap.object("", with("x", "metadata", "name")), dryCreate)
	export := samples[schema.GroupResource{Group: "multicluster.x-k8s.io", Resource: "serviceexports"}].in(audit.Right{Group: "multicluster.x-k8s.io", Resource: "serviceexports"})
	_, right := f.agent.Resource(export.resource).Namespace("shop").Create(ctx, export.object("early"), dryCreate)
	_, label := f.agent.Resource(service.resource).Namespace("shop").Create(ctx, service.object("early", with(map[string]any{}, "metadata", "labels")), dryCreate)
	return errors.Join(refused(err, byPolicy), refused(label, byPolicy), right)
}

// byPolicy is in all messages of the agent's policies.
const byPolicy = "the agent of Tombolo"

var (
	dryCreate = metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: clusterset.FieldManager}
	dryUpdate = metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: clusterset.FieldManager}
	dryPatch  = metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}, FieldManager: clusterset.FieldManager}
	dryDelete = metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}
)

// testNoOtherRights compares the agent's roles with what the API server allows to its token, for each verb of each kind.
func (f *fence) testNoOtherRights(t *testing.T) {
	for group := range samples {
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind", "escalate", "impersonate"} {
			for _, subresource := range []string{"", "status", "scale", "proxy", "finalizers"} {
				resource := strings.TrimSuffix(group.Resource+"/"+subresource, "/")
				review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
					ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "shop", Verb: verb, Group: group.Group, Resource: group.Resource, Subresource: subresource},
				}}
				lab.Must(t, f.typed.Create(t.Context(), review))
				want := slices.ContainsFunc(f.rights, func(r audit.Right) bool {
					return r.Verb == verb && r.Group == group.Group && r.Resource == resource && r.Namespace == ""
				})
				if review.Status.Allowed != want {
					t.Errorf("%s %s: allowed is %v, and the roles say %v", verb, resource, review.Status.Allowed, want)
				}
			}
		}
	}
}

// try makes the attempts for one right.
func (f *fence) try(t *testing.T, right audit.Right, s sample, subresource string) {
	t.Helper()
	switch {
	case right.Verb == "create" && subresource == "":
		f.tryCreate(t, s)
	case right.Verb == "update" && subresource == "":
		f.tryUpdate(t, s)
	case right.Verb == "update":
		f.trySubresource(t, s, subresource)
	case right.Verb == "patch" && subresource == "":
		f.tryPatch(t, s)
	case right.Verb == "delete" && subresource == "":
		f.tryDelete(t, s)
	default:
		t.Fatalf("the agent may %s, and no test tries what an attacker could do with it", right)
	}
}

func (f *fence) tryCreate(t *testing.T, s sample) {
	t.Helper()
	create := func(o *unstructured.Unstructured) error {
		_, err := f.agent.Resource(s.resource).Namespace(o.GetNamespace()).Create(t.Context(), o, dryCreate)
		return err
	}
	if err := create(s.object("new")); !apierrors.IsAlreadyExists(err) { // by the test of another right
		expect(t, "a valid object", err, "")
	}
	for name, change := range s.attempts() {
		expect(t, name, create(s.object("new", change)), byPolicy)
		if s.name == "" && s.refused[name] == nil && s.kind != "RemoteGateway" {
			generated := s.object("", change, with("new-", "metadata", "generateName"))
			generated.SetName("")
			expect(t, name+", with generateName", create(generated), byPolicy)
		}
	}
	if s.name != "" {
		expect(t, "another name", create(s.object("", with("other", "metadata", "name"))), byPolicy)
	}
}

func (f *fence) tryUpdate(t *testing.T, s sample) {
	t.Helper()
	update := func(o *unstructured.Unstructured, change func(map[string]any)) error {
		o = o.DeepCopy()
		change(o.Object)
		_, err := f.agent.Resource(s.resource).Namespace(o.GetNamespace()).Update(t.Context(), o, dryUpdate)
		return err
	}
	annotated := with("x", "metadata", "annotations", "example.com/x")
	own := f.exists(t, s.object("updated"))
	expect(t, "an annotation of an own object", update(own, annotated), "")
	for name, change := range s.attempts() {
		if err := update(own, change); !moves(s, change) && (err == nil || !strings.Contains(err.Error(), "field is immutable")) {
			expect(t, name, err, byPolicy)
		}
	}
	if s.label != "" {
		f.tryLostLabel(t, s, update)
	}
	for name, labels := range s.foreignLabels() {
		foreign := f.exists(t, s.object("updated-"+name, with(labels, "metadata", "labels")))
		expect(t, "an annotation of one with "+name, update(foreign, annotated), byPolicy)
		for what, change := range metadata(s) {
			expect(t, what+" of one with "+name, update(foreign, change), byPolicy)
		}
	}
	for _, namespace := range s.reserved() {
		expect(t, "an own object in "+namespace, update(f.exists(t, s.object("updated", with(namespace, "metadata", "namespace"))), annotated), byPolicy)
	}
}

// tryLostLabel: an object that the agent has written is its own also if another user has removed the label, but is not deleted then.
func (f *fence) tryLostLabel(t *testing.T, s sample, update func(*unstructured.Unstructured, func(map[string]any)) error) {
	t.Helper()
	at := f.agent.Resource(s.resource).Namespace(s.scope)
	written, err := at.Create(t.Context(), s.object("lost"), metav1.CreateOptions{FieldManager: clusterset.FieldManager})
	lab.Must(t, err)
	written.SetLabels(nil)
	if s.kind == "Service" {
		with("LoadBalancer", "spec", "type")(written.Object)
	}
	lost, err := f.admin.Resource(s.resource).Namespace(s.scope).Update(t.Context(), written, metav1.UpdateOptions{FieldManager: "user"})
	lab.Must(t, err)
	label := with(clusterset.ManagedBy, "metadata", "labels", s.label)
	expect(t, "the lost label", update(lost, label), "")
	expect(t, "an annotation without the lost label", update(lost, with("x", "metadata", "annotations", "example.com/x")), byPolicy)
	expect(t, "the deletion of an object without its label", at.Delete(t.Context(), lost.GetName(), dryDelete), byPolicy)
	for name, change := range s.refused {
		if moves(s, change) || name == "a LoadBalancer" { // it is one
			continue
		}
		expect(t, "the lost label and "+name, update(lost, func(o map[string]any) { label(o); change(o) }), byPolicy)
	}
}

func (f *fence) tryDelete(t *testing.T, s sample) {
	t.Helper()
	remove := func(o *unstructured.Unstructured) error {
		return f.agent.Resource(s.resource).Namespace(o.GetNamespace()).Delete(t.Context(), o.GetName(), dryDelete)
	}
	expect(t, "an own object", remove(f.exists(t, s.object("deleted"))), "")
	for name, labels := range s.foreignLabels() {
		expect(t, "one with "+name, remove(f.exists(t, s.object("deleted-"+name, with(labels, "metadata", "labels")))), byPolicy)
	}
	for _, namespace := range s.reserved() {
		expect(t, "an own object in "+namespace, remove(f.exists(t, s.object("deleted", with(namespace, "metadata", "namespace")))), byPolicy)
	}
}

// tryPatch tries the patches of Events, the only objects that the agent patches.
func (f *fence) tryPatch(t *testing.T, s sample) {
	t.Helper()
	lab.Equal(t, "the kind that the agent patches", "Event", s.kind)
	patch := func(o *unstructured.Unstructured, change func(map[string]any)) error {
		part := map[string]any{}
		change(part)
		text, err := json.Marshal(part)
		lab.Must(t, err)
		for _, kind := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
			_, one := f.agent.Resource(s.resource).Namespace(o.GetNamespace()).Patch(t.Context(), o.GetName(), kind, text, dryPatch)
			if err = errors.Join(err, one); one == nil {
				return nil // the least strict answer
			}
		}
		return err
	}
	repeated := with(map[string]any{"count": int64(2), "lastObservedTime": "2026-01-02T03:04:06.000000Z"}, "series")
	own := f.exists(t, s.object("own"))
	foreign := f.exists(t, s.object("foreign", with("kubelet", "reportingController")))
	expect(t, "an own Event that is repeated", patch(own, repeated), "")
	expect(t, "another's Event", patch(foreign, repeated), byPolicy)
	for _, name := range added {
		expect(t, name, patch(own, metadata(s)[name]), byPolicy)
	}
}

// trySubresource tries to change something else by a write of a subresource: it is refused, or has no effect.
func (f *fence) trySubresource(t *testing.T, s sample, subresource string) {
	t.Helper()
	everyones := s
	if s.kind != "ServiceImport" { // the status of the others is about users' objects
		everyones.label = ""
	}
	before := f.exists(t, everyones.object("status"))
	update := func(o *unstructured.Unstructured, changes ...func(map[string]any)) (*unstructured.Unstructured, error) {
		o = o.DeepCopy()
		for _, change := range changes {
			change(o.Object)
		}
		return f.agent.Resource(s.resource).Namespace(o.GetNamespace()).Update(t.Context(), o, dryUpdate, subresource)
	}
	_, err := update(before, ownCondition)
	expect(t, "a condition of its own", err, "")
	for name, change := range metadata(s) {
		after, err := update(before, change, ownCondition)
		if err != nil {
			expect(t, name, err, byPolicy)
			continue
		}
		if diff := cmp.Diff(withoutStatus(before), withoutStatus(after)); diff != "" {
			t.Errorf("%s is written by %s of %s:\n%s", name, subresource, s.kind, diff)
		}
	}
	switch s.kind {
	case "Service":
		f.tryServiceStatus(t, s, update)
	case "ServiceImport":
		for name, labels := range s.foreignLabels() {
			_, err := update(f.exists(t, s.object("status-"+name, with(labels, "metadata", "labels"))), ownCondition)
			expect(t, "one with "+name, err, byPolicy)
		}
	}
}

// tryServiceStatus tries the parts of a Service's status that are not the agent's.
func (f *fence) tryServiceStatus(t *testing.T, s sample, update func(*unstructured.Unstructured, ...func(map[string]any)) (*unstructured.Unstructured, error)) {
	t.Helper()
	s.label = ""
	created := f.exists(t, s.object("balanced", with("LoadBalancer", "spec", "type")))
	ingress := func(address string) func(map[string]any) {
		return with([]any{map[string]any{"ip": address}}, "status", "loadBalancer", "ingress")
	}
	ingress("192.0.2.1")(created.Object)
	others := with([]any{condition("example.com/Other", "True")}, "status", "conditions")
	others(created.Object)
	balanced, err := f.admin.Resource(s.resource).Namespace(s.scope).UpdateStatus(t.Context(), created, metav1.UpdateOptions{})
	lab.Must(t, err)
	both := func(status string) func(map[string]any) {
		return with([]any{condition("example.com/Other", status), condition("tombolo-mcs.io/Alias", "True")}, "status", "conditions")
	}
	for what, tc := range map[string]struct {
		change func(map[string]any)
		want   string
	}{
		"its condition beside another's":  {both("True"), ""},
		"another address":                 {ingress("203.0.113.9"), byPolicy},
		"no address":                      {with(map[string]any{}, "status", "loadBalancer"), byPolicy},
		"no status":                       {func(o map[string]any) { delete(o, "status") }, byPolicy},
		"another's condition":             {both("False"), byPolicy},
		"another's condition is removed":  {ownCondition, byPolicy},
		"another's condition beside ours": {with([]any{condition("example.com/Other", "True"), condition("example.com/New", "True")}, "status", "conditions"), byPolicy},
	} {
		_, err := update(balanced, tc.change)
		expect(t, what, err, tc.want)
	}
	for _, namespace := range s.reserved() {
		_, err := update(f.exists(t, s.object("status", with(namespace, "metadata", "namespace"))), ownCondition)
		expect(t, "in "+namespace, err, byPolicy)
	}
}

func condition(kind, status string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": "Alias", "message": "", "lastTransitionTime": "2026-01-02T03:04:05Z"}
}

var ownCondition = with([]any{condition("tombolo-mcs.io/Alias", "True")}, "status", "conditions")

// withoutStatus returns an object without its status, and what every write changes.
func withoutStatus(o *unstructured.Unstructured) map[string]any {
	o = o.DeepCopy()
	delete(o.Object, "status")
	o.SetManagedFields(nil)
	o.SetResourceVersion("")
	return o.Object
}

// attempts are changes of a valid object that the agent may not write.
func (s sample) attempts() map[string]func(map[string]any) {
	all := map[string]func(map[string]any){}
	for name, change := range s.refused {
		all[name] = change
	}
	for _, name := range added {
		all[name] = metadata(s)[name]
	}
	if s.label != "" {
		all["no label"] = with(map[string]any{}, "metadata", "labels")
		all["another's label"] = with("x", "metadata", "labels", s.label)
	}
	for _, namespace := range s.reserved() {
		all["in "+namespace] = with(namespace, "metadata", "namespace")
	}
	return all
}

// reserved returns the namespaces in which the agent may not write objects of the kind.
func (s sample) reserved() []string {
	if s.label == "" && s.kind != "Service" || s.scope == "" {
		return nil
	}
	return reserved
}

// foreignLabels returns labels of objects that are not the agent's; none if the kind needs no label.
func (s sample) foreignLabels() map[string]map[string]any {
	if s.label == "" {
		return nil
	}
	other := map[string]string{managedBy: sliceManagedBy, sliceManagedBy: managedBy}[s.label]
	return map[string]map[string]any{"no-label": {}, "anothers-label": {s.label: "Helm"}, "a-label-of-other-kinds": {other: clusterset.ManagedBy}}
}

// moves reports whether a change names another object.
func moves(s sample, change func(map[string]any)) bool {
	before, after := s.object("x"), s.object("x", change)
	return after.GetNamespace() != before.GetNamespace() || after.GetName() != before.GetName()
}

// exists creates an object as the administrator, or returns the existing one.
func (f *fence) exists(t *testing.T, o *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	group := o.GroupVersionKind()
	for r, s := range samples {
		if r.Group != group.Group || s.kind != group.Kind {
			continue
		}
		resource := f.admin.Resource(r.WithVersion(s.version)).Namespace(o.GetNamespace())
		created, err := resource.Create(t.Context(), o, metav1.CreateOptions{})
		if err != nil {
			created, err = resource.Get(t.Context(), o.GetName(), metav1.GetOptions{})
		}
		lab.Must(t, err)
		return created
	}
	t.Fatalf("no sample of %s", group)
	return nil
}

// expect fails the test unless an attempt is refused for a reason, or succeeds if that is empty.
func expect(t *testing.T, what string, err error, want string) {
	t.Helper()
	if problem := refused(err, want); problem != nil {
		t.Errorf("%s: %v", what, problem)
	}
}

// refused returns an error unless a request was refused for a reason, or succeeded if that is empty.
func refused(err error, want string) error {
	switch {
	case want == "" && err != nil:
		return err
	case want != "" && err == nil:
		return errors.New("it succeeded, want that it is refused")
	case want != "" && !strings.Contains(err.Error(), want):
		return fmt.Errorf("it is refused with %w, want %q", err, want)
	}
	return nil
}
