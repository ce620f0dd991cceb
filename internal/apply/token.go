// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IssueToken requests a token for a ServiceAccount from the writer's cluster, for the audience of its own API server. The API server
// may choose another lifetime: the returned status contains the expiration time.
func (w Writer) IssueToken(ctx context.Context, account client.ObjectKey, lifetime time.Duration) (authenticationv1.TokenRequestStatus, error) {
	request := &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(lifetime.Seconds()))},
	}
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	if err := w.client.SubResource("token").Create(ctx, object, request); err != nil {
		return authenticationv1.TokenRequestStatus{}, fmt.Errorf("issue a token for ServiceAccount %s: %w", account, err)
	}
	return request.Status, nil
}

// UpdateSecret updates a Secret that an administrator has created for Tombolo.
func (w Writer) UpdateSecret(ctx context.Context, secret *corev1.Secret) error {
	if err := w.client.Update(ctx, secret); err != nil {
		return fmt.Errorf("update Secret %s: %w", client.ObjectKeyFromObject(secret), err)
	}
	return nil
}
