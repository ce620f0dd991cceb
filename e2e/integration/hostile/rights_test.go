// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// other is the namespace of an honest member on the hub.
const other = "member-b"

// beyondRights are acts that no token of a member allows, whatever else guards the hub.
func beyondRights() []act {
	record := hubv1alpha1.PublishedService{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: web.Namespace + "." + web.Name}}
	forbidden := func(name, says string, try try) act {
		return refused(name, try, byRights("cannot "+says))
	}
	creating := func(o client.Object) try {
		return func(ctx context.Context, a *attempt) error { return a.Create(ctx, o) }
	}
	deleting := func(o client.Object) try {
		return func(ctx context.Context, a *attempt) error { return a.Delete(ctx, o) }
	}
	listing := func(l client.ObjectList) try {
		return func(ctx context.Context, a *attempt) error { return a.List(ctx, l) }
	}
	asking := func(namespace, account string) try {
		return func(ctx context.Context, a *attempt) error { return a.token(ctx, namespace, account) }
	}
	return []act{
		forbidden("a record in another member's namespace", `create resource "publishedservices" in API group "hub.tombolo-mcs.io" in the namespace "member-b"`,
			func(ctx context.Context, a *attempt) error {
				service, _ := a.records()
				service.Namespace = other
				return a.Create(ctx, service)
			}),
		forbidden("a change of another member's record", `update resource "publishedservices"`, func(ctx context.Context, a *attempt) error {
			honest := record.DeepCopy()
			return a.changed(ctx, honest, func() { honest.Spec.Ports[0].Port = 81 })
		}),
		forbidden("the deletion of another member's record", `delete resource "publishedservices"`, deleting(record.DeepCopy())),
		forbidden("the deletion of all that another member has", `deletecollection resource "publishedendpoints"`, func(ctx context.Context, a *attempt) error {
			return a.DeleteAllOf(ctx, &hubv1alpha1.PublishedEndpoints{}, client.InNamespace(other))
		}),
		forbidden("another member's heartbeat", `update resource "heartbeats"`, func(ctx context.Context, a *attempt) error {
			beat := &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: hubv1alpha1.HeartbeatName}}
			return a.changed(ctx, beat, func() { beat.Spec.Publication = hubv1alpha1.PublicationPartial })
		}),
		forbidden("another cluster's ID", `update resource "members"`, func(ctx context.Context, a *attempt) error {
			member := &hubv1alpha1.Member{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: hubv1alpha1.MemberName}}
			return a.changed(ctx, member, func() { member.Spec.ClusterID = "b" })
		}),
		forbidden("a Member of its own making", `create resource "members"`, creating(&hubv1alpha1.Member{
			ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "another"},
			Spec:       hubv1alpha1.MemberSpec{ClusterID: "b", PodCIDRs: []hubv1alpha1.CIDR{"0.0.0.0/0"}},
		})),
		forbidden("a status that changes the spec", `update resource "publishedservices/status"`, func(ctx context.Context, a *attempt) error {
			service, _ := a.records()
			return a.Status().Update(ctx, service)
		}),
		forbidden("a token of another member", `create resource "serviceaccounts/token" in API group "" in the namespace "member-b"`, asking(other, manifests.MemberServiceAccount)),
		forbidden("a token of another account", `create resource "serviceaccounts/token"`, asking(own, "default")),
		forbidden("a token of the hub's controllers", `create resource "serviceaccounts/token"`, asking(metav1.NamespaceSystem, "namespace-controller")),
		forbidden("the hub's Secrets", `list resource "secrets" in API group "" at the cluster scope`, listing(&corev1.SecretList{})),
		forbidden("the hub's namespaces", `list resource "namespaces" in API group "" at the cluster scope`, listing(&corev1.NamespaceList{})),
		forbidden("more rights for itself", `create resource "rolebindings"`, creating(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "more"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		})),
		forbidden("the end of a policy", `delete resource "validatingadmissionpolicybindings"`,
			deleting(&admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "addresses.hub.tombolo-mcs.io"}})),
		forbidden("the end of its quota", `delete resource "resourcequotas"`,
			deleting(&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: manifests.MemberResourceQuota}})),
	}
}

// changed reads an object as the hub's administrator, and writes it back, changed, as the hostile member.
func (a *attempt) changed(ctx context.Context, o client.Object, change func()) error {
	if err := a.HubClient.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return err
	}
	change()
	return a.Update(ctx, o)
}

// token asks for a token of an account.
func (a *attempt) token(ctx context.Context, namespace, account string) error {
	return a.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}},
		&authenticationv1.TokenRequest{})
}

// tokens are acts by which whoever has a member's token for the hub would get a better one of the same account.
func tokens() []act {
	year := ofOneYear()
	return []act{
		refused("a token of a year", issuing(year),
			byPolicy("tokens", "a member's token is good for 72h at the most, not for 31536000s")).
			otherwise("it allows no more than the one before, and ends with the account", func(t *testing.T, w *env, k key) {
				t.Helper()
				if err := w.bearing(t, k, year).token(t.Context(), other, manifests.MemberServiceAccount); !apierrors.IsForbidden(err) {
					t.Errorf("for another member's token the hub says: %v", err)
				}
			}),
		refused("a token of a pod, good for longer than it says",
			func(ctx context.Context, a *attempt) error {
				if err := a.HubClient.Create(ctx, podOf(a.key)); err != nil {
					return err
				}
				return issuing(boundTo(a.key))(ctx, a)
			},
			byPolicy("tokens", "a member's token is bound to its account only: leave out boundObjectRef")).
			otherwise("it ends with the pod, and no member can make one on the hub", func(t *testing.T, w *env, k key) {
				t.Helper()
				a := w.bearing(t, k, boundTo(k))
				lab.Must(t, w.HubClient.Delete(t.Context(), podOf(k), client.GracePeriodSeconds(0)))
				world.Eventually(t, a.isUnknown)
			}),
		refused("a token for an audience elsewhere", issuing(elsewhere()),
			byPolicy("tokens", "a member's token is for the hub only: leave out audiences")).
			otherwise("it says who the member is, and the hub does not take it", func(t *testing.T, w *env, k key) {
				t.Helper()
				lab.Must(t, w.bearing(t, k, elsewhere()).isUnknown(t.Context()))
			}),
	}
}

// issuing asks for a token of the member's own account.
func issuing(spec authenticationv1.TokenRequestSpec) try {
	return func(ctx context.Context, a *attempt) error {
		_, err := a.issued(ctx, spec)
		return err
	}
}

func elsewhere() authenticationv1.TokenRequestSpec {
	return authenticationv1.TokenRequestSpec{Audiences: []string{"https://elsewhere.example"}}
}

func ofOneYear() authenticationv1.TokenRequestSpec {
	return authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64((365 * 24 * time.Hour).Seconds()))}
}

// boundTo asks for the lifetime that an API server makes a year of where it is a pod's (--service-account-extend-token-expiration).
func boundTo(k key) authenticationv1.TokenRequestSpec {
	return authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(3607)),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: k.Name},
	}
}

// podOf returns a pod of the hostile member's account, such as that of an agent that runs beside the hub.
func podOf(k key) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: k.Name},
		Spec: corev1.PodSpec{
			ServiceAccountName: manifests.MemberServiceAccount,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "agent", Image: "none",
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

// issued has the hub issue another token of the hostile member's own account.
func (a *attempt) issued(ctx context.Context, spec authenticationv1.TokenRequestSpec) (string, error) {
	request := &authenticationv1.TokenRequest{Spec: spec}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: manifests.MemberServiceAccount}}
	err := a.SubResource("token").Create(ctx, account, request)
	return request.Status.Token, err
}

// bearing returns what the hostile member does something with that has such a token.
func (w *env) bearing(t *testing.T, k key, spec authenticationv1.TokenRequestSpec) *attempt {
	t.Helper()
	token, err := w.attempt(t, "bearer", k).issued(t.Context(), spec)
	lab.Must(t, err)
	config := rest.AnonymousClientConfig(w.mallory)
	config.BearerToken = token
	return w.as(t, config, "bearer", k)
}

// isUnknown returns nil where the hub does not know who asks.
func (a *attempt) isUnknown(ctx context.Context) error {
	if err := a.List(ctx, &hubv1alpha1.MemberList{}); !apierrors.IsUnauthorized(err) {
		return fmt.Errorf("the hub says: %w", err)
	}
	return nil
}
