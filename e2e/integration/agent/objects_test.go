// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// key is a service's.
type key = client.ObjectKey

// clusterIPService returns a dual-stack Service with the ports given.
func clusterIPService(k key, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name},
		Spec: corev1.ServiceSpec{
			IPFamilyPolicy: new(corev1.IPFamilyPolicyPreferDualStack),
			Ports:          ports,
		},
	}
}

func headlessService(k key, ports ...corev1.ServicePort) *corev1.Service {
	service := clusterIPService(k, ports...)
	service.Spec.ClusterIP = corev1.ClusterIPNone
	service.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	service.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
	return service
}

func port(name string, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Protocol: corev1.ProtocolTCP, Port: number, TargetPort: intstr.FromInt32(number + 8000)}
}

func export(k key) *mcsv1beta1.ServiceExport {
	return &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}}
}

// slice returns an EndpointSlice as the EndpointSlice controller would write it for the Service's ports.
func slice(service *corev1.Service, suffix string, family discoveryv1.AddressType, addresses ...string) *discoveryv1.EndpointSlice {
	result := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: service.Namespace, Name: service.Name + "-" + suffix,
			Labels: map[string]string{discoveryv1.LabelServiceName: service.Name, discoveryv1.LabelManagedBy: "endpointslice-controller.k8s.io"},
		},
		AddressType: family,
	}
	for _, p := range service.Spec.Ports {
		result.Ports = append(result.Ports, discoveryv1.EndpointPort{Name: new(p.Name), Protocol: new(p.Protocol), Port: new(p.TargetPort.IntVal)})
	}
	for _, address := range addresses {
		result.Endpoints = append(result.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{address},
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
			NodeName:   new("node-1"),
			Zone:       new("zone-1"),
		})
	}
	return result
}

// exportService creates a Service, its slices and its export.
func (m *member) exportService(t *testing.T, service *corev1.Service, slices ...*discoveryv1.EndpointSlice) {
	t.Helper()
	lab.Must(t, m.Create(t.Context(), service))
	for _, s := range slices {
		lab.Must(t, m.Create(t.Context(), s))
	}
	lab.Must(t, m.Create(t.Context(), export(client.ObjectKeyFromObject(service))))
}

// imported returns the import once it is Ready, with its derived Service.
func (m *member) imported(t *testing.T, k key) (*mcsv1beta1.ServiceImport, *corev1.Service) {
	t.Helper()
	serviceImport, derived := &mcsv1beta1.ServiceImport{}, &corev1.Service{}
	eventually(t, func(ctx context.Context) error {
		if err := m.Get(ctx, k, serviceImport); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(serviceImport.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)) {
			return fmt.Errorf("%s: ServiceImport %s is not ready: %+v", m.id, k, serviceImport.Status)
		}
		return m.Get(ctx, key{Namespace: k.Namespace, Name: serviceImport.Annotations["multicluster.kubernetes.io/derived-service"]}, derived)
	})
	return serviceImport, derived
}

// mirrored returns the slices mirrored for an import.
func (m *member) mirrored(ctx context.Context, k key) ([]discoveryv1.EndpointSlice, error) {
	list := &discoveryv1.EndpointSliceList{}
	err := m.List(ctx, list, client.InNamespace(k.Namespace), client.MatchingLabels{mcsv1beta1.LabelServiceName: k.Name})
	return list.Items, err
}

// endpoints waits until the slices mirrored for an import hold exactly these "source address:port" entries.
func (m *member) endpoints(t *testing.T, k key, want ...string) {
	t.Helper()
	eventually(t, func(ctx context.Context) error { return m.uses(ctx, k, want...) })
}

// uses returns nil once the mirrored slices of an import hold these endpoints, as member.endpoints has them, and no others.
func (m *member) uses(ctx context.Context, k key, want ...string) error {
	slices, err := m.mirrored(ctx, k)
	if err != nil {
		return err
	}
	got := sets.New[string]()
	for _, s := range slices {
		for _, e := range s.Endpoints {
			for _, p := range s.Ports {
				got.Insert(fmt.Sprintf("%s %s:%s:%d", s.Labels[mcsv1beta1.LabelSourceCluster], e.Addresses[0], *p.Name, *p.Port))
			}
		}
	}
	if !got.Equal(sets.New(want...)) {
		return fmt.Errorf("%s: endpoints of %s are %v, want %v", m.id, k, sets.List(got), want)
	}
	return nil
}

// condition waits until the export's condition has this status and reason, and returns it.
func (m *member) condition(t *testing.T, k key, kind mcsv1beta1.ServiceExportConditionType, status metav1.ConditionStatus, reason string) metav1.Condition {
	t.Helper()
	return m.conditionWithin(t, patience, k, kind, status, reason)
}

// conditionWithin is condition with a patience of its own.
func (m *member) conditionWithin(t *testing.T, d time.Duration, k key, kind mcsv1beta1.ServiceExportConditionType, status metav1.ConditionStatus, reason string) metav1.Condition {
	t.Helper()
	var found metav1.Condition
	lab.Eventually(t, d, func(ctx context.Context) error {
		e := &mcsv1beta1.ServiceExport{}
		if err := m.Get(ctx, k, e); err != nil {
			return err
		}
		c := meta.FindStatusCondition(e.Status.Conditions, string(kind))
		if c == nil || c.Status != status || c.Reason != reason || c.ObservedGeneration != e.Generation {
			return fmt.Errorf("%s: conditions of ServiceExport %s are %+v, want %s=%s/%s", m.id, k, e.Status.Conditions, kind, status, reason)
		}
		found = *c
		return nil
	})
	return found
}

// gone waits until nothing of an import is left.
func (m *member) gone(t *testing.T, k key) {
	t.Helper()
	eventually(t, func(ctx context.Context) error {
		for _, list := range []client.ObjectList{&mcsv1beta1.ServiceImportList{}, &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}} {
			if err := m.List(ctx, list, client.InNamespace(k.Namespace)); err != nil {
				return err
			}
			err := meta.EachListItem(list, func(object runtime.Object) error {
				o := object.(client.Object)
				if o.GetName() == k.Name && isImport(o) || o.GetLabels()[mcsv1beta1.LabelServiceName] == k.Name {
					return fmt.Errorf("%s: %T %s is still there", m.id, o, o.GetName())
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func isImport(o client.Object) bool {
	_, ok := o.(*mcsv1beta1.ServiceImport)
	return ok
}
