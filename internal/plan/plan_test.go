// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/plan"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// step is a summary of a change.
type step struct {
	Verb    plan.Verb
	Name    string
	Version string // the resourceVersion that the written object carries
}

func steps[T metav1.Object](changes []plan.Change[T]) []step {
	var result []step
	for _, c := range changes {
		result = append(result, step{c.Verb, c.Object.GetName(), c.Object.GetResourceVersion()})
	}
	return result
}

func slice(name string, changes ...func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
	result := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"kubernetes.io/service-name": "derived-1"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(80))}},
		Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.1.0.1"}}},
	}
	for _, change := range changes {
		change(result)
	}
	return result
}

// stored contains the fields that the API server adds to any object.
func stored[T metav1.Object](object T, version string) T {
	object.SetResourceVersion(version)
	object.SetUID(types.UID("uid-" + object.GetName()))
	object.SetGeneration(1)
	object.SetCreationTimestamp(metav1.NewTime(time.Unix(1000, 0)))
	object.SetManagedFields([]metav1.ManagedFieldsEntry{{Manager: "tombolo-agent"}})
	object.SetAnnotations(map[string]string{"added-by": "somebody"})
	return object
}

// spec: D7, E3
func TestEndpointSlices(t *testing.T) {
	t.Parallel()
	v6 := func(s *discoveryv1.EndpointSlice) { s.AddressType = discoveryv1.AddressTypeIPv6 }
	ready := func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Ready = new(true) }
	port81 := func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = new(int32(81)) }
	labelled := func(s *discoveryv1.EndpointSlice) { s.Labels["x"] = "y" }
	absent := func(s *discoveryv1.EndpointSlice) { s.Ports, s.Endpoints = nil, nil }
	empty := func(s *discoveryv1.EndpointSlice) {
		s.Ports, s.Endpoints = []discoveryv1.EndpointPort{}, []discoveryv1.Endpoint{}
	}
	type list = []*discoveryv1.EndpointSlice
	cases := map[string]struct {
		desired, observed list
		want              []step
	}{
		"nothing at all": {},
		"nothing to do":  {list{slice("a"), slice("b")}, list{stored(slice("b"), "2"), stored(slice("a"), "1")}, nil},
		"created, sorted by name": {
			list{slice("c"), slice("a"), slice("b")}, nil, []step{{"create", "a", ""}, {"create", "b", ""}, {"create", "c", ""}},
		},
		"deleted, sorted by name": {
			nil,
			list{stored(slice("c"), "3"), stored(slice("a"), "1"), stored(slice("b"), "2")},
			[]step{{"delete", "a", "1"}, {"delete", "b", "2"}, {"delete", "c", "3"}},
		},
		"deletions come last": {
			list{slice("a"), slice("b", func(s *discoveryv1.EndpointSlice) { s.Endpoints = nil })},
			list{stored(slice("b"), "2"), stored(slice("c"), "3")},
			[]step{{"create", "a", ""}, {"update", "b", "2"}, {"delete", "c", "3"}},
		},
		"another address type replaces": {
			list{slice("a", v6), slice("b")},
			list{stored(slice("a"), "1"), stored(slice("b"), "2")},
			[]step{{"delete", "a", "1"}, {"create", "a", ""}},
		},
		"an endpoint changes":        {list{slice("a", ready)}, list{stored(slice("a"), "1")}, []step{{"update", "a", "1"}}},
		"a port changes":             {list{slice("a", port81)}, list{stored(slice("a"), "1")}, []step{{"update", "a", "1"}}},
		"a label changes":            {list{slice("a")}, list{stored(slice("a", labelled), "1")}, []step{{"update", "a", "1"}}},
		"empty is as good as absent": {list{slice("a", empty)}, list{stored(slice("a", absent), "1")}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			desired, observed := copies(tc.desired), copies(tc.observed)
			got := plan.EndpointSlices(tc.desired, tc.observed)
			check.Equal(t, "plan", tc.want, steps(got))
			check.Equal(t, "the input is changed", desired, tc.desired)
			check.Equal(t, "the input is changed", observed, tc.observed)
			checkChanges(t, got, tc.observed)
		})
	}
}

// checkChanges checks the invariants of every plan: changes contain the existing object, and updates keep the fields of others.
func checkChanges(t *testing.T, changes []plan.Change[*discoveryv1.EndpointSlice], observed []*discoveryv1.EndpointSlice) {
	t.Helper()
	byUID := map[types.UID]*discoveryv1.EndpointSlice{}
	for _, o := range observed {
		byUID[o.UID] = o
	}
	for _, c := range changes {
		switch c.Verb {
		case plan.Create:
			if c.Existing != nil || c.Object.UID != "" {
				t.Errorf("%s is created, and was observed", c.Object.Name)
			}
		case plan.Delete:
			if c.Existing != byUID[c.Object.UID] || c.Object != c.Existing {
				t.Errorf("%s: what is deleted is not what was observed", c.Object.Name)
			}
		case plan.Update, plan.UpdateStatus:
			if c.Existing != byUID[c.Object.UID] || c.Object == c.Existing {
				t.Errorf("%s: what is updated is not a copy of what was observed", c.Object.Name)
			}
			if c.Object.Annotations["added-by"] != "somebody" {
				t.Errorf("%s: annotations %v", c.Object.Name, c.Object.Annotations)
			}
		}
	}
}

func copies[T interface{ DeepCopy() T }](objects []T) []T {
	var result []T
	for _, object := range objects {
		result = append(result, object.DeepCopy())
	}
	return result
}

// service returns a derived Service as internal/render returns it.
func service(changes ...func(*corev1.Service)) *corev1.Service {
	result := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "derived-1", Labels: map[string]string{"app.kubernetes.io/managed-by": "tombolo-mcs.io"}},
		Spec: corev1.ServiceSpec{
			Type:                  corev1.ServiceTypeClusterIP,
			Ports:                 []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(80)}},
			IPFamilies:            []corev1.IPFamily{corev1.IPv4Protocol},
			IPFamilyPolicy:        new(corev1.IPFamilyPolicySingleStack),
			SessionAffinity:       corev1.ServiceAffinityNone,
			InternalTrafficPolicy: new(corev1.ServiceInternalTrafficPolicyCluster),
		},
	}
	for _, change := range changes {
		change(result)
	}
	return result
}

func dual(s *corev1.Service) {
	s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	s.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
}

func selecting(app string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": app} }
}

func headless(s *corev1.Service) {
	s.Spec.ClusterIP, s.Spec.ClusterIPs = "None", []string{"None"}
}

func sticky(s *corev1.Service) {
	s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(10800))}}
}

// allocated returns the Service as the API server returns it: with addresses, and with the defaults of a Service of type ClusterIP
// (pkg/apis/core/v1/defaults.go).
func allocated(s *corev1.Service, ips ...string) *corev1.Service {
	if s.Spec.ClusterIP != "None" {
		s.Spec.ClusterIP, s.Spec.ClusterIPs = ips[0], ips
	}
	if s.Spec.SessionAffinity == "" {
		s.Spec.SessionAffinity = corev1.ServiceAffinityNone
	}
	if s.Spec.Type == "" {
		s.Spec.Type = corev1.ServiceTypeClusterIP
	}
	for i := range s.Spec.Ports {
		port := &s.Spec.Ports[i]
		if port.Protocol == "" {
			port.Protocol = corev1.ProtocolTCP
		}
		if port.TargetPort == (intstr.IntOrString{}) {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	if s.Spec.InternalTrafficPolicy == nil {
		s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyCluster)
	}
	return stored(s, "5")
}

// externalName returns the Service after a user has changed its type to ExternalName: the API server has cleared its addresses.
func externalName() *corev1.Service {
	s := allocated(service(), "")
	s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "example.org"
	s.Spec.ClusterIPs, s.Spec.IPFamilies, s.Spec.IPFamilyPolicy = nil, nil, nil
	return s
}

// firstAddress returns the first version of a Service that should have several addresses.
func firstAddress(spec corev1.ServiceSpec) *corev1.ServiceSpec {
	want := spec.DeepCopy()
	if len(want.ClusterIPs) > 1 {
		want.ClusterIPs, want.IPFamilies = want.ClusterIPs[:1], want.IPFamilies[:1]
		want.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
	}
	return want
}

// spec: D7, I5
func TestService(t *testing.T) {
	t.Parallel()
	type result struct {
		Steps     []step
		ClusterIP string
		IPs       []string
	}
	created := func(ip string) result { return result{[]step{{"create", "derived-1", ""}}, ip, []string{ip}} }
	updated := func(ips ...string) result { return result{[]step{{"update", "derived-1", "5"}}, ips[0], ips} }
	replaced := func(ip string) result {
		return result{[]step{{"delete", "derived-1", "5"}, {"create", "derived-1", ""}}, ip, []string{ip}}
	}
	wishing := func(ips ...string) func(*corev1.Service) {
		return func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = ips[0], ips }
	}
	port81 := func(s *corev1.Service) { s.Spec.Ports[0].Port = 81 }
	ofTeamB := func(s *corev1.Service) { s.Labels["team"] = "b" }
	edited := func(s *corev1.Service) {
		s.Spec.PublishNotReadyAddresses, s.Spec.ExternalIPs = true, []string{"192.0.2.1"}
	}
	derived0 := func(s *corev1.Service) { s.Name = "derived-0" }
	type list = []*corev1.Service
	cases := map[string]struct {
		desired  *corev1.Service
		observed list
		want     result
	}{
		"none, and none wanted":  {},
		"created":                {service(), nil, result{Steps: []step{{"create", "derived-1", ""}}}},
		"created with addresses": {service(wishing("10.0.0.9")), nil, created("10.0.0.9")},
		"created with two addresses: the first comes first": {service(dual, wishing("10.0.0.9", "fd00::9")), nil, created("10.0.0.9")},
		"created with one address of two families":          {service(dual, wishing("10.0.0.9")), nil, created("10.0.0.9")},
		"the second address follows": {
			service(dual, wishing("10.0.0.9", "fd00::9")), list{allocated(service(), "10.0.0.9")}, updated("10.0.0.9", "fd00::9"),
		},
		"the second address of another first one is not wanted": {
			service(dual, wishing("10.0.0.9", "fd00::9")), list{allocated(service(), "10.0.0.1")}, updated("10.0.0.1"),
		},
		"edited to an ExternalName: the addresses that it had": {service(wishing("10.0.0.9")), list{externalName()}, updated("10.0.0.9")},
		"edited to an ExternalName, dual-stack: the first comes first": {
			service(dual, wishing("10.0.0.9", "fd00::9")), list{externalName()}, updated("10.0.0.9"),
		},
		"edited to an ExternalName, and no addresses are known": {
			service(), list{externalName()}, result{Steps: []step{{"update", "derived-1", "5"}}},
		},
		"edited to an ExternalName, and headless now": {service(headless), list{externalName()}, replaced("None")},
		"deleted": {
			nil, list{allocated(service(), "10.0.0.1")}, result{[]step{{"delete", "derived-1", "5"}}, "10.0.0.1", []string{"10.0.0.1"}},
		},
		"unchanged":                {desired: service(), observed: list{allocated(service(), "10.0.0.1")}},
		"unchanged, dual-stack":    {desired: service(dual), observed: list{allocated(service(dual), "10.0.0.1", "fd00::1")}},
		"unchanged, headless":      {desired: service(headless), observed: list{allocated(service(headless))}},
		"unchanged, with affinity": {desired: service(sticky), observed: list{allocated(service(sticky), "10.0.0.1")}},
		"unchanged, though other addresses were wished for": {
			desired: service(wishing("10.0.0.9")), observed: list{allocated(service(), "10.0.0.1")},
		},
		"a port changes, the addresses stay": {service(port81), list{allocated(service(), "10.0.0.1")}, updated("10.0.0.1")},
		"a label changes":                    {service(ofTeamB), list{allocated(service(), "10.0.0.1")}, updated("10.0.0.1")},
		"another user's edits are reverted":  {service(), list{allocated(service(edited), "10.0.0.1")}, updated("10.0.0.1")},
		"dual-stack becomes single-stack":    {service(), list{allocated(service(dual), "10.0.0.1", "fd00::1")}, updated("10.0.0.1")},
		"single-stack becomes dual-stack: the API server chooses the second address": {
			service(dual), list{allocated(service(), "10.0.0.1")}, updated("10.0.0.1"),
		},
		"a headless Service becomes dual-stack": {service(headless, dual), list{allocated(service(headless))}, updated("None")},
		"another selector": {
			service(selecting("web")), list{allocated(service(selecting("api")), "10.0.0.1")}, updated("10.0.0.1"),
		},
		"a selector where there was none": {service(selecting("web")), list{allocated(service(), "10.0.0.1")}, updated("10.0.0.1")},
		"without the selector that it had, with what that found": {
			service(wishing("10.0.0.1")), list{allocated(service(selecting("web")), "10.0.0.1")}, replaced("10.0.0.1"),
		},
		"headless replaces ClusterIP": {service(headless), list{allocated(service(), "10.0.0.1")}, replaced("None")},
		"ClusterIP replaces headless": {
			service(), list{allocated(service(headless))}, result{Steps: []step{{"delete", "derived-1", "5"}, {"create", "derived-1", ""}}},
		},
		"one under another name goes": {
			service(),
			list{allocated(service(), "10.0.0.1"), allocated(service(derived0), "10.0.0.2")},
			result{[]step{{"delete", "derived-0", "5"}}, "10.0.0.2", []string{"10.0.0.2"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			desired, observed := tc.desired.DeepCopy(), copies(tc.observed)
			changes := plan.Service(tc.desired, tc.observed)
			got := result{Steps: steps(changes)}
			if len(changes) > 0 {
				last := changes[len(changes)-1].Object.Spec
				got.ClusterIP, got.IPs = last.ClusterIP, last.ClusterIPs
			}
			check.Equal(t, "plan", tc.want, got)
			if len(changes) == 1 && changes[0].Verb == plan.Create {
				want := firstAddress(tc.desired.Spec)
				check.Equal(t, "created", *want, changes[0].Object.Spec)
			}
			if len(changes) == 1 && changes[0].Verb == plan.Update {
				want := tc.desired.Spec.DeepCopy()
				if tc.observed[0].Spec.ClusterIP == "" {
					want = firstAddress(tc.desired.Spec)
				}
				want.ClusterIP, want.ClusterIPs = got.ClusterIP, got.IPs
				check.Equal(t, "updated", *want, changes[0].Object.Spec)
				check.Equal(t, "updated", tc.desired.Labels, changes[0].Object.Labels)
			}
			check.Equal(t, "the input is changed", desired, tc.desired)
			check.Equal(t, "the input is changed", observed, tc.observed)
		})
	}
}

func serviceImport(changes ...func(*mcsv1beta1.ServiceImport)) *mcsv1beta1.ServiceImport {
	result := &mcsv1beta1.ServiceImport{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "shop", Name: "web",
			Labels:      map[string]string{"app.kubernetes.io/managed-by": "tombolo-mcs.io"},
			Annotations: map[string]string{"multicluster.kubernetes.io/derived-service": "derived-1"},
		},
		Spec: mcsv1beta1.ServiceImportSpec{Type: mcsv1beta1.ClusterSetIP, Ports: []mcsv1beta1.ServicePort{}, IPs: []string{"10.0.0.1"}},
	}
	for _, change := range changes {
		change(result)
	}
	return result
}

// spec: I7, D7
func TestServiceImport(t *testing.T) {
	t.Parallel()
	observed := func(changes ...func(*mcsv1beta1.ServiceImport)) *mcsv1beta1.ServiceImport {
		object := stored(serviceImport(), "5")
		object.Annotations = serviceImport().Annotations
		object.Status.Clusters = []mcsv1beta1.ClusterStatus{{Cluster: "berlin"}}
		for _, change := range changes {
			change(object)
		}
		return object
	}
	cases := map[string]struct {
		desired, observed *mcsv1beta1.ServiceImport
		want              []step
	}{
		"none, and none wanted":          {nil, nil, nil},
		"created":                        {serviceImport(), nil, []step{{"create", "web", ""}}},
		"deleted":                        {nil, observed(), []step{{"delete", "web", "5"}}},
		"unchanged, whatever its status": {serviceImport(), observed(), nil},
		"the addresses were edited": {
			serviceImport(), observed(func(i *mcsv1beta1.ServiceImport) { i.Spec.IPs[0] = "10.0.0.2" }), []step{{"update", "web", "5"}},
		},
		"a label was added": {
			serviceImport(), observed(func(i *mcsv1beta1.ServiceImport) { i.Labels["x"] = "y" }), []step{{"update", "web", "5"}},
		},
		"an annotation was removed": {
			serviceImport(), observed(func(i *mcsv1beta1.ServiceImport) { i.Annotations = nil }), []step{{"update", "web", "5"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			desired, before := tc.desired.DeepCopy(), tc.observed.DeepCopy()
			changes := plan.ServiceImport(tc.desired, tc.observed)
			check.Equal(t, "plan", tc.want, steps(changes))
			for _, c := range changes {
				if c.Verb == plan.Update {
					want := observed()
					check.Equal(t, "updated", want, c.Object)
				}
			}
			check.Equal(t, "the input is changed", desired, tc.desired)
			check.Equal(t, "the input is changed", before, tc.observed)
		})
	}
}

// spec: C1, C6, I3
func TestStatuses(t *testing.T) {
	t.Parallel()
	conditions := func(status metav1.ConditionStatus, second int64) []metav1.Condition {
		return []metav1.Condition{{Type: "Ready", Status: status, LastTransitionTime: metav1.NewTime(time.Unix(second, 0))}}
	}
	t.Run("of an import", func(t *testing.T) {
		t.Parallel()
		observed := stored(serviceImport(), "5")
		observed.Status.Conditions = conditions("True", 1)
		before := observed.DeepCopy()
		same := mcsv1beta1.ServiceImportStatus{Conditions: conditions("True", 1), Clusters: []mcsv1beta1.ClusterStatus{}}
		if got := plan.ServiceImportStatus(same, observed); got != nil {
			t.Errorf("the same status is written: %v", got)
		}
		other := mcsv1beta1.ServiceImportStatus{Conditions: conditions("False", 2), Clusters: []mcsv1beta1.ClusterStatus{{Cluster: "berlin"}}}
		want := observed.DeepCopy()
		want.Status = other
		got := plan.ServiceImportStatus(other, observed)
		check.Equal(t, "plan", []plan.Change[*mcsv1beta1.ServiceImport]{{Verb: "update-status", Object: want, Existing: before}}, got)
		if diff := cmp.Diff(before, observed); diff != "" || got[0].Existing != observed {
			t.Errorf("the input is changed (-before +after):\n%s", diff)
		}
	})
	t.Run("of rules about access", func(t *testing.T) {
		t.Parallel()
		grant := stored(&policyv1alpha1.ServiceExportGrant{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}, "5")
		policy := stored(&policyv1alpha1.ClusterServiceAccessPolicy{ObjectMeta: metav1.ObjectMeta{Name: "all"}}, "5")
		desired := policyv1alpha1.AccessStatus{Conditions: conditions("True", 1)}
		grants, policies := plan.GrantStatus(desired, grant), plan.PolicyStatus(desired, policy)
		if len(grants) != 1 || len(policies) != 1 || grants[0].Existing != grant || policies[0].Existing != policy {
			t.Fatalf("the plans are %v and %v", grants, policies)
		}
		if again := plan.GrantStatus(desired, grants[0].Object); again != nil || grant.Status.Conditions != nil {
			t.Errorf("the same status is written: %v", again)
		}
		if again := plan.PolicyStatus(desired, policies[0].Object); again != nil || policy.Status.Conditions != nil {
			t.Errorf("the same status is written: %v", again)
		}
	})
	t.Run("of an export", func(t *testing.T) {
		t.Parallel()
		observed := stored(&mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}, "5")
		observed.Status.Conditions = conditions("True", 1)
		before := observed.DeepCopy()
		if got := plan.ServiceExportStatus(mcsv1beta1.ServiceExportStatus{Conditions: conditions("True", 1)}, observed); got != nil {
			t.Errorf("the same status is written: %v", got)
		}
		want := observed.DeepCopy()
		want.Status.Conditions = conditions("True", 2)
		got := plan.ServiceExportStatus(mcsv1beta1.ServiceExportStatus{Conditions: conditions("True", 2)}, observed)
		check.Equal(t, "plan", []plan.Change[*mcsv1beta1.ServiceExport]{{Verb: "update-status", Object: want, Existing: before}}, got)
		if diff := cmp.Diff(before, observed); diff != "" || got[0].Existing != observed {
			t.Errorf("the input is changed (-before +after):\n%s", diff)
		}
	})
}

// spec: D7, E3
func TestHubRecords(t *testing.T) {
	t.Parallel()
	trigger := func(second int64) *metav1.MicroTime { return new(metav1.NewMicroTime(time.Unix(second, 0))) }
	endpoints := func(name string, trigger *metav1.MicroTime, addresses ...hubv1alpha1.IPAddress) *hubv1alpha1.PublishedEndpoints {
		return &hubv1alpha1.PublishedEndpoints{
			ObjectMeta: metav1.ObjectMeta{Namespace: "member-berlin", Name: name},
			Spec: hubv1alpha1.PublishedEndpointsSpec{
				Service: "web", TriggerTime: trigger, Groups: []hubv1alpha1.EndpointGroup{{Addresses: addresses}},
			},
		}
	}
	type list = []*hubv1alpha1.PublishedEndpoints
	cases := map[string]struct {
		desired, observed list
		want              []step
		trigger           *metav1.MicroTime // of the last change
	}{
		"nothing at all":       {},
		"created":              {list{endpoints("a", trigger(1), "10.1.0.1")}, nil, []step{{"create", "a", ""}}, trigger(1)},
		"deleted":              {nil, list{stored(endpoints("a", trigger(1), "10.1.0.1"), "5")}, []step{{"delete", "a", "5"}}, trigger(1)},
		"unchanged":            {list{endpoints("a", trigger(1), "10.1.0.1")}, list{stored(endpoints("a", trigger(1), "10.1.0.1"), "5")}, nil, nil},
		"a new trigger alone":  {list{endpoints("a", trigger(2), "10.1.0.1")}, list{stored(endpoints("a", trigger(1), "10.1.0.1"), "5")}, nil, nil},
		"a lost trigger alone": {list{endpoints("a", nil, "10.1.0.1")}, list{stored(endpoints("a", trigger(1), "10.1.0.1"), "5")}, nil, nil},
		"a change takes its trigger along": {
			list{endpoints("a", trigger(2), "10.1.0.2")},
			list{stored(endpoints("a", trigger(1), "10.1.0.1"), "5")},
			[]step{{"update", "a", "5"}},
			trigger(2),
		},
		"a change without one removes the old": {
			list{endpoints("a", nil, "10.1.0.2")},
			list{stored(endpoints("a", trigger(1), "10.1.0.1"), "5")},
			[]step{{"update", "a", "5"}},
			nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			desired, observed := copies(tc.desired), copies(tc.observed)
			got := plan.PublishedEndpoints(tc.desired, tc.observed)
			check.Equal(t, "plan", tc.want, steps(got))
			for _, c := range got {
				check.Equal(t, "trigger time", tc.trigger, c.Object.Spec.TriggerTime)
			}
			check.Equal(t, "the input is changed", desired, tc.desired)
			check.Equal(t, "the input is changed", observed, tc.observed)
		})
	}
}

func TestSingleHubRecords(t *testing.T) {
	t.Parallel()
	published := func(distribution string) *hubv1alpha1.PublishedService {
		return &hubv1alpha1.PublishedService{
			ObjectMeta: metav1.ObjectMeta{Namespace: "member-berlin", Name: "shop.web"},
			Spec:       hubv1alpha1.PublishedServiceSpec{Service: "web", TrafficDistribution: hubv1alpha1.Setting(distribution)},
		}
	}
	heartbeat := func(services int32) *hubv1alpha1.Heartbeat {
		return &hubv1alpha1.Heartbeat{
			ObjectMeta: metav1.ObjectMeta{Namespace: "member-berlin", Name: "heartbeat"},
			Spec:       hubv1alpha1.HeartbeatSpec{Services: services},
		}
	}
	updated := plan.PublishedService(published("new"), stored(published("old"), "5"))
	if len(updated) != 1 || updated[0].Object.Spec.TrafficDistribution != "new" {
		t.Errorf("updated to %v", updated)
	}
	renewed := plan.Heartbeat(heartbeat(2), stored(heartbeat(1), "5"))
	if len(renewed) != 1 || renewed[0].Object.Spec.Services != 2 {
		t.Errorf("renewed to %v", renewed)
	}
	cases := map[string]struct{ got, want []step }{
		"no service":         {steps(plan.PublishedService(nil, nil)), nil},
		"service created":    {steps(plan.PublishedService(published(""), nil)), []step{{"create", "shop.web", ""}}},
		"service updated":    {steps(updated), []step{{"update", "shop.web", "5"}}},
		"service unchanged":  {steps(plan.PublishedService(published(""), stored(published(""), "5"))), nil},
		"service deleted":    {steps(plan.PublishedService(nil, stored(published(""), "5"))), []step{{"delete", "shop.web", "5"}}},
		"heartbeat created":  {steps(plan.Heartbeat(heartbeat(1), nil)), []step{{"create", "heartbeat", ""}}},
		"heartbeat renewed":  {steps(renewed), []step{{"update", "heartbeat", "5"}}},
		"heartbeat as it is": {steps(plan.Heartbeat(heartbeat(1), stored(heartbeat(1), "5"))), nil},
	}
	for name, tc := range cases {
		check.Equal(t, name, tc.want, tc.got)
	}
}

// An update that gives up a port comes after what serves the port then, also if it gets another one.
//
// spec: P1
func TestAddedThenRemoved(t *testing.T) {
	t.Parallel()
	withPort := func(name string) func(*discoveryv1.EndpointSlice) {
		return func(s *discoveryv1.EndpointSlice) {
			s.Ports = []discoveryv1.EndpointPort{{Name: &name, Protocol: new(corev1.ProtocolTCP), Port: new(int32(80))}}
		}
	}
	first, last := plan.AddedThenRemoved(
		[]*discoveryv1.EndpointSlice{slice("new"), slice("swapped", withPort("admin"))},
		[]*discoveryv1.EndpointSlice{stored(slice("swapped", withPort("http")), "1"), stored(slice("old"), "2")},
	)
	check.Equal(t, "first", []step{{"create", "new", ""}}, steps(first))
	check.Equal(t, "last", []step{{"delete", "old", "2"}, {"update", "swapped", "1"}}, steps(last))
}

// The properties of a member that are not known differ from none.
//
// spec: A5, G4
func TestRemoteGatewayProperties(t *testing.T) {
	t.Parallel()
	remote := func(properties map[string]gatewayv1alpha1.PropertyValue) []*gatewayv1alpha1.RemoteGateway {
		return []*gatewayv1alpha1.RemoteGateway{{
			ObjectMeta: metav1.ObjectMeta{Name: "east", Labels: map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy}},
			Spec:       gatewayv1alpha1.RemoteGatewaySpec{Cluster: "east", Properties: properties},
		}}
	}
	none := map[string]gatewayv1alpha1.PropertyValue{}
	if changes := plan.RemoteGateways(remote(none), remote(nil)); len(changes) != 1 || changes[0].Verb != plan.Update || changes[0].Object.Spec.Properties == nil {
		t.Errorf("from unknown to none: %+v", changes)
	}
	if changes := plan.RemoteGateways(remote(none), remote(none)); len(changes) > 0 {
		t.Errorf("none to none: %+v", changes)
	}
}

// TestSliceAnnotations: an update changes Tombolo's own annotations of a slice, and keeps those of others.
func TestSliceAnnotations(t *testing.T) {
	t.Parallel()
	const theirs = "example.com/theirs"
	for name, tc := range map[string]struct{ existing, desired, want map[string]string }{
		"both change": {
			map[string]string{clusterset.AnnotationWithheldPorts: "1", clusterset.AnnotationGatewayPorts: "2", theirs: "x"},
			map[string]string{clusterset.AnnotationWithheldPorts: "3", clusterset.AnnotationGatewayPorts: "4", clusterset.AnnotationLocal: "5"},
			map[string]string{clusterset.AnnotationWithheldPorts: "3", clusterset.AnnotationGatewayPorts: "4", clusterset.AnnotationLocal: "5", theirs: "x"},
		},
		"the first stays, the second goes": {
			map[string]string{clusterset.AnnotationWithheldPorts: "1", clusterset.AnnotationGatewayPorts: "2", theirs: "x"},
			map[string]string{clusterset.AnnotationWithheldPorts: "1"},
			map[string]string{clusterset.AnnotationWithheldPorts: "1", theirs: "x"},
		},
		"both come": {
			nil,
			map[string]string{clusterset.AnnotationWithheldPorts: "1", clusterset.AnnotationGatewayPorts: "2"},
			map[string]string{clusterset.AnnotationWithheldPorts: "1", clusterset.AnnotationGatewayPorts: "2"},
		},
	} {
		o, d := stored(slice("a"), "1"), slice("a")
		o.Annotations, d.Annotations = tc.existing, tc.desired
		changes := plan.EndpointSlices([]*discoveryv1.EndpointSlice{d}, []*discoveryv1.EndpointSlice{o})
		if len(changes) != 1 {
			t.Fatalf("%s: %d changes", name, len(changes))
		}
		check.Equal(t, name, tc.want, changes[0].Object.Annotations)
	}
}
