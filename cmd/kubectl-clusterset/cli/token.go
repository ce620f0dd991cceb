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

// isTokenValid reports whether the token in the agent's Secret is valid for long enough, and this hub accepts it. The hub rejects
// tokens of a ServiceAccount that was created again, and those of a hub that was rebuilt, before they expire.
func (j *joinCommand) isTokenValid(ctx context.Context, secret *corev1.Secret) (bool, error) {
	expires, err := time.Parse(time.RFC3339, secret.Annotations[clusterset.AnnotationTokenExpires])
	if err != nil || time.Until(expires) <= clusterset.TokenLifetime/3 {
		return false, nil //nolint:nilerr // a token without a date is replaced
	}
	if issued, err := j.isIssuedByHub(ctx, secret); err != nil || !issued { // an API server accepts a token for some seconds after its account is deleted
		return false, err
	}
	return isAccepted(j.hub.config, string(secret.Data[clusterset.HubSecretToken]))
}

// isIssuedByHub reports whether the token in the agent's Secret is for the existing ServiceAccount of this member on the hub. The
// token may have expired.
func (j *joinCommand) isIssuedByHub(ctx context.Context, secret *corev1.Secret) (bool, error) {
	account := &corev1.ServiceAccount{}
	err := j.hub.client.Get(ctx, client.ObjectKey{Namespace: j.id.HubNamespace(), Name: manifests.MemberServiceAccount}, account)
	if isAbsentKind(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get ServiceAccount %s of %s: %w", manifests.MemberServiceAccount, j.hub.what, err)
	}
	uid := accountUID(string(secret.Data[clusterset.HubSecretToken]))
	return uid != "" && uid == string(account.UID), nil
}

// isAccepted reports whether an API server authenticates a token. It does not check the rights.
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

// accountUID returns the UID of the ServiceAccount in a token (RFC 7519, the private claim kubernetes.io), empty if there is
// none. It does not verify the token.
func accountUID(token string) string {
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
