// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TokenAudiences returns the audiences of a token that is requested without audiences: those of the cluster's API server. Only an
// issued token names them, so it requests one for any ServiceAccount and drops it. It returns none if there is no ServiceAccount yet.
func (i Installer) TokenAudiences(ctx context.Context) ([]string, error) {
	accounts := &corev1.ServiceAccountList{}
	if err := i.client.List(ctx, accounts, client.Limit(1)); err != nil {
		return nil, fmt.Errorf("list ServiceAccounts: %w", err)
	}
	if len(accounts.Items) == 0 {
		return nil, nil
	}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(600))}}
	if err := i.client.SubResource("token").Create(ctx, &accounts.Items[0], request); err != nil {
		return nil, fmt.Errorf("issue a token for ServiceAccount %s: %w", client.ObjectKeyFromObject(&accounts.Items[0]), err)
	}
	return request.Spec.Audiences, nil
}
