// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/controllers/gather"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/internal/importing"
	"github.com/tombolo-mcs/tombolo/internal/liveness"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestListedMeanwhile: the first list of the hub may complete at any moment of a reconciliation. Data that was not read before must
// not count as withdrawn: the import stays.
func TestListedMeanwhile(t *testing.T) {
	t.Parallel()
	key := clusterset.ServiceKey{Namespace: "shop", Name: "web"}
	snapshot, err := hub.Read(t.Context(), hubWith(key))
	check.Must(t, err)
	reads := 0
	for at := 0; at == 0 || at <= reads; at++ { // before the first read, at each of them, and after the last
		store := hub.NewStore("b", clusterset.AddressRanges{})
		member := &readings{before: func(n int) {
			if n == at {
				snapshot.Fill(store)
			}
		}, imported: key}
		r := &Reconciler{
			Sources: gather.Reader{Cluster: "b", Member: member, Hub: store}, Member: member,
			State: func(clusterset.ClusterID) liveness.State { return liveness.Live }, Policies: liveness.DefaultPolicies(),
			Writer: apply.ToMember(conflicting{}, nil), Unsupported: NewUnsupportedSettings(), Returns: NewReturns(), Clock: clock.RealClock{},
		}
		member.read() // reading 0
		observed, err := r.gather(t.Context(), key)
		check.Must(t, err)
		if p := importing.PlanOf(observed); !p.IsImported {
			t.Errorf("listed at reading %d: the import is taken for withdrawn", at)
		}
		reads = member.count
	}
	if reads < 5 {
		t.Errorf("an import is reconciled with %d readings only", reads)
	}
}

// hubWith is a hub on which cluster a exports a service.
func hubWith(key clusterset.ServiceKey) client.Reader {
	at := func(id, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: clusterset.ClusterID(id).HubNamespace(), Name: name}
	}
	return &listing{
		members: []hubv1alpha1.Member{
			{ObjectMeta: at("a", hubv1alpha1.MemberName), Spec: hubv1alpha1.MemberSpec{ClusterID: "a", PodCIDRs: []hubv1alpha1.CIDR{"10.1.0.0/16"}}},
			{ObjectMeta: at("b", hubv1alpha1.MemberName), Spec: hubv1alpha1.MemberSpec{ClusterID: "b", PodCIDRs: []hubv1alpha1.CIDR{"10.2.0.0/16"}}},
		},
		heartbeats: []hubv1alpha1.Heartbeat{
			{ObjectMeta: at("a", hubv1alpha1.HeartbeatName), Spec: hubv1alpha1.HeartbeatSpec{Publication: hubv1alpha1.PublicationComplete}},
		},
		services: []hubv1alpha1.PublishedService{{ObjectMeta: at("a", key.Namespace+"."+key.Name), Spec: hubv1alpha1.PublishedServiceSpec{
			Namespace: hubv1alpha1.NamespaceName(key.Namespace), Service: hubv1alpha1.ServiceName(key.Name), Type: mcsv1beta1.ClusterSetIP,
			Ports:      []hubv1alpha1.PublishedPort{{Name: "http", Protocol: "TCP", Port: 80}},
			IPFamilies: []hubv1alpha1.IPFamily{"IPv4"},
		}}},
	}
}

// listing answers lists of the hub.
type listing struct {
	client.Reader
	members    []hubv1alpha1.Member
	heartbeats []hubv1alpha1.Heartbeat
	services   []hubv1alpha1.PublishedService
}

func (l *listing) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch list := into.(type) {
	case *hubv1alpha1.MemberList:
		list.Items = l.members
	case *hubv1alpha1.HeartbeatList:
		list.Items = l.heartbeats
	case *hubv1alpha1.PublishedServiceList:
		list.Items = l.services
	}
	return nil
}

// readings is the client of a member with one import, from cluster a. It calls a function before one of its reads.
type readings struct {
	before   func(reading int)
	imported clusterset.ServiceKey
	count    int
}

func (r *readings) read() {
	r.before(r.count)
	r.count++
}

func (r *readings) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	r.read()
	switch object := into.(type) {
	case *metav1.PartialObjectMetadata:
		return nil // the namespace
	case *mcsv1beta1.ServiceImport:
		if key == r.imported {
			object.ObjectMeta = metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: map[string]string{
				clusterset.LabelManagedBy: clusterset.ManagedBy,
			}}
			object.Spec = mcsv1beta1.ServiceImportSpec{
				Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}},
			}
			object.Status.Clusters = []mcsv1beta1.ClusterStatus{{Cluster: "a"}}
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func (r *readings) List(context.Context, client.ObjectList, ...client.ListOption) error {
	r.read()
	return nil
}
