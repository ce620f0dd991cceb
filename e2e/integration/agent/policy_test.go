// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestAdmissionPolicy: with the agent's token, only objects with the managed-by label can be written, although RBAC allows all objects of
// these kinds.
//
// spec: K4
func TestAdmissionPolicy(t *testing.T) {
	t.Parallel()
	cluster := lab.Start(t, lab.Member("a")).Cluster("a")
	lab.Must(t, membership.InstallCRDs(t.Context(), cluster))
	config, err := membership.InstallAgent(t.Context(), cluster)
	lab.Must(t, err)
	lab.Must(t, membership.InstallAutoExport(t.Context(), cluster))
	admin := membership.Client(t, cluster)
	plain, err := client.New(config, client.Options{Scheme: admin.Scheme()})
	lab.Must(t, err)
	attacker := client.WithFieldOwner(plain, clusterset.FieldManager)
	world.CreateNamespace(t, "shop", admin)

	mark, sliceMark := map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy}, map[string]string{discoveryv1.LabelManagedBy: clusterset.ManagedBy}
	of := func(object client.Object, namespace, name string, labels map[string]string) client.Object {
		object.SetNamespace(namespace)
		object.SetName(name)
		object.SetLabels(labels)
		switch o := object.(type) {
		case *corev1.Service:
			o.Spec.Type, o.Spec.Ports = corev1.ServiceTypeLoadBalancer, []corev1.ServicePort{{Port: 80}}
		case *discoveryv1.EndpointSlice:
			o.AddressType = discoveryv1.AddressTypeIPv4
			if labels != nil {
				o.Labels = sliceMark
			}
		case *mcsv1beta1.ServiceImport:
			o.Spec.Type, o.Spec.Ports = mcsv1beta1.ClusterSetIP, []mcsv1beta1.ServicePort{{Port: 80}}
		case *aboutv1beta1.ClusterProperty:
			o.Namespace, o.Spec.Value = "", "x"
		}
		return object
	}
	const writes, changes = "writes only objects with the managed-by label", "changes and deletes only objects with the managed-by label"
	world.Eventually(t, func(ctx context.Context) error { // the API server reads the policy after it was created
		return refused(attacker.Create(ctx, of(&corev1.Service{}, "shop", "early", nil), client.DryRunAll), writes)
	})

	t.Run("ServiceExport", func(t *testing.T) { // which the agent does not change
		t.Parallel()
		ctx := t.Context()
		unmarked := func(name string) client.Object { return of(&mcsv1beta1.ServiceExport{}, "shop", name, nil) }
		world.Eventually(t, func(ctx context.Context) error { // the right is new
			return refused(attacker.Create(ctx, unmarked("web"), client.DryRunAll), writes)
		})
		lab.Must(t, admin.Create(ctx, unmarked("foreign")))
		lab.Must(t, refused(attacker.Delete(ctx, unmarked("foreign")), changes))
		own := of(&mcsv1beta1.ServiceExport{}, "shop", "web", mark)
		lab.Must(t, attacker.Create(ctx, own))
		lab.Must(t, attacker.Delete(ctx, own))
	})
	for name, kind := range map[string]client.Object{
		"Service": &corev1.Service{}, "EndpointSlice": &discoveryv1.EndpointSlice{}, "ServiceImport": &mcsv1beta1.ServiceImport{},
		"ClusterProperty": &aboutv1beta1.ClusterProperty{},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			object := func(namespace, name string, labels map[string]string) client.Object {
				return of(kind.DeepCopyObject().(client.Object), namespace, name, labels)
			}
			check := func(what string, err error, want string) {
				t.Helper()
				if problem := refused(err, want); problem != nil {
					t.Errorf("%s: %v", what, problem)
				}
			}
			check("create one without the mark", attacker.Create(ctx, object("shop", "web", nil)), writes)
			check("create one with the mark", attacker.Create(ctx, object("shop", "web", mark)), "")
			foreign := object("shop", "foreign", nil)
			lab.Must(t, admin.Create(ctx, foreign))
			foreign.SetAnnotations(map[string]string{"a": "b"})
			check("change one of others", attacker.Update(ctx, foreign), writes)
			foreign.SetLabels(object("shop", "foreign", mark).GetLabels())
			check("take over one of others", attacker.Update(ctx, foreign), changes)
			check("delete one of others", attacker.Delete(ctx, foreign), changes)

			own := object("shop", "web", nil)
			lab.Must(t, admin.Get(ctx, client.ObjectKeyFromObject(own), own))
			marked := own.GetLabels()
			own.SetLabels(nil)
			lab.Must(t, admin.Update(ctx, own)) // another user removes the label
			check("delete one without its label", attacker.Delete(ctx, own), changes)
			own.SetLabels(marked)
			check("restore the label", attacker.Update(ctx, own), "")
			check("delete one with the mark", attacker.Delete(ctx, own), "")
			if service, ok := foreign.(*corev1.Service); ok {
				lab.Must(t, admin.Get(ctx, client.ObjectKeyFromObject(service), service))
				meta.SetStatusCondition(&service.Status.Conditions, metav1.Condition{Type: "tombolo-mcs.io/Alias", Status: metav1.ConditionTrue, Reason: "Alias"})
				check("write a condition", attacker.Status().Update(ctx, service), "")
				service.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}
				check("write an address", attacker.Status().Update(ctx, service), "writes only the conditions of a Service's status")
			}
			if name == "ClusterProperty" {
				check("write the cluster's ID", attacker.Create(ctx, object("", aboutv1beta1.ClusterIDProperty, mark)), "does not write the cluster's ID")
				return
			}
			check("in kube-system", attacker.Create(ctx, object(metav1.NamespaceSystem, "web", mark)), "writes nothing in the namespaces of Kubernetes")
		})
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
