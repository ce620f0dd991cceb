// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package surveytest builds hubs and objects for tests of what reads a survey.
package surveytest

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
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Now is the time of each snapshot.
var Now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Records are the objects of a hub.
type Records struct {
	client.Reader
	Members    []hubv1alpha1.Member
	Heartbeats []hubv1alpha1.Heartbeat
	Services   []hubv1alpha1.PublishedService
	Endpoints  []hubv1alpha1.PublishedEndpoints
}

// List returns the objects of a kind.
func (r *Records) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch l := into.(type) {
	case *hubv1alpha1.MemberList:
		l.Items = r.Members
	case *hubv1alpha1.HeartbeatList:
		l.Items = r.Heartbeats
	case *hubv1alpha1.PublishedServiceList:
		l.Items = r.Services
	case *hubv1alpha1.PublishedEndpointsList:
		l.Items = r.Endpoints
	case *hubv1alpha1.PublishedGatewayList:
	default:
		return fmt.Errorf("%T", into)
	}
	return nil
}

// Member adds a cluster with the pod CIDR 10.<number>.0.0/16.
func (r *Records) Member(id clusterset.ClusterID) {
	m := hubv1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: hubv1alpha1.MemberName}}
	m.Spec.ClusterID = string(id)
	m.Spec.PodCIDRs = []hubv1alpha1.CIDR{hubv1alpha1.CIDR(fmt.Sprintf("10.%d.0.0/16", len(r.Members)+1))}
	r.Members = append(r.Members, m)
}

// Beat adds a heartbeat of a cluster that the hub received at this age.
func (r *Records) Beat(id clusterset.ClusterID, version string, publication hubv1alpha1.Publication, ago time.Duration) {
	at := metav1.NewTime(Now.Add(-ago))
	beat := hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: hubv1alpha1.HeartbeatName}}
	beat.ManagedFields = []metav1.ManagedFieldsEntry{{Time: &at}}
	beat.Spec = hubv1alpha1.HeartbeatSpec{AgentVersion: version, Publication: publication, ClusterUID: "uid-" + string(id)}
	r.Heartbeats = append(r.Heartbeats, beat)
}

// Export adds an export of a cluster with an age in hours.
func (r *Records) Export(id clusterset.ClusterID, key string, hours int, ports ...hubv1alpha1.PublishedPort) *hubv1alpha1.PublishedService {
	k := Key(key)
	at := metav1.NewTime(Now.Add(-time.Duration(hours) * time.Hour))
	s := hubv1alpha1.PublishedService{ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: k.Namespace + "." + k.Name, CreationTimestamp: at}}
	s.Spec = hubv1alpha1.PublishedServiceSpec{
		Namespace: hubv1alpha1.NamespaceName(k.Namespace), Service: hubv1alpha1.ServiceName(k.Name), ExportedAt: at, Type: mcsv1beta1.ClusterSetIP,
		Ports: ports, IPFamilies: []hubv1alpha1.IPFamily{"IPv4"}, SessionAffinity: corev1.ServiceAffinityNone,
	}
	r.Services = append(r.Services, s)
	return &r.Services[len(r.Services)-1]
}

// Serve adds endpoints of a service, ready and not ready.
func (r *Records) Serve(id clusterset.ClusterID, key string, ready, unready int) {
	k, net := Key(key), 0
	for i, m := range r.Members {
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
	r.Endpoints = append(r.Endpoints, e)
}

// Hub returns the hub as survey reads it.
func (r *Records) Hub(t testing.TB) *survey.Hub {
	t.Helper()
	snapshot, err := hub.Read(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return survey.NewHub(survey.KubeContext{Name: "hub", Config: &rest.Config{Host: "https://hub.example"}}, snapshot, Now)
}

// Key returns the key of NAMESPACE/NAME.
func Key(text string) clusterset.ServiceKey {
	var k clusterset.ServiceKey
	for i := range text {
		if text[i] == '/' {
			k.Namespace, k.Name = text[:i], text[i+1:]
		}
	}
	return k
}

// Port returns a TCP port.
func Port(name string, number int32) hubv1alpha1.PublishedPort {
	return hubv1alpha1.PublishedPort{Name: name, Protocol: "TCP", Port: number}
}

// Import returns a managed ServiceImport with a condition, unless its type is empty, and with exporters.
func Import(key string, condition metav1.Condition, clusters ...string) mcsv1beta1.ServiceImport {
	k := Key(key)
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

// Export returns a ServiceExport with conditions.
func Export(key string, conditions ...metav1.Condition) mcsv1beta1.ServiceExport {
	k := Key(key)
	return mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}, Status: mcsv1beta1.ServiceExportStatus{Conditions: conditions}}
}

// UnlistedOfImports returns conditions of an import that kubectl-clusterset does not know as faults.
func UnlistedOfImports() map[string][]metav1.Condition {
	return map[string][]metav1.Condition{
		"a condition that this program does not know":  {ready(metav1.ConditionTrue, "Ready"), {Type: "Quarantined", Status: metav1.ConditionTrue, Reason: "Virus"}},
		"a condition of a later version that is False": {ready(metav1.ConditionTrue, "Ready"), {Type: "Audited", Status: metav1.ConditionFalse, Reason: "NoAuditor"}},
		"a condition that is Unknown":                  {ready(metav1.ConditionUnknown, "NoData")},
		"a condition with another status":              {ready("Perhaps", "Ready")},
		"no condition Ready":                           {{Type: conditions.TypeSourceUnusable, Status: metav1.ConditionFalse}},
	}
}

// UnlistedOfExports returns conditions of an export that kubectl-clusterset does not know as faults.
func UnlistedOfExports() map[string][]metav1.Condition {
	result := UnlistedOfImports()
	result["an export that is not Ready for a reason of a later version"] = []metav1.Condition{ready(metav1.ConditionFalse, "Embargo")}
	return result
}

func ready(status metav1.ConditionStatus, reason string) metav1.Condition {
	return metav1.Condition{Type: "Ready", Status: status, Reason: reason, Message: "See the news."}
}
