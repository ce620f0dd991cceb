// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Records returns valid records of a service of a member: with the port http:80, and with ready endpoints of these addresses.
func Records(id string, k Key, addresses ...string) (*hubv1alpha1.PublishedService, *hubv1alpha1.PublishedEndpoints) {
	namespace, name := clusterset.ClusterID(id).HubNamespace(), k.Namespace+"."+k.Name
	service := &hubv1alpha1.PublishedService{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: hubv1alpha1.PublishedServiceSpec{
			Namespace: hubv1alpha1.NamespaceName(k.Namespace), Service: hubv1alpha1.ServiceName(k.Name),
			ExportedAt: metav1.Now(), Type: mcsv1beta1.ClusterSetIP, IPFamilies: []hubv1alpha1.IPFamily{"IPv4"},
			Ports: []hubv1alpha1.PublishedPort{{Name: "http", Protocol: "TCP", Port: 80}},
		},
	}
	endpoints := &hubv1alpha1.PublishedEndpoints{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + ".0123456789"},
		Spec: hubv1alpha1.PublishedEndpointsSpec{
			Namespace: service.Spec.Namespace, Service: service.Spec.Service, AddressType: "IPv4",
			Ports:  []hubv1alpha1.PublishedEndpointPort{{Name: "http", Protocol: "TCP", Port: 8080}},
			Groups: []hubv1alpha1.EndpointGroup{{Ready: new(true)}},
		},
	}
	for _, address := range addresses {
		endpoints.Spec.Groups[0].Addresses = append(endpoints.Spec.Groups[0].Addresses, hubv1alpha1.IPAddress(address))
	}
	return service, endpoints
}

// Publish writes the records of a service as a member would that has no agent: Records after change. A record without
// addresses is not written.
func (w *World) Publish(t testing.TB, id string, k Key, change func(*hubv1alpha1.PublishedService), addresses ...string) {
	t.Helper()
	service, endpoints := Records(id, k, addresses...)
	if change != nil {
		change(service)
	}
	if len(addresses) > 0 {
		w.createRecord(t, endpoints)
	}
	w.createRecord(t, service)
}

// createRecord retries what is refused until the hub's policies have found a new Member, and conflicts of its quota.
func (w *World) createRecord(t testing.TB, record client.Object) {
	t.Helper()
	Eventually(t, func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(w.HubClient.Create(ctx, record.DeepCopyObject().(client.Object)))
	})
}

// Enroll creates the Member of a cluster that does not exist. It has no quota, and its pods are in 10.99.0.0/16.
func (w *World) Enroll(t testing.TB, id string) {
	t.Helper()
	namespace := clusterset.ClusterID(id).HubNamespace()
	CreateNamespace(t, namespace, w.HubClient)
	lab.Must(t, w.HubClient.Create(t.Context(), &hubv1alpha1.Member{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: hubv1alpha1.MemberName},
		Spec:       hubv1alpha1.MemberSpec{ClusterID: id, PodCIDRs: []hubv1alpha1.CIDR{"10.99.0.0/16"}},
	}))
}

// ChangeMember changes a Member as the hub's administrator.
func (w *World) ChangeMember(t testing.TB, id string, change func(*hubv1alpha1.MemberSpec)) {
	t.Helper()
	m := &hubv1alpha1.Member{}
	k := Key{Namespace: clusterset.ClusterID(id).HubNamespace(), Name: hubv1alpha1.MemberName}
	Update(t, w.HubClient, k, m, func() { change(&m.Spec) })
}

// Heartbeat returns a new heartbeat of a member whose publication is complete.
func Heartbeat(id string) *hubv1alpha1.Heartbeat {
	return &hubv1alpha1.Heartbeat{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterset.ClusterID(id).HubNamespace(), Name: hubv1alpha1.HeartbeatName},
		Spec:       hubv1alpha1.HeartbeatSpec{RenewTime: metav1.NowMicro(), Publication: hubv1alpha1.PublicationComplete},
	}
}

// UID returns the UID of a cluster: that of its namespace kube-system.
func (m *Member) UID(t testing.TB) string {
	t.Helper()
	return string(Read(t, m, Key{Name: metav1.NamespaceSystem}, &corev1.Namespace{}).UID)
}
