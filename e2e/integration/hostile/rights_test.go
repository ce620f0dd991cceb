// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// other is the namespace of an honest member on the hub.
const other = "member-b"

// beyondRights are acts that no token of a member allows, whatever else guards the hub.
func beyondRights() []act {
	record := hubv1alpha1.PublishedService{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: web.Namespace + "." + web.Name}}
	return []act{
		{
			name: "a record in another member's namespace",
			try: func(ctx context.Context, a *attempt) error {
				service, _ := a.records()
				service.Namespace = other
				return a.Create(ctx, service)
			},
			refused: []refusal{byRights(`cannot create resource "publishedservices" in API group "hub.tombolo-mcs.io" in the namespace "member-b"`)},
		},
		{
			name: "a change of another member's record",
			try: func(ctx context.Context, a *attempt) error {
				honest := record.DeepCopy()
				if err := a.HubClient.Get(ctx, client.ObjectKeyFromObject(honest), honest); err != nil {
					return err
				}
				honest.Spec.Ports[0].Port = 81
				return a.Update(ctx, honest)
			},
			refused: []refusal{byRights(`cannot update resource "publishedservices"`)},
		},
		{
			name:    "the deletion of another member's record",
			try:     func(ctx context.Context, a *attempt) error { return a.Delete(ctx, record.DeepCopy()) },
			refused: []refusal{byRights(`cannot delete resource "publishedservices"`)},
		},
		{
			name: "the deletion of all that another member has",
			try: func(ctx context.Context, a *attempt) error {
				return a.DeleteAllOf(ctx, &hubv1alpha1.PublishedEndpoints{}, client.InNamespace(other))
			},
			refused: []refusal{byRights(`cannot deletecollection resource "publishedendpoints"`)},
		},
		{
			name: "another member's heartbeat",
			try: func(ctx context.Context, a *attempt) error {
				beat := &hubv1alpha1.Heartbeat{}
				if err := a.HubClient.Get(ctx, key{Namespace: other, Name: hubv1alpha1.HeartbeatName}, beat); err != nil {
					return err
				}
				beat.Spec.Publication = hubv1alpha1.PublicationPartial
				return a.Update(ctx, beat)
			},
			refused: []refusal{byRights(`cannot update resource "heartbeats"`)},
		},
		{
			name: "another cluster's ID",
			try: func(ctx context.Context, a *attempt) error {
				member := &hubv1alpha1.Member{}
				if err := a.HubClient.Get(ctx, key{Namespace: own, Name: hubv1alpha1.MemberName}, member); err != nil {
					return err
				}
				member.Spec.ClusterID = "b"
				return a.Update(ctx, member)
			},
			refused: []refusal{byRights(`cannot update resource "members"`)},
		},
		{
			name: "a Member of its own making",
			try: func(ctx context.Context, a *attempt) error {
				return a.Create(ctx, &hubv1alpha1.Member{
					ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "another"},
					Spec:       hubv1alpha1.MemberSpec{ClusterID: "b", PodCIDRs: []hubv1alpha1.CIDR{"0.0.0.0/0"}},
				})
			},
			refused: []refusal{byRights(`cannot create resource "members"`)},
		},
		{
			name: "a status that changes the spec",
			try: func(ctx context.Context, a *attempt) error {
				service, _ := a.records()
				return a.Status().Update(ctx, service)
			},
			refused: []refusal{byRights(`cannot update resource "publishedservices/status"`)},
		},
		{
			name: "a token of another member",
			try: func(ctx context.Context, a *attempt) error {
				return a.token(ctx, other, manifests.MemberServiceAccount)
			},
			refused: []refusal{byRights(`cannot create resource "serviceaccounts/token" in API group "" in the namespace "member-b"`)},
		},
		{
			name:    "a token of another account",
			try:     func(ctx context.Context, a *attempt) error { return a.token(ctx, own, "default") },
			refused: []refusal{byRights(`cannot create resource "serviceaccounts/token"`)},
		},
		{
			name: "a token of the hub's controllers",
			try: func(ctx context.Context, a *attempt) error {
				return a.token(ctx, metav1.NamespaceSystem, "namespace-controller")
			},
			refused: []refusal{byRights(`cannot create resource "serviceaccounts/token"`)},
		},
		{
			name:    "the hub's Secrets",
			try:     func(ctx context.Context, a *attempt) error { return a.List(ctx, &corev1.SecretList{}) },
			refused: []refusal{byRights(`cannot list resource "secrets" in API group "" at the cluster scope`)},
		},
		{
			name: "the hub's namespaces",
			try:  func(ctx context.Context, a *attempt) error { return a.List(ctx, &corev1.NamespaceList{}) },
			refused: []refusal{
				byRights(`cannot list resource "namespaces" in API group "" at the cluster scope`),
			},
		},
		{
			name: "more rights for itself",
			try: func(ctx context.Context, a *attempt) error {
				return a.Create(ctx, &rbacv1.RoleBinding{
					ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: "more"},
					RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
				})
			},
			refused: []refusal{byRights(`cannot create resource "rolebindings"`)},
		},
		{
			name: "the end of a policy",
			try: func(ctx context.Context, a *attempt) error {
				return a.Delete(ctx, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "addresses.hub.tombolo-mcs.io"}})
			},
			refused: []refusal{byRights(`cannot delete resource "validatingadmissionpolicybindings"`)},
		},
		{
			name: "the end of its quota",
			try: func(ctx context.Context, a *attempt) error {
				return a.Delete(ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: own, Name: manifests.MemberResourceQuota}})
			},
			refused: []refusal{byRights(`cannot delete resource "resourcequotas"`)},
		},
	}
}

// token asks for a token of an account.
func (a *attempt) token(ctx context.Context, namespace, account string) error {
	return a.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}},
		&authenticationv1.TokenRequest{})
}
