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

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
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
	// inject breaks the service sick of the scene until the test ends, and returns what a trace should say.
	inject func(*testing.T, *scene) verdict
}

var faults = []fault{
	{"the Service is deleted", oneService, "", func(t *testing.T, s *scene) verdict {
		lab.Must(t, s.a.Delete(t.Context(), &corev1.Service{ObjectMeta: s.meta()}))
		return verdict{"a", survey.HopService}
	}},
	{"the Service becomes an ExternalName", oneService, "", func(t *testing.T, s *scene) verdict {
		s.changeService(t, func(spec *corev1.ServiceSpec) {
			*spec = corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "example.org"}
		})
		return verdict{"a", survey.HopService}
	}},
	{"the ServiceExport is deleted", oneService, "", func(t *testing.T, s *scene) verdict {
		lab.Must(t, s.a.Delete(t.Context(), &mcsv1beta1.ServiceExport{ObjectMeta: s.meta()}))
		return verdict{"", survey.HopExport}
	}},
	{"no pod is ready", oneService, "", func(t *testing.T, s *scene) verdict {
		s.changeEnds(t, func(slice *discoveryv1.EndpointSlice) { slice.Endpoints[0].Conditions.Ready = new(false) })
		return verdict{"a", survey.HopEndpoints}
	}},
	{"the Service selects no pod", oneService, "", func(t *testing.T, s *scene) verdict {
		lab.Must(t, s.a.Delete(t.Context(), s.ends))
		return verdict{"a", survey.HopEndpoints}
	}},
	{"the slices name another port than the Service", oneService, clusterIP, func(t *testing.T, s *scene) verdict {
		s.changeEnds(t, func(slice *discoveryv1.EndpointSlice) { slice.Ports[0].Name = new("web") })
		return verdict{"a", survey.HopProxy}
	}},
	{"the exporter's agent is down when the Service changes", oneService, "", func(t *testing.T, s *scene) verdict {
		s.silenced(t, s.a)
		s.changeService(t, func(spec *corev1.ServiceSpec) { spec.Ports[0].Port = 81 })
		return verdict{"a", survey.HopAgent}
	}},
	{"the exporter's agent is down when the record is deleted by hand", oneService, "", func(t *testing.T, s *scene) verdict {
		s.silenced(t, s.a)
		lab.Must(t, s.HubClient.Delete(t.Context(), s.record(t)))
		return verdict{"a", survey.HopAgent}
	}},
	{"the exporter's agent is down when the record is edited by hand", oneService, "", func(t *testing.T, s *scene) verdict {
		s.silenced(t, s.a)
		record := s.record(t)
		record.Spec.Ports[0].Port = 82
		lab.Must(t, s.HubClient.Update(t.Context(), record))
		return verdict{"a", survey.HopAgent}
	}},
	{"the member's quota on the hub is used up", oneService, "", quotaUsedUp},
	{"the Member has other ranges than the pods", allServices, "", func(t *testing.T, s *scene) verdict {
		s.changeMember(t, func(spec *hubv1alpha1.MemberSpec) { spec.PodCIDRs = []hubv1alpha1.CIDR{"10.99.0.0/16"} })
		return verdict{"a", survey.HopRecord}
	}},
	{"the Member may not publish the namespace", allServices, "", func(t *testing.T, s *scene) verdict {
		s.changeMember(t, func(spec *hubv1alpha1.MemberSpec) { spec.Namespaces = []hubv1alpha1.NamespaceName{"other"} })
		return verdict{"a", survey.HopRecord}
	}},
	{"the Member is deleted", allServices, "", func(t *testing.T, s *scene) verdict {
		member := s.memberOf(t)
		lab.Must(t, s.HubClient.Delete(t.Context(), member))
		member = &hubv1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: member.Namespace, Name: member.Name}, Spec: member.Spec}
		atEnd(t, func(ctx context.Context) error { return s.HubClient.Create(ctx, member) })
		return verdict{"a", survey.HopMembership}
	}},
	{"the importer's namespace is deleted", allServices, "", func(t *testing.T, s *scene) verdict {
		lab.Must(t, s.b.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.sick.Namespace}}))
		return verdict{"b", survey.HopNamespace}
	}},
	{"somebody's ServiceImport is in the way", oneService, "", func(t *testing.T, s *scene) verdict {
		s.whileDown(t, func() {
			lab.Must(t, s.b.Delete(t.Context(), &mcsv1beta1.ServiceImport{ObjectMeta: s.meta()}))
			lab.Must(t, s.b.Create(t.Context(), &mcsv1beta1.ServiceImport{ObjectMeta: s.meta(), Spec: mcsv1beta1.ServiceImportSpec{
				Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}},
			}}))
		})
		return verdict{"b", survey.HopImport}
	}},
	{"the importer's agent is down when the ServiceImport loses its label", oneService, "", func(t *testing.T, s *scene) verdict {
		s.silenced(t, s.b)
		object := &mcsv1beta1.ServiceImport{ObjectMeta: s.meta()}
		lab.Must(t, s.b.Patch(t.Context(), object, client.RawPatch(types.JSONPatchType, []byte(`[{"op": "remove", "path": "/metadata/labels"}]`))))
		return verdict{"b", survey.HopAgent}
	}},
	{"connections stay in their cluster, and the importer has no endpoint", oneService, clusterIP, func(t *testing.T, s *scene) verdict {
		s.changeService(t, func(spec *corev1.ServiceSpec) {
			spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
		})
		return verdict{"b", survey.HopProxy}
	}},
	{"somebody's Services have both names of the derived one", oneService, "", derivedNamesTaken},
	{"the importer's agent is down when the derived Service is deleted", oneService, "", func(t *testing.T, s *scene) verdict {
		s.silenced(t, s.b)
		lab.Must(t, s.b.Delete(t.Context(), s.derived(t)))
		return verdict{"b", survey.HopAgent}
	}},
	{"the importer's agent is down when the derived Service is edited", oneService, "", func(t *testing.T, s *scene) verdict {
		s.silenced(t, s.b)
		derived := s.derived(t)
		derived.Spec.Ports[0].Port = 83
		lab.Must(t, s.b.Update(t.Context(), derived))
		return verdict{"b", survey.HopAgent}
	}},
	{"the importer's agent is down when the mirrored slices are deleted", oneService, "", func(t *testing.T, s *scene) verdict {
		s.silenced(t, s.b)
		s.deleteMirrored(t)
		return verdict{"b", survey.HopAgent}
	}},
	{"the importer's agent is down when the ServiceImport is deleted", oneService, "", func(t *testing.T, s *scene) verdict {
		s.silenced(t, s.b)
		lab.Must(t, s.b.Delete(t.Context(), &mcsv1beta1.ServiceImport{ObjectMeta: s.meta()}))
		return verdict{"b", survey.HopAgent}
	}},
	{"a policy of the importer refuses derived Services", oneService, "", func(t *testing.T, s *scene) verdict {
		s.forbid(t, "", "services", &corev1.Service{ObjectMeta: s.probe(), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}})
		lab.Must(t, s.b.Delete(t.Context(), s.derived(t)))
		return verdict{"b", survey.HopDerived}
	}},
	{"a policy of the importer refuses mirrored slices", oneService, "", func(t *testing.T, s *scene) verdict {
		s.forbid(t, "discovery.k8s.io", "endpointslices", &discoveryv1.EndpointSlice{ObjectMeta: s.probe(), AddressType: "IPv4"})
		s.deleteMirrored(t)
		return verdict{"b", survey.HopSlices}
	}},
	{"a policy of the importer refuses ServiceImports", oneService, "", func(t *testing.T, s *scene) verdict {
		s.forbid(t, mcsv1beta1.GroupName, "serviceimports", &mcsv1beta1.ServiceImport{ObjectMeta: s.probe(), Spec: mcsv1beta1.ServiceImportSpec{
			Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}},
		}})
		lab.Must(t, s.b.Delete(t.Context(), &mcsv1beta1.ServiceImport{ObjectMeta: s.meta()}))
		return verdict{"b", survey.HopImport}
	}},
	{"the importer's agent has lost the right to write slices", oneService, "", rightsLost},
	{"the importer's DNS is down", allServices, "", func(t *testing.T, s *scene) verdict {
		lab.Must(t, s.dns.Stop())
		t.Cleanup(func() { s.startDNS(t, corefile) })
		return verdict{"b", survey.HopDNS}
	}},
	{"the importer's DNS does not know the clusterset", allServices, "", func(t *testing.T, s *scene) verdict {
		lab.Must(t, s.dns.Stop())
		s.startDNS(t, otherCorefile)
		t.Cleanup(func() {
			lab.Must(t, s.dns.Stop())
			s.startDNS(t, corefile)
		})
		return verdict{"b", survey.HopDNS}
	}},
}

func quotaUsedUp(t *testing.T, s *scene) verdict {
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
	lab.Must(t, s.a.Create(t.Context(), s.slice(s.sick, "2", 3)))
	return verdict{"a", survey.HopRecord}
}

func derivedNamesTaken(t *testing.T, s *scene) verdict {
	derived := s.derived(t)
	s.whileDown(t, func() {
		lab.Must(t, s.b.Delete(t.Context(), derived))
		for _, name := range []string{clusterset.ShortDerivedName(s.sick.Name), clusterset.LongDerivedName(s.sick.Name)} {
			lab.Must(t, s.b.Create(t.Context(), &corev1.Service{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.sick.Namespace, Name: name},
				Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
			}))
		}
	})
	return verdict{"b", survey.HopDerived}
}

func rightsLost(t *testing.T, s *scene) verdict {
	role := &rbacv1.ClusterRole{}
	lab.Must(t, s.b.Get(t.Context(), client.ObjectKey{Name: "tombolo-agent"}, role))
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
	return verdict{"b", survey.HopSlices}
}
