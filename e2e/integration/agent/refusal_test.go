// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestImporterRefuses: without the hub's policies, the importer refuses by itself what a hostile member writes, says so,
// and takes the rest.
//
// spec: E1, E7
func TestImporterRefuses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Member("a"), lab.Member("b"))
	b := w.members["b"]
	w.unfence(t)
	b.startWith(t, func(o *agent.Options) { o.DenyNamespaces = []string{"denied"} })
	ns := namespace(t, b)
	for _, name := range []string{"denied", "member-a"} { // the second as on a cluster that is the hub as well
		lab.Must(t, b.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}

	heartbeat := &hubv1alpha1.Heartbeat{
		ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: hubv1alpha1.HeartbeatName},
		Spec:       hubv1alpha1.HeartbeatSpec{RenewTime: metav1.NowMicro(), Publication: hubv1alpha1.PublicationComplete},
	}
	lab.Must(t, w.hubKube.Create(t.Context(), heartbeat))
	tests := map[string]struct {
		key      key
		service  func(*hubv1alpha1.PublishedService)
		address  string
		imported bool
		reason   string
	}{
		"another-member": {address: "10.2.0.9", imported: true, reason: "10.2.0.9 is outside the cluster's pod and node CIDRs"},
		"loopback":       {address: "127.0.0.1", imported: true, reason: "127.0.0.1 is loopback"},
		"metadata":       {address: "169.254.169.254", imported: true, reason: "169.254.169.254 is loopback, link-local"},
		"label": {
			service: func(s *hubv1alpha1.PublishedService) {
				s.Spec.Labels = map[string]hubv1alpha1.LabelValue{"service.kubernetes.io/headless": ""}
			},
			reason: `label "service.kubernetes.io/headless" is illegal or reserved`,
		},
		"name": {
			service: func(s *hubv1alpha1.PublishedService) { s.Spec.Service = "victim" },
			reason:  "its name does not say that it is service " + ns + "/victim",
		},
		"kubernetes": {
			key: key{Namespace: metav1.NamespaceDefault, Name: "kubernetes"}, reason: "service default/kubernetes is reserved",
		},
		"hub":      {key: key{Namespace: "member-a", Name: "web"}},
		"reserved": {key: key{Namespace: metav1.NamespaceSystem, Name: "kube-dns"}},
		"denied":   {key: key{Namespace: "denied", Name: "web"}},
	}
	for name, test := range tests {
		k := test.key
		if k.Name == "" {
			k = key{Namespace: ns, Name: name}
		}
		w.forge(t, k, test.service, "10.1.0.1", test.address)
	}
	witness := key{Namespace: ns, Name: "witness"} // what comes last has come
	w.forge(t, witness, nil, "10.1.0.1")
	b.imported(t, witness)
	b.gauge(t, "tombolo_refused_records", 6) // the others are of namespaces that take no imports
	for name, test := range tests {
		k := test.key
		if k.Name == "" {
			k = key{Namespace: ns, Name: name}
		}
		if test.imported {
			b.imported(t, k)
			b.endpoints(t, k, "a 10.1.0.1:http:8080")
		} else if err := b.Get(t.Context(), k, &mcsv1beta1.ServiceImport{}); client.IgnoreNotFound(err) != nil || err == nil {
			t.Errorf("%s was imported (%v)", k, err)
		}
		if test.reason != "" {
			eventually(t, func(ctx context.Context) error { return b.complains(ctx, k, test.reason) })
		}
	}
	inNamespace := client.InNamespace("member-a")
	lab.Must(t, w.hubKube.DeleteAllOf(t.Context(), &hubv1alpha1.PublishedService{}, inNamespace))
	lab.Must(t, w.hubKube.DeleteAllOf(t.Context(), &hubv1alpha1.PublishedEndpoints{}, inNamespace))
	b.gauge(t, "tombolo_refused_records", 0)
}

// unfence removes the hub's policies and waits until they are out of force.
func (w *world) unfence(t *testing.T) {
	t.Helper()
	lab.Must(t, w.hubKube.DeleteAllOf(t.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{}))
	probe := &hubv1alpha1.Heartbeat{
		ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: hubv1alpha1.HeartbeatName, Labels: map[string]string{"refused": ""}},
		Spec:       hubv1alpha1.HeartbeatSpec{RenewTime: metav1.NowMicro(), Publication: hubv1alpha1.PublicationPartial},
	}
	foreign := &hubv1alpha1.PublishedEndpoints{
		ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: "wrong"},
		Spec: hubv1alpha1.PublishedEndpointsSpec{
			Namespace: metav1.NamespaceSystem, Service: "web", AddressType: "IPv4",
			Groups: []hubv1alpha1.EndpointGroup{{Addresses: []hubv1alpha1.IPAddress{"127.0.0.1"}}},
		},
	}
	eventually(t, func(ctx context.Context) error {
		return errors.Join(
			w.hubKube.Create(ctx, probe.DeepCopy(), client.DryRunAll), w.hubKube.Create(ctx, foreign.DeepCopy(), client.DryRunAll))
	})
}

// forge writes the records of a service as member a, with http on these addresses.
func (w *world) forge(t *testing.T, k key, twist func(*hubv1alpha1.PublishedService), addresses ...string) {
	t.Helper()
	w.forgeAs(t, "a", k, twist, addresses...)
}

// forgeAs is forge as another member.
func (w *world) forgeAs(t *testing.T, id string, k key, twist func(*hubv1alpha1.PublishedService), addresses ...string) {
	t.Helper()
	name := k.Namespace + "." + k.Name
	endpoints := &hubv1alpha1.PublishedEndpoints{
		ObjectMeta: metav1.ObjectMeta{Namespace: "member-" + id, Name: name + ".0123456789"},
		Spec: hubv1alpha1.PublishedEndpointsSpec{
			Namespace: hubv1alpha1.NamespaceName(k.Namespace), Service: hubv1alpha1.ServiceName(k.Name), AddressType: "IPv4",
			Ports:  []hubv1alpha1.PublishedEndpointPort{{Name: "http", Protocol: "TCP", Port: 8080}},
			Groups: []hubv1alpha1.EndpointGroup{{}},
		},
	}
	for _, address := range addresses {
		if address != "" {
			endpoints.Spec.Groups[0].Addresses = append(endpoints.Spec.Groups[0].Addresses, hubv1alpha1.IPAddress(address))
		}
	}
	service := &hubv1alpha1.PublishedService{
		ObjectMeta: metav1.ObjectMeta{Namespace: "member-" + id, Name: name},
		Spec: hubv1alpha1.PublishedServiceSpec{
			Namespace: hubv1alpha1.NamespaceName(k.Namespace), Service: hubv1alpha1.ServiceName(k.Name),
			ExportedAt: metav1.Now(), Type: mcsv1beta1.ClusterSetIP, IPFamilies: []hubv1alpha1.IPFamily{"IPv4"},
			Ports: []hubv1alpha1.PublishedPort{{Name: "http", Protocol: "TCP", Port: 80}},
		},
	}
	if twist != nil {
		twist(service)
	}
	for _, record := range []client.Object{endpoints, service} {
		lab.Must(t, retry.RetryOnConflict(retry.DefaultBackoff, func() error { return w.hubKube.Create(t.Context(), record) })) // with its quota
	}
}

// complains returns nil once there is an Event about a refused record of a service that gives this reason.
func (m *member) complains(ctx context.Context, k key, reason string) error {
	list := &eventsv1.EventList{}
	if err := m.List(ctx, list, client.InNamespace(k.Namespace)); err != nil {
		return err
	}
	for _, event := range list.Items {
		if event.Reason == "RecordRefused" && event.Regarding.Name == k.Name && strings.Contains(event.Note, reason) {
			return nil
		}
	}
	return fmt.Errorf("%s: no Event says that %s is refused because %s", m.id, k, reason)
}
