// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// VersionObject is the name of the CustomResourceDefinition with the version of the hub in an annotation. Members may read it.
const VersionObject = "members.hub.tombolo-mcs.io"

// definitions is the kind of CustomResourceDefinitions, which the client reads as metadata only.
var definitions = schema.GroupVersion{Group: "apiextensions.k8s.io", Version: "v1"}

// Version returns the version of the hub of a client, empty if the hub does not have it.
func Version(ctx context.Context, c client.Reader) (string, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(definitions.WithKind("CustomResourceDefinition"))
	if err := c.Get(ctx, client.ObjectKey{Name: VersionObject}, found); err != nil {
		return "", fmt.Errorf("get the CustomResourceDefinition %s of the hub: %w", VersionObject, err)
	}
	return found.Annotations[clusterset.AnnotationVersion], nil
}
