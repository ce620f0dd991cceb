// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// isGood reports whether the token in the agent's Secret is good for long enough, and the hub knows it: that of a
// ServiceAccount that was deleted and made anew is not, nor that of a hub that has been rebuilt, however long they would
// have been good.
func (j *joining) isGood(ctx context.Context, secret *corev1.Secret) (bool, error) {
	expires, err := time.Parse(time.RFC3339, secret.Annotations[clusterset.AnnotationTokenExpires])
	if err != nil || time.Until(expires) <= clusterset.TokenLifetime/3 {
		return false, nil //nolint:nilerr // without a date it is not ours
	}
	if issued, err := j.isIssuedHere(ctx, secret); err != nil || !issued { // an API server goes on accepting a token for seconds
		return false, err
	}
	return isAccepted(j.hub.config, string(secret.Data[clusterset.HubSecretToken]))
}

// isIssuedHere reports whether the token in the agent's Secret says that it is for the very account that the hub has for this
// member, whether or not it is still good.
func (j *joining) isIssuedHere(ctx context.Context, secret *corev1.Secret) (bool, error) {
	account := &corev1.ServiceAccount{}
	err := j.hub.client.Get(ctx, client.ObjectKey{Namespace: j.id.HubNamespace(), Name: manifests.MemberServiceAccount}, account)
	if isAbsentKind(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get ServiceAccount %s of %s: %w", manifests.MemberServiceAccount, j.hub.what, err)
	}
	uid := accountOf(string(secret.Data[clusterset.HubSecretToken]))
	return uid != "" && uid == string(account.UID), nil
}

// isAccepted reports whether an API server knows whose token it is. What that one may do is another question.
func isAccepted(config *rest.Config, token string) (bool, error) {
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token
	d, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return false, fmt.Errorf("the hub: %w", err)
	}
	if _, err = d.ServerVersion(); apierrors.IsUnauthorized(err) {
		return false, nil
	}
	if err != nil && !apierrors.IsForbidden(err) {
		return false, fmt.Errorf("ask the hub with the agent's token: %w", err)
	}
	return true, nil
}

// accountOf returns the UID of the ServiceAccount that a token says it is for (RFC 7519, the private claim
// kubernetes.io); empty where it says none. Nothing is verified.
func accountOf(token string) string {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	content, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return ""
	}
	var claims struct {
		Kubernetes struct {
			ServiceAccount struct {
				UID string `json:"uid"`
			} `json:"serviceaccount"`
		} `json:"kubernetes.io"`
	}
	if err := json.Unmarshal(content, &claims); err != nil {
		return ""
	}
	return claims.Kubernetes.ServiceAccount.UID
}
