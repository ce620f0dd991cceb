// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package caches

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Get reads an object, which must not be changed if it comes from a cache, and reports whether it exists.
func Get(ctx context.Context, from client.Reader, key client.ObjectKey, into client.Object) (bool, error) {
	err := from.Get(ctx, key, into, client.UnsafeDisableDeepCopy)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get %s %s: %w", clusterset.KindOf(into), key, err)
	}
	return true, nil
}
