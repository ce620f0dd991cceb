// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package join

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

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/admission"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/credentials"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// checkHubAddress selects the hub's URL and its certificate authority for the member's pods.
func (j *command) checkHubAddress(ctx context.Context) error {
	config := rest.CopyConfig(j.Hub.Config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return fmt.Errorf("the hub's kubeconfig: %w", err)
	}
	var before *credentials.Address
	var isHere bool
	if j.invited == nil {
		var err error
		if before, isHere, err = j.existingHubAddress(ctx); err != nil {
			return err
		}
	}
	kept := before
	if !isHere {
		kept = nil
	}
	source := admission.FromKubeconfig
	if j.invited != nil {
		source = admission.FromInvitation
	}
	address, server, ca := j.ChooseHubAddress(credentials.Address{Server: config.Host, CA: config.CAData}, source, kept)
	if kept == nil && before != nil && before.Server != address.Server {
		j.r.Notef("the agent's Secret leads to %s with a token for no account of this hub, as if that were another hub: %s takes its place; pass --hub-server for another URL", before.Server, address.Server)
	}
	j.UseHubAddress(address, server, ca)
	return nil
}

// existingHubAddress returns the address in the agent's Secret, nil if there is none, and whether it is of this hub. URLs cannot
// be compared: one hub may have several, and another hub may use the same one. So it compares the ServiceAccount of the token,
// even if that has expired.
func (j *command) existingHubAddress(ctx context.Context) (before *credentials.Address, isHere bool, err error) {
	if j.ID == "" {
		return nil, false, nil
	}
	secret, err := credentials.ReadSecret(ctx, j.member)
	if err != nil || secret == nil {
		return nil, false, err
	}
	if before = credentials.AddressIn(secret); before == nil {
		return nil, false, nil
	}
	isHere, err = j.isIssuedByHub(ctx, secret)
	return before, isHere, err
}

// isTokenValid reports whether the token in the agent's Secret is valid for long enough, and this hub accepts it. The hub rejects
// tokens of a ServiceAccount that was created again, and those of a hub that was rebuilt, before they expire.
func (j *command) isTokenValid(ctx context.Context, secret *corev1.Secret) (bool, error) {
	expires, err := time.Parse(time.RFC3339, secret.Annotations[clusterset.AnnotationTokenExpires])
	if err != nil || time.Until(expires) <= clusterset.TokenLifetime/3 {
		return false, nil //nolint:nilerr // a token without a date is replaced
	}
	if issued, err := j.isIssuedByHub(ctx, secret); err != nil || !issued { // an API server accepts a token for some seconds after its account is deleted
		return false, err
	}
	return isAccepted(j.Hub.Config, string(secret.Data[clusterset.HubSecretToken]))
}

// isIssuedByHub reports whether the token in the agent's Secret is for the existing ServiceAccount of this member on the hub. The
// token may have expired.
func (j *command) isIssuedByHub(ctx context.Context, secret *corev1.Secret) (bool, error) {
	account := &corev1.ServiceAccount{}
	err := j.Hub.Client.Get(ctx, client.ObjectKey{Namespace: j.ID.HubNamespace(), Name: manifests.MemberServiceAccount}, account)
	if connection.IsAbsent(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get ServiceAccount %s of %s: %w", manifests.MemberServiceAccount, j.Hub.What, err)
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
