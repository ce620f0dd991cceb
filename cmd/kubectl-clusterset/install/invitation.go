// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IssueBoundToken requests a token for a ServiceAccount that is valid while a Secret of its namespace exists. The API server may choose
// another lifetime: the returned status contains the expiration time.
func (i Installer) IssueBoundToken(ctx context.Context, account client.ObjectKey, secret *corev1.Secret, lifetime time.Duration) (authenticationv1.TokenRequestStatus, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(lifetime.Seconds())),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Secret", Name: secret.Name, UID: secret.UID},
	}}
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}
	if err := i.client.SubResource("token").Create(ctx, object, request); err != nil {
		return authenticationv1.TokenRequestStatus{}, fmt.Errorf("issue a token for ServiceAccount %s: %w", account, err)
	}
	return request.Status, nil
}

// DeleteSecret deletes a Secret that this client may delete and not read. It is no error if there is none.
func (i Installer) DeleteSecret(ctx context.Context, key client.ObjectKey) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := client.IgnoreNotFound(i.client.Delete(ctx, secret)); err != nil {
		return fmt.Errorf("delete Secret %s: %w", key, err)
	}
	return nil
}
