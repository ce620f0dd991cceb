// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package retain

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// definitions are CustomResourceDefinitions.
var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// Unknown is the UID of a definition that may not be read. Then each deletion is one of a user.
const Unknown = types.UID("unknown")

// DefinitionIn returns the definition of a kind in a cluster, by its name. It reads the definition at each call.
func DefinitionIn(config *rest.Config, name string) Definition {
	client, invalid := metadata.NewForConfig(config)
	return func(ctx context.Context) (types.UID, error) {
		if invalid != nil {
			return "", fmt.Errorf("set up the client of the definition %s: %w", name, invalid)
		}
		found, err := client.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
		switch {
		case apierrors.IsForbidden(err):
			return Unknown, nil
		case apierrors.IsNotFound(err):
			return "", nil
		case err != nil:
			return "", fmt.Errorf("get the definition %s: %w", name, err)
		case found.DeletionTimestamp != nil:
			return "", nil
		}
		return found.UID, nil
	}
}
