// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// tokens are acts by which whoever has a member's token for the hub would get a better one of the same account.
func tokens() []act {
	year := ofOneYear()
	return []act{
		{
			name: "a token of a year",
			try: func(ctx context.Context, a *attempt) error {
				_, err := a.issued(ctx, year)
				return err
			},
			refused:  []refusal{byPolicy("tokens", "a member's token is good for 72h at the most, not for 31536000s")},
			harmless: "it allows no more than the one before, and ends with the account",
			check: func(t *testing.T, w *env, k key) {
				t.Helper()
				if err := w.bearing(t, k, year).token(t.Context(), other, manifests.MemberServiceAccount); !apierrors.IsForbidden(err) {
					t.Errorf("for another member's token the hub says: %v", err)
				}
			},
		},
		{
			name: "a token of a pod, good for longer than it says",
			try: func(ctx context.Context, a *attempt) error {
				if err := a.HubClient.Create(ctx, podOf(a.key)); err != nil {
					return err
				}
				_, err := a.issued(ctx, boundTo(a.key))
				return err
			},
			refused:  []refusal{byPolicy("tokens", "a member's token is bound to its account only: leave out boundObjectRef")},
			harmless: "it ends with the pod, and no member can make one on the hub",
			check: func(t *testing.T, w *env, k key) {
				t.Helper()
				a := w.bearing(t, k, boundTo(k))
				lab.Must(t, w.HubClient.Delete(t.Context(), podOf(k), client.GracePeriodSeconds(0)))
				world.Eventually(t, a.isUnknown)
			},
		},
		{
			name: "a token for an audience elsewhere",
			try: func(ctx context.Context, a *attempt) error {
				_, err := a.issued(ctx, elsewhere())
				return err
			},
			refused:  []refusal{byPolicy("tokens", "a member's token is for the hub only: leave out audiences")},
			harmless: "it says who the member is, and the hub does not take it",
			check: func(t *testing.T, w *env, k key) {
				t.Helper()
				lab.Must(t, w.bearing(t, k, elsewhere()).isUnknown(t.Context()))
			},
		},
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
