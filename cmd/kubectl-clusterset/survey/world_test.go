// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

type (
	mcsExport = mcsv1beta1.ServiceExport
	mcsImport = mcsv1beta1.ServiceImport
)

// now is the time of each snapshot.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// records are the objects of a hub.
type records struct {
	client.Reader
	members    []hubv1alpha1.Member
	heartbeats []hubv1alpha1.Heartbeat
	services   []hubv1alpha1.PublishedService
	endpoints  []hubv1alpha1.PublishedEndpoints
}

// List returns the objects of a kind.
func (r *records) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch l := into.(type) {
	case *hubv1alpha1.MemberList:
		l.Items = r.members
	case *hubv1alpha1.HeartbeatList:
		l.Items = r.heartbeats
	case *hubv1alpha1.PublishedServiceList:
		l.Items = r.services
	case *hubv1alpha1.PublishedEndpointsList:
		l.Items = r.endpoints
	case *hubv1alpha1.PublishedGatewayList:
	default:
		return fmt.Errorf("%T", into)
	}
	return nil
}

// member adds a cluster with the pod CIDR 10.<number>.0.0/16.
func (r *records) member(id clusterset.ClusterID) {
	m := hubv1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: hubv1alpha1.MemberName}}
	m.Spec.ClusterID = string(id)
	m.Spec.PodCIDRs = []hubv1alpha1.CIDR{hubv1alpha1.CIDR(fmt.Sprintf("10.%d.0.0/16", len(r.members)+1))}
	r.members = append(r.members, m)
}

// beats adds a heartbeat of a cluster that the hub received at this age.
func (r *records) beats(id clusterset.ClusterID, version string, publication hubv1alpha1.Publication, ago time.Duration) {
	at := metav1.NewTime(now.Add(-ago))
	beat := hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: hubv1alpha1.HeartbeatName}}
	beat.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &at}}
	beat.Spec = hubv1alpha1.HeartbeatSpec{AgentVersion: version, Publication: publication, ClusterUID: "uid-" + string(id)}
	r.heartbeats = append(r.heartbeats, beat)
}

// exports adds an export of a cluster with an age in hours.
func (r *records) exports(id clusterset.ClusterID, key string, hours int, ports ...hubv1alpha1.PublishedPort) *hubv1alpha1.PublishedService {
	k := keyOf(key)
	at := metav1.NewTime(now.Add(-time.Duration(hours) * time.Hour))
	s := hubv1alpha1.PublishedService{ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: k.Namespace + "." + k.Name, CreationTimestamp: at}}
	s.Spec = hubv1alpha1.PublishedServiceSpec{
		Namespace: hubv1alpha1.NamespaceName(k.Namespace), Service: hubv1alpha1.ServiceName(k.Name), ExportedAt: at, Type: mcsv1beta1.ClusterSetIP,
		Ports: ports, IPFamilies: []hubv1alpha1.IPFamily{"IPv4"}, SessionAffinity: corev1.ServiceAffinityNone,
	}
	r.services = append(r.services, s)
	return &r.services[len(r.services)-1]
}

// serves adds endpoints of a service, ready and not ready.
func (r *records) serves(id clusterset.ClusterID, key string, ready, unready int) {
	k, net := keyOf(key), 0
	for i, m := range r.members {
		if m.Spec.ClusterID == string(id) {
			net = i + 1
		}
	}
	e := hubv1alpha1.PublishedEndpoints{ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: k.Namespace + "." + k.Name + ".0123456789"}}
	e.Spec = hubv1alpha1.PublishedEndpointsSpec{
		Namespace: hubv1alpha1.NamespaceName(k.Namespace), Service: hubv1alpha1.ServiceName(k.Name), AddressType: "IPv4",
		Ports: []hubv1alpha1.PublishedEndpointPort{{Name: "http", Protocol: "TCP", Port: 8080}},
	}
	for i, n := range []int{ready, unready} {
		group := hubv1alpha1.EndpointGroup{Ready: new(i == 0)}
		for j := range n {
			group.Addresses = append(group.Addresses, hubv1alpha1.IPAddress(fmt.Sprintf("10.%d.%d.%d", net, i, j+1)))
		}
		if n > 0 {
			e.Spec.Groups = append(e.Spec.Groups, group)
		}
	}
	r.endpoints = append(r.endpoints, e)
}

// hub returns the hub as survey reads it.
func (r *records) hub(t testing.TB) *survey.Hub {
	t.Helper()
	snapshot, err := hub.Read(t.Context(), r)
	check.Must(t, err)
	return &survey.Hub{
		KubeContext: survey.KubeContext{Name: "hub", Config: &rest.Config{Host: "https://hub.example"}}, Snapshot: snapshot,
		Records: snapshot.Store("", clusterset.AddressRanges{}), Now: now, Renewed: snapshot.Renewed(),
	}
}

func keyOf(text string) clusterset.ServiceKey {
	var k clusterset.ServiceKey
	for i := range text {
		if text[i] == '/' {
			k.Namespace, k.Name = text[:i], text[i+1:]
		}
	}
	return k
}

func port(name string, number int32) hubv1alpha1.PublishedPort {
	return hubv1alpha1.PublishedPort{Name: name, Protocol: "TCP", Port: number}
}

func imported(key string, condition metav1.Condition, clusters ...string) mcsv1beta1.ServiceImport {
	k := keyOf(key)
	object := mcsv1beta1.ServiceImport{ObjectMeta: metav1.ObjectMeta{
		Namespace: k.Namespace, Name: k.Name, Labels: map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy},
	}}
	if condition.Type != "" {
		object.Status.Conditions = []metav1.Condition{condition}
	}
	for _, c := range clusters {
		object.Status.Clusters = append(object.Status.Clusters, mcsv1beta1.ClusterStatus{Cluster: c})
	}
	return object
}

func exported(key string, conditions ...metav1.Condition) mcsv1beta1.ServiceExport {
	k := keyOf(key)
	return mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}, Status: mcsv1beta1.ServiceExportStatus{Conditions: conditions}}
}
