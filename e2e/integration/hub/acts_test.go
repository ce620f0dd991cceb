// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

func (m *member) heartbeat() *hubv1alpha1.Heartbeat {
	h := world.Heartbeat(string(m.id))
	h.Spec.ClusterUID, h.Spec.AgentVersion, h.Spec.Services = "6d2f1c3e-7a52-4f0e-9a0b-6f2f6f6f6f6f", "v0.1.0", 7
	return h
}

func (h *hub) testNamespaces(t *testing.T) {
	const reserved = "is never part of a clusterset: export services of other namespaces only"
	limited := h.join(t, manifests.MemberOptions{ClusterID: "limited", PodCIDRs: prefixes("10.1.0.0/16"), Namespaces: []string{"shop", "kube-system"}})
	for name, tc := range map[string]struct {
		member    *member
		namespace string
		want      string
	}{
		"any":                          {h.a, "other", ""},
		"kube-system":                  {h.a, "kube-system", "namespace kube-system " + reserved},
		"kube-public":                  {h.a, "kube-public", "namespace kube-public " + reserved},
		"kube-node-lease":              {h.a, "kube-node-lease", "namespace kube-node-lease " + reserved},
		"the agents'":                  {h.a, "tombolo-system", "namespace tombolo-system " + reserved},
		"its own on the hub":           {h.a, "member-a", "namespace member-a " + reserved},
		"another's on the hub":         {h.a, "member-limited", "namespace member-limited " + reserved},
		"like a member's":              {h.a, "members", ""},
		"allowed":                      {limited, "shop", ""},
		"not allowed":                  {limited, "other", "the Member of cluster limited does not allow namespace other: do not export from it, or let an administrator of the hub add it to the Member"},
		"kube-system, even if allowed": {limited, "kube-system", "namespace kube-system " + reserved},
	} {
		t.Run(name, func(t *testing.T) {
			tryNew(t, tc.member, tc.member.service(inNamespace(tc.namespace)), tc.want)
			tryNew(t, tc.member, tc.member.endpoints(func(e *hubv1alpha1.PublishedEndpoints) {
				e.Name, e.Spec.Namespace = tc.namespace+".web.0123456789", hubv1alpha1.NamespaceName(tc.namespace)
			}), tc.want)
		})
	}
	t.Run("default/kubernetes", func(t *testing.T) {
		const want = "service default/kubernetes is each cluster's own API server and never part of a clusterset: do not export it"
		for name, refusal := range map[string]string{"kubernetes": want, "kubernetes-2": ""} {
			tryNew(t, h.a, h.a.service(inNamespace("default"), func(s *hubv1alpha1.PublishedService) {
				s.Name, s.Spec.Service = "default."+name, hubv1alpha1.ServiceName(name)
			}), refusal)
		}
	})
	t.Run("no longer allowed", func(t *testing.T) {
		service := limited.service()
		checkError(t, limited.Create(t.Context(), service), "")
		object, k := &hubv1alpha1.Member{}, client.ObjectKey{Namespace: limited.namespace, Name: hubv1alpha1.MemberName}
		world.Update(t, h.admin, k, object, func() { object.Spec.Namespaces = []hubv1alpha1.NamespaceName{"other"} })
		awaitRefusal(t, func(ctx context.Context) error {
			service.Spec.TrafficDistribution = "Another"
			return limited.Update(ctx, service, client.DryRunAll)
		})
		checkError(t, limited.Update(t.Context(), service), "the Member of cluster limited does not allow namespace shop")
		// What is not allowed any more can still be withdrawn.
		checkError(t, limited.Delete(t.Context(), service), "")
	})
}

// What a member writes has a name and a spec, whatever its kind.
func (h *hub) testMetadata(t *testing.T) {
	const rest = ": remove them from the metadata"
	for name, tc := range map[string]struct {
		change func(client.Object)
		want   string
	}{
		"as it is":    {func(client.Object) {}, ""},
		"labels":      {func(o client.Object) { o.SetLabels(map[string]string{"app": "web"}) }, "what a member writes has no labels" + rest},
		"annotations": {func(o client.Object) { o.SetAnnotations(map[string]string{"app": "web"}) }, "what a member writes has no annotations" + rest},
		"finalizers":  {func(o client.Object) { o.SetFinalizers([]string{"example.com/stay"}) }, "what a member writes has no finalizers" + rest},
		"owners": {func(o client.Object) {
			o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}})
		}, "what a member writes has no ownerReferences" + rest},
		"generated name": {func(o client.Object) { o.SetGenerateName("shop.web") }, "what a member writes has no generateName" + rest},
		"several": {func(o client.Object) {
			o.SetLabels(map[string]string{"app": "web"})
			o.SetFinalizers([]string{"example.com/stay"})
		}, "what a member writes has no finalizers, labels" + rest},
	} {
		t.Run(name, func(t *testing.T) {
			for kind, good := range map[string]func() client.Object{
				"PublishedService":   func() client.Object { return h.a.service() },
				"PublishedEndpoints": func() client.Object { return h.a.endpoints() },
				"Heartbeat":          func() client.Object { return h.a.heartbeat() },
			} {
				t.Run(kind, func(t *testing.T) {
					// As the administrator, who may delete a heartbeat: the policy binds everybody.
					try(t, h.admin, good, tc.change, tc.want)
				})
			}
		})
	}
	t.Run("generated name alone", func(t *testing.T) {
		for _, prefix := range []string{"shop.web.x", "shop.other", "shop."} {
			slice := h.a.endpoints(func(e *hubv1alpha1.PublishedEndpoints) { e.Name, e.GenerateName = "", prefix })
			if err := h.a.Create(t.Context(), slice); err == nil {
				t.Errorf("%s was accepted", slice.Name)
			}
		}
	})
	t.Run("managedFields", func(t *testing.T) {
		const want = "managedFields names more than the fields of the spec: leave it out, the server writes it"
		claim := func(fields string) func(*hubv1alpha1.PublishedService) {
			return func(s *hubv1alpha1.PublishedService) {
				s.ManagedFields = append(s.ManagedFields, metav1.ManagedFieldsEntry{
					Manager: "other", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: hubv1alpha1.GroupVersion.String(),
					FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
				})
			}
		}
		for name, tc := range map[string]struct{ fields, want string }{
			"another manager":    {`{"f:spec":{".":{},"f:type":{}}}`, ""},
			"another field":      {`{"f:data":{}}`, want},
			"a long name":        {`{"f:spec":{"f:` + strings.Repeat("x", 100_000) + `":{}}}`, want},
			"many fields":        {`{"f:spec":{` + manyFields(5000) + `}}`, want},
			"many fields deeper": {`{"f:spec":{"f:x":{` + manyFields(5000) + `}}}`, want},
		} {
			t.Run(name, func(t *testing.T) {
				try(t, h.a, func() *hubv1alpha1.PublishedService { return h.a.service() }, claim(tc.fields), tc.want)
			})
		}
		t.Run("many managers", func(t *testing.T) {
			try(t, h.a, func() *hubv1alpha1.PublishedService { return h.a.service() }, func(s *hubv1alpha1.PublishedService) {
				for i := range 9 {
					claim(`{"f:spec":{"f:none":{}}}`)(s)
					s.ManagedFields[len(s.ManagedFields)-1].Manager = "manager-" + strconv.Itoa(i)
				}
			}, want)
		})
	})
	t.Run("status", func(t *testing.T) {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(h.a.service())
		lab.Must(t, err)
		object := &unstructured.Unstructured{Object: content}
		object.SetGroupVersionKind(hubv1alpha1.GroupVersion.WithKind("PublishedService"))
		object.Object["status"] = map[string]any{"big": "thing"}
		object.Object["more"] = "x"
		checkError(t, h.a.Create(t.Context(), object), "")
		for _, field := range []string{"status", "more"} {
			if _, there := object.Object[field]; there {
				t.Errorf("%s was stored", field)
			}
		}
		remove(t, h.a, object)
	})
}

func manyFields(n int) string {
	var fields []string
	for i := range n {
		fields = append(fields, `"f:field`+strconv.Itoa(i)+`":{}`)
	}
	return strings.Join(fields, ",")
}

func (h *hub) testHeartbeats(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*hubv1alpha1.Heartbeat)
		want   string
	}{
		"as it is":       {func(*hubv1alpha1.Heartbeat) {}, ""},
		"renewed":        {func(b *hubv1alpha1.Heartbeat) { b.Spec.RenewTime = metav1.NowMicro() }, ""},
		"a second one":   {func(b *hubv1alpha1.Heartbeat) { b.Name = "heartbeat2" }, "a member's namespace has one Heartbeat, named heartbeat"},
		"publication":    {func(b *hubv1alpha1.Heartbeat) { b.Spec.Publication = "Half" }, `Unsupported value: "Half"`},
		"services below": {func(b *hubv1alpha1.Heartbeat) { b.Spec.Services = -1 }, "spec.services: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			try(t, h.admin, func() *hubv1alpha1.Heartbeat { return h.a.heartbeat() }, tc.change, tc.want)
		})
	}
}

// Records are gone at once: another kind of deletion would leave them with a finalizer, which could hold up a namespace.
func (h *hub) testDeletions(t *testing.T) {
	const want = "a record must not outlive its deletion: delete it with propagationPolicy Background (kubectl delete --cascade=background)"
	for name, tc := range map[string]struct {
		options []client.DeleteOption
		want    string
	}{
		"plain":        {nil, ""},
		"Background":   {[]client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationBackground)}, ""},
		"with a grace": {[]client.DeleteOption{client.GracePeriodSeconds(3600)}, ""},
		"Foreground":   {[]client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationForeground)}, want},
		"Orphan":       {[]client.DeleteOption{client.PropagationPolicy(metav1.DeletePropagationOrphan)}, want},
		"orphanDependents": {[]client.DeleteOption{&client.DeleteOptions{
			Raw: &metav1.DeleteOptions{OrphanDependents: new(true)}, //nolint:staticcheck // old clients send it
		}}, want},
	} {
		t.Run(name, func(t *testing.T) {
			for _, record := range []client.Object{h.a.service(), h.a.endpoints()} {
				checkError(t, h.a.Create(t.Context(), record), "")
				checkError(t, h.a.Delete(t.Context(), record, tc.options...), tc.want)
				remove(t, h.a, record)
				if err := h.a.Get(t.Context(), client.ObjectKeyFromObject(record), record); !apierrors.IsNotFound(err) {
					t.Errorf("%s is still there: %v", record.GetName(), err)
				}
			}
		})
	}
}

// The hub's own creationTimestamp is what bounds a claimed age, so a member must not set it.
// spec: R8
func (h *hub) testAges(t *testing.T) {
	long := metav1.NewTime(time.Now().Add(-100 * time.Hour))
	service := h.a.service(func(s *hubv1alpha1.PublishedService) { s.CreationTimestamp, s.Spec.ExportedAt = long, long })
	checkError(t, h.a.Create(t.Context(), service), "")
	defer remove(t, h.a, service)
	if age := time.Since(service.CreationTimestamp.Time); age > time.Hour {
		t.Errorf("a new record is %s old", age)
	}
	created := service.CreationTimestamp
	service.CreationTimestamp = long
	if err := h.a.Update(t.Context(), service); err == nil && !service.CreationTimestamp.Equal(&created) {
		t.Errorf("an update changed creationTimestamp to %s", service.CreationTimestamp)
	}
	m := world.Read(t, h.admin, world.Key{Namespace: h.a.namespace, Name: hubv1alpha1.MemberName}, &hubv1alpha1.Member{})
	if m.Spec.ClaimedAges != hubv1alpha1.ClaimedAgesBounded {
		t.Errorf("claimedAges is %q by default", m.Spec.ClaimedAges)
	}
	m.Spec.ClaimedAges = hubv1alpha1.ClaimedAgesTrusted
	checkError(t, h.a.Update(t.Context(), m), `cannot update resource "members"`)
}

func (h *hub) testWithoutMember(t *testing.T) {
	m := h.join(t, manifests.MemberOptions{ClusterID: "orphan", PodCIDRs: prefixes("10.1.0.0/16")})
	existing := m.service()
	checkError(t, m.Create(t.Context(), existing), "")
	object := &hubv1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: hubv1alpha1.MemberName}}
	checkError(t, h.admin.Delete(t.Context(), object), "")
	const want = "no params found for policy binding with `Deny` parameterNotFoundAction"
	awaitRefusal(t, func(ctx context.Context) error { return m.Create(ctx, m.endpoints(), client.DryRunAll) })
	checkError(t, m.Create(t.Context(), m.endpoints()), want)
	checkError(t, m.Create(t.Context(), m.service(inNamespace("other"))), want)
	existing.Spec.TrafficDistribution = "x"
	checkError(t, m.Update(t.Context(), existing), want)
	checkError(t, m.Delete(t.Context(), existing), "")
}

// spec: K3
func (h *hub) testLeave(t *testing.T) {
	m := h.join(t, manifests.MemberOptions{ClusterID: "leaver", PodCIDRs: prefixes("10.1.0.0/16")})
	for _, o := range []client.Object{m.service(), m.endpoints(), m.heartbeat()} {
		checkError(t, m.Create(t.Context(), o), "")
	}
	if before := h.traces(t, "leaver"); len(before) < len(m.objects) {
		t.Fatalf("the search finds only %v", before)
	}
	h.leave(t, m)
	world.Eventually(t, func(ctx context.Context) error {
		namespace := m.objects[0].DeepCopy()
		if err := h.admin.Get(ctx, client.ObjectKeyFromObject(namespace), namespace); !apierrors.IsNotFound(err) {
			return errors.Join(err, fmt.Errorf("%s is there", namespace.GetName()))
		}
		return nil
	})
	if left := h.traces(t, "leaver"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// leave deletes what join applied, as "kubectl delete -k --wait=false" would, also when the test is ending.
func (h *hub) leave(t *testing.T, m *member) {
	t.Helper()
	for _, o := range m.objects {
		if err := client.IgnoreNotFound(h.admin.Delete(context.WithoutCancel(t.Context()), o.DeepCopy())); err != nil {
			t.Error(err)
		}
	}
}
