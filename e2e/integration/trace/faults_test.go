// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/trace"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// scope says which services a fault hits.
type scope string

const (
	oneService  scope = "one service"
	allServices scope = "all services"
)

// fault is a way to break a service.
type fault struct {
	name  string
	scope scope
	// only is the type of service that can be broken so; empty for all.
	only shape
	// want is what a trace should say.
	want verdict
	// inject breaks the service broken of the scene until the test ends.
	inject func(*testing.T, *scene)
}

var faults = []fault{
	{"the Service is deleted", oneService, "", verdict{"a", trace.HopService}, func(t *testing.T, s *scene) {
		lab.Must(t, s.a.Delete(t.Context(), &corev1.Service{ObjectMeta: s.meta()}))
	}},
	{"the Service becomes an ExternalName", oneService, "", verdict{"a", trace.HopService}, func(t *testing.T, s *scene) {
		s.changeService(t, func(spec *corev1.ServiceSpec) {
			*spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org"}
		})
	}},
	{"the ServiceExport is deleted", oneService, "", verdict{"", trace.HopExport}, func(t *testing.T, s *scene) {
		lab.Must(t, s.a.Delete(t.Context(), &mcsv1beta1.ServiceExport{ObjectMeta: s.meta()}))
	}},
	{"no pod is ready", oneService, "", verdict{"a", trace.HopEndpoints}, func(t *testing.T, s *scene) {
		s.changeEnds(t, func(slice *discoveryv1.EndpointSlice) { slice.Endpoints[0].Conditions.Ready = new(false) })
	}},
	{"the Service selects no pod", oneService, "", verdict{"a", trace.HopEndpoints}, func(t *testing.T, s *scene) {
		lab.Must(t, s.a.Delete(t.Context(), s.ends))
	}},
	{"the slices name another port than the Service", oneService, clusterIP, verdict{"a", trace.HopProxy}, func(t *testing.T, s *scene) {
		s.changeEnds(t, func(slice *discoveryv1.EndpointSlice) { slice.Ports[0].Name = new("web") })
	}},
	{"the exporter's agent is down when the Service changes", oneService, "", verdict{"a", trace.HopAgent}, func(t *testing.T, s *scene) {
		s.silenced(t, s.a)
		s.changeService(t, func(spec *corev1.ServiceSpec) { spec.Ports[0].Port = 81 })
	}},
	{"the exporter's agent is down when the record is deleted by hand", oneService, "", verdict{"a", trace.HopAgent}, func(t *testing.T, s *scene) {
		s.silenced(t, s.a)
		lab.Must(t, s.HubClient.Delete(t.Context(), s.record(t)))
	}},
	{"the exporter's agent is down when the record is edited by hand", oneService, "", verdict{"a", trace.HopAgent}, func(t *testing.T, s *scene) {
		s.silenced(t, s.a)
		record := s.record(t)
		record.Spec.Ports[0].Port = 82
		lab.Must(t, s.HubClient.Update(t.Context(), record))
	}},
	{"the member's quota on the hub is used up", oneService, "", verdict{"a", trace.HopRecord}, quotaUsedUp},
	{"the Member has other ranges than the pods", allServices, "", verdict{"a", trace.HopRecord}, func(t *testing.T, s *scene) {
		s.changeMember(t, func(spec *hubv1alpha1.MemberSpec) { spec.PodCIDRs = []hubv1alpha1.CIDR{"10.99.0.0/16"} })
	}},
	{"the Member may not publish the namespace", allServices, "", verdict{"a", trace.HopRecord}, func(t *testing.T, s *scene) {
		s.changeMember(t, func(spec *hubv1alpha1.MemberSpec) { spec.Namespaces = []hubv1alpha1.NamespaceName{"other"} })
	}},
	{"the Member is deleted", allServices, "", verdict{"a", trace.HopMembership}, func(t *testing.T, s *scene) {
		member := s.memberOf(t)
		lab.Must(t, s.HubClient.Delete(t.Context(), member))
		member = &hubv1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: member.Namespace, Name: member.Name}, Spec: member.Spec}
		atEnd(t, func(ctx context.Context) error { return s.HubClient.Create(ctx, member) })
	}},
	{"the importer's namespace is deleted", allServices, "", verdict{"b", trace.HopNamespace}, func(t *testing.T, s *scene) {
		lab.Must(t, s.b.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.broken.Namespace}}))
	}},
	{"another user's ServiceImport has the name", oneService, "", verdict{"b", trace.HopImport}, func(t *testing.T, s *scene) {
		s.whileDown(t, func() {
			lab.Must(t, s.b.Delete(t.Context(), &mcsv1beta1.ServiceImport{ObjectMeta: s.meta()}))
			lab.Must(t, s.b.Create(t.Context(), &mcsv1beta1.ServiceImport{ObjectMeta: s.meta(), Spec: mcsv1beta1.ServiceImportSpec{
				Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}},
			}}))
		})
	}},
	{"the importer's agent is down when the ServiceImport loses its label", oneService, "", verdict{"b", trace.HopAgent}, func(t *testing.T, s *scene) {
		s.silenced(t, s.b)
		object := &mcsv1beta1.ServiceImport{ObjectMeta: s.meta()}
		lab.Must(t, s.b.Patch(t.Context(), object, client.RawPatch(types.JSONPatchType, []byte(`[{"op": "remove", "path": "/metadata/labels"}]`))))
	}},
	{"a grant names other clusters only", oneService, "", verdict{"b", trace.HopImport}, func(t *testing.T, s *scene) {
		lab.Must(t, s.a.Create(t.Context(), world.Grant(s.broken, policyv1alpha1.Peer{Clusters: []policyv1alpha1.ClusterID{"a"}})))
	}},
	{"a grant names only a cluster that is no member", oneService, "", verdict{"a", trace.HopExport}, func(t *testing.T, s *scene) {
		lab.Must(t, s.a.Create(t.Context(), world.Grant(s.broken, policyv1alpha1.Peer{Clusters: []policyv1alpha1.ClusterID{"c"}})))
	}},
	{"connections stay in their cluster, and the importer has no endpoint", oneService, clusterIP, verdict{"b", trace.HopProxy}, func(t *testing.T, s *scene) {
		s.changeService(t, func(spec *corev1.ServiceSpec) {
			spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
		})
	}},
	{"another user's Services have both names of the derived one", oneService, "", verdict{"b", trace.HopDerived}, derivedNamesTaken},
	{"the importer's agent is down when the derived Service is deleted", oneService, "", verdict{"b", trace.HopAgent}, func(t *testing.T, s *scene) {
		s.silenced(t, s.b)
		lab.Must(t, s.b.Delete(t.Context(), s.derived(t)))
	}},
	{"the importer's agent is down when the derived Service is edited", oneService, "", verdict{"b", trace.HopAgent}, func(t *testing.T, s *scene) {
		s.silenced(t, s.b)
		derived := s.derived(t)
		derived.Spec.Ports[0].Port = 83
		lab.Must(t, s.b.Update(t.Context(), derived))
	}},
	{"the importer's agent is down when the mirrored slices are deleted", oneService, "", verdict{"b", trace.HopAgent}, func(t *testing.T, s *scene) {
		s.silenced(t, s.b)
		s.deleteMirrored(t)
	}},
	{"the importer's agent is down when the ServiceImport is deleted", oneService, "", verdict{"b", trace.HopAgent}, func(t *testing.T, s *scene) {
		s.silenced(t, s.b)
		lab.Must(t, s.b.Delete(t.Context(), &mcsv1beta1.ServiceImport{ObjectMeta: s.meta()}))
	}},
	{"a policy of the importer refuses derived Services", oneService, "", verdict{"b", trace.HopDerived}, func(t *testing.T, s *scene) {
		s.forbid(t, "", "services", &corev1.Service{ObjectMeta: s.probe(), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
		lab.Must(t, s.b.Delete(t.Context(), s.derived(t)))
	}},
	{"a policy of the importer refuses mirrored slices", oneService, "", verdict{"b", trace.HopSlices}, func(t *testing.T, s *scene) {
		s.forbid(t, "discovery.k8s.io", "endpointslices", &discoveryv1.EndpointSlice{ObjectMeta: s.probe(), AddressType: "IPv4"})
		s.deleteMirrored(t)
	}},
	{"a policy of the importer refuses ServiceImports", oneService, "", verdict{"b", trace.HopImport}, func(t *testing.T, s *scene) {
		s.forbid(t, mcsv1beta1.GroupName, "serviceimports", &mcsv1beta1.ServiceImport{ObjectMeta: s.probe(), Spec: mcsv1beta1.ServiceImportSpec{
			Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}},
		}})
		lab.Must(t, s.b.Delete(t.Context(), &mcsv1beta1.ServiceImport{ObjectMeta: s.meta()}))
	}},
	{"the importer's agent has lost the right to write slices", oneService, "", verdict{"b", trace.HopSlices}, rightsLost},
	{"the importer's DNS is down", allServices, "", verdict{"b", trace.HopDNS}, func(t *testing.T, s *scene) {
		lab.Must(t, s.dns.Stop())
		t.Cleanup(func() { s.startDNS(t, corefile) })
	}},
	{"the importer's DNS does not know the clusterset", allServices, "", verdict{"b", trace.HopDNS}, func(t *testing.T, s *scene) {
		lab.Must(t, s.dns.Stop())
		s.startDNS(t, otherCorefile)
		t.Cleanup(func() {
			lab.Must(t, s.dns.Stop())
			s.startDNS(t, corefile)
		})
	}},
}

func quotaUsedUp(t *testing.T, s *scene) {
	const name = "nothing-more"
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.a.id.HubNamespace(), Name: name},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			"count/publishedendpoints.hub.tombolo-mcs.io": resource.MustParse("0"),
		}},
	}
	lab.Must(t, s.HubClient.Create(t.Context(), quota))
	atEnd(t, func(ctx context.Context) error { return s.HubClient.Delete(ctx, quota) })
	lab.Must(t, membership.AwaitFullQuota(t.Context(), s.HubClient, s.a.id))
	lab.Must(t, s.a.Create(t.Context(), s.slice(s.broken, "2", 3)))
}

func derivedNamesTaken(t *testing.T, s *scene) {
	derived := s.derived(t)
	s.whileDown(t, func() {
		lab.Must(t, s.b.Delete(t.Context(), derived))
		for _, name := range []string{clusterset.ShortDerivedName(s.broken.Name), clusterset.LongDerivedName(s.broken.Name)} {
			lab.Must(t, s.b.Create(t.Context(), &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.broken.Namespace, Name: name},
				Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
			}))
		}
	})
}

func rightsLost(t *testing.T, s *scene) {
	role := world.Read(t, s.b, world.Key{Name: "tombolo-agent"}, &rbacv1.ClusterRole{})
	before := role.DeepCopy()
	for i, rule := range role.Rules {
		for _, r := range rule.Resources {
			if r == "endpointslices" {
				role.Rules[i].Verbs = []string{"get", "list", "watch"}
			}
		}
	}
	lab.Must(t, s.b.Update(t.Context(), role))
	atEnd(t, func(ctx context.Context) error {
		before.ResourceVersion = ""
		return s.b.Update(ctx, before)
	})
	own, err := client.New(s.b.Local, client.Options{Scheme: s.b.Scheme()})
	lab.Must(t, err)
	probe := &discoveryv1.EndpointSlice{ObjectMeta: s.probe(), AddressType: discoveryv1.AddressTypeIPv4}
	world.Eventually(t, func(ctx context.Context) error { // the authorizer reads it later
		if err := own.Create(ctx, probe.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) {
			return errors.Join(errors.New("the agent may still write slices"), err)
		}
		return nil
	})
	s.deleteMirrored(t)
}
