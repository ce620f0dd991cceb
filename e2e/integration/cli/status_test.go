// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// exports: the agent that join has installed works in both directions. It writes the status of each kind of which users create objects.
func (w *world) exports(t *testing.T) {
	t.Helper()
	web := framework.Key{Namespace: "default", Name: "web"}
	w.create(t, "east", framework.Service(web, framework.Port("", 80)), framework.Export(web),
		framework.Grant(web, policyv1alpha1.Peer{Clusters: []policyv1alpha1.ClusterID{"west"}}),
		framework.DenyImports("no-west", policyv1alpha1.Peer{Clusters: []policyv1alpha1.ClusterID{"west"}}),
		&policyv1alpha1.ServiceImportRoutingPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: web.Namespace, Name: web.Name},
			Spec:       policyv1alpha1.ServiceImportRoutingPolicySpec{Sources: []policyv1alpha1.Source{{SameCluster: true}}},
		})
	lab.Eventually(t, waitLimit, func(ctx context.Context) error {
		if err := w.client(t, "east").Get(ctx, web, &mcsv1beta1.ServiceImport{}); err != nil {
			return err
		}
		objects, err := w.usersObjects(ctx)
		if err == nil && len(objects) != 4 {
			err = fmt.Errorf("users have created %d objects", len(objects))
		}
		for name, object := range objects {
			if _, found := object.Object["status"]; !found {
				err = fmt.Errorf("%s has no status", name)
			}
		}
		return err
	})
}

// claimsNothing: no object that leave has left says that a cluster that has left uses it.
func (w *world) claimsNothing(t *testing.T) {
	t.Helper()
	objects, err := w.usersObjects(t.Context())
	lab.Must(t, err)
	if len(objects) != 4 {
		t.Errorf("leave has left %d objects of users", len(objects))
	}
	for name, object := range objects {
		if conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions"); len(conditions) > 0 {
			t.Errorf("%s of a cluster that has left has the conditions %v", name, conditions)
		}
	}
}

// usersObjects returns the objects in east of the kinds of which users create objects, and which have a status.
func (w *world) usersObjects(ctx context.Context) (map[string]*unstructured.Unstructured, error) {
	scheme, err := membership.Scheme()
	if err != nil {
		return nil, err
	}
	c, err := w.Cluster("east").Client(scheme)
	if err != nil {
		return nil, err
	}
	kinds := []schema.GroupVersionKind{mcsv1beta1.SchemeGroupVersion.WithKind("ServiceExport")}
	for kind, of := range scheme.KnownTypes(policyv1alpha1.GroupVersion) {
		if _, hasStatus := of.FieldByName("Status"); hasStatus && of.PkgPath() == reflect.TypeFor[policyv1alpha1.ServiceExportGrant]().PkgPath() {
			kinds = append(kinds, policyv1alpha1.GroupVersion.WithKind(kind))
		}
	}
	result := map[string]*unstructured.Unstructured{}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := c.List(ctx, list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			if !clusterset.IsManaged(list.Items[i].GetLabels()) {
				result[kind.Kind+" "+list.Items[i].GetName()] = &list.Items[i]
			}
		}
	}
	return result, nil
}
