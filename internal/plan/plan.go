// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan computes the changes from existing to desired objects. It is pure: a plan is a value that can be applied, printed or
// compared.
package plan

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Verb is the type of a change.
type Verb string

// The verbs of a plan.
const (
	Create Verb = "create"
	Update Verb = "update"
	// UpdateStatus writes the status subresource only.
	UpdateStatus Verb = "update-status"
	Delete       Verb = "delete"
)

// Change is one write.
type Change[T any] struct {
	Verb Verb
	// Object is the object to write or to delete. Unless the verb is Create, it has the UID and resourceVersion of the existing
	// object, so that a newer version is not overwritten.
	Object T
	// Existing is the existing object; nil if the verb is Create.
	Existing T
}

// object is a pointer to a Kubernetes object.
type object[T any] interface {
	*T
	metav1.Object
}

// compare returns the changes from the existing to the desired objects of one namespace, matched by name. Deletions come first, then
// the other changes, each sorted by name. overlay sets the desired fields of a shallow copy of the existing object, so it must not
// change values behind pointers. same reports whether overlay changed nothing. replace reports that the existing object must be
// deleted and created again. The arguments are not changed, and the result shares memory with them.
func compare[T any, P object[T]](
	desired, existing []P, overlay func(existing, desired P), same func(existing, overlaid P) bool, replace func(existing, desired P) bool,
) []Change[P] {
	desiredByName := make(map[string]P, len(desired))
	for _, d := range desired {
		desiredByName[d.GetName()] = d
	}
	kept := make(map[string]P, len(existing))
	var deletions, others []Change[P]
	for _, o := range existing {
		d, ok := desiredByName[o.GetName()]
		if !ok || replace(o, d) {
			deletions = append(deletions, Change[P]{Verb: Delete, Object: o, Existing: o})
			continue
		}
		kept[o.GetName()] = o
	}
	for _, d := range desired {
		o, ok := kept[d.GetName()]
		if !ok {
			others = append(others, Change[P]{Verb: Create, Object: d})
			continue
		}
		overlaid := P(new(*o))
		overlay(overlaid, d)
		if !same(o, overlaid) {
			others = append(others, Change[P]{Verb: Update, Object: overlaid, Existing: o})
		}
	}
	byName(deletions)
	byName(others)
	return append(deletions, others...)
}

// equal compares whole objects. An empty value equals an absent one.
func equal[P any](existing, overlaid P) bool { return equality.Semantic.DeepEqual(existing, overlaid) }

func byName[P metav1.Object](changes []Change[P]) {
	slices.SortFunc(changes, func(a, b Change[P]) int { return cmp.Compare(a.Object.GetName(), b.Object.GetName()) })
}
