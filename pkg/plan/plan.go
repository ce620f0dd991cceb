// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plan compares what a cluster should hold with what it holds, and returns the changes that lead from one to
// the other. It is pure: a plan is a value, which can be carried out, printed or compared.
package plan

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Verb says what is to be done with an object.
type Verb string

// The verbs of a plan.
const (
	Create Verb = "create"
	Update Verb = "update"
	// UpdateStatus writes the status subresource alone.
	UpdateStatus Verb = "update-status"
	Delete       Verb = "delete"
)

// Change is one write.
type Change[T any] struct {
	Verb Verb
	// Object is what to write, or what to delete. Unless it is to be created it carries the UID and resourceVersion that
	// were observed, so that nothing is overwritten that was not seen.
	Object T
	// Observed is the object as it stands; nil where it is to be created.
	Observed T
}

// object is what a plan needs of a Kubernetes object.
type object[T any] interface {
	metav1.Object
	DeepCopy() T
}

// ByName returns the changes that make the observed objects of one namespace the desired ones, matched by name:
// deletions first, then the rest, each sorted by name. overlay returns the observed object with the desired fields;
// where that changes nothing, no change is planned. replace reports that the observed object cannot become the
// desired one; it is deleted and created anew. Neither argument is changed.
func ByName[T object[T]](desired, observed []T, overlay func(observed, desired T) T, replace func(observed, desired T) bool) []Change[T] {
	wanted := make(map[string]T, len(desired))
	for _, d := range desired {
		wanted[d.GetName()] = d
	}
	held := make(map[string]T, len(observed))
	var deletions, others []Change[T]
	for _, o := range observed {
		d, ok := wanted[o.GetName()]
		if !ok || replace(o, d) {
			deletions = append(deletions, Change[T]{Verb: Delete, Object: o, Observed: o})
			continue
		}
		held[o.GetName()] = o
	}
	for _, d := range desired {
		o, ok := held[d.GetName()]
		if !ok {
			others = append(others, Change[T]{Verb: Create, Object: d})
			continue
		}
		if updated := overlay(o.DeepCopy(), d); !equality.Semantic.DeepEqual(o, updated) {
			others = append(others, Change[T]{Verb: Update, Object: updated, Observed: o})
		}
	}
	byName(deletions)
	byName(others)
	return append(deletions, others...)
}

func byName[T metav1.Object](changes []Change[T]) {
	slices.SortFunc(changes, func(a, b Change[T]) int { return cmp.Compare(a.Object.GetName(), b.Object.GetName()) })
}
