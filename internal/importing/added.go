// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"maps"
	"slices"

	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Name identifies an existing object of an import.
type Name struct{ Kind, Name string }

// NameOf returns the Name of an object.
func NameOf(object plan.Object) Name { return Name{clusterset.KindOf(object), object.GetName()} }

// metadata is an object whose labels and annotations can be replaced in a copy.
type metadata[T any] interface {
	plan.Object
	comparable
	DeepCopy() T
}

// withAdded returns a desired object with what an admission policy adds to it: it is not ours, and is left alone.
func withAdded[T metadata[T]](o Observed, desired T) T {
	var none T
	if desired == none {
		return none
	}
	added := o.Added[NameOf(desired)]
	if added.IsEmpty() {
		return desired
	}
	result := desired.DeepCopy()
	result.SetLabels(union(added.Labels, desired.GetLabels()))
	result.SetAnnotations(union(added.Annotations, desired.GetAnnotations()))
	return result
}

// allWithAdded is withAdded for several objects.
func allWithAdded[T metadata[T]](o Observed, desired []T) []T {
	if len(o.Added) == 0 {
		return desired
	}
	result := slices.Clone(desired)
	for i, object := range desired {
		result[i] = withAdded(o, object)
	}
	return result
}

// union returns the entries of both maps. The second one has priority.
func union(a, b map[string]string) map[string]string {
	if len(a) == 0 {
		return b
	}
	result := maps.Clone(a)
	maps.Copy(result, b)
	return result
}
