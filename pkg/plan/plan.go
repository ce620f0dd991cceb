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

// object is a pointer to a Kubernetes object.
type object[T any] interface {
	*T
	metav1.Object
}

// compare returns the changes that make the observed objects of one namespace the desired ones, matched by name: deletions
// first, then the rest, each sorted by name. overlay gives a copy of the observed object the desired fields, as a whole: the
// copy shares with the object what they point to. same reports whether that has changed nothing. replace reports that the
// observed object cannot become the desired one; it is deleted and created anew. Neither list is changed, and what is planned
// shares memory with both.
func compare[T any, P object[T]](
	desired, observed []P, overlay func(observed, desired P), same func(observed, overlaid P) bool, replace func(observed, desired P) bool,
) []Change[P] {
	wanted := make(map[string]P, len(desired))
	for _, d := range desired {
		wanted[d.GetName()] = d
	}
	held := make(map[string]P, len(observed))
	var deletions, others []Change[P]
	for _, o := range observed {
		d, ok := wanted[o.GetName()]
		if !ok || replace(o, d) {
			deletions = append(deletions, Change[P]{Verb: Delete, Object: o, Observed: o})
			continue
		}
		held[o.GetName()] = o
	}
	for _, d := range desired {
		o, ok := held[d.GetName()]
		if !ok {
			others = append(others, Change[P]{Verb: Create, Object: d})
			continue
		}
		overlaid := P(new(*o))
		overlay(overlaid, d)
		if !same(o, overlaid) {
			others = append(others, Change[P]{Verb: Update, Object: overlaid, Observed: o})
		}
	}
	byName(deletions)
	byName(others)
	return append(deletions, others...)
}

// equal compares whole objects; what is empty is as good as absent.
func equal[P any](observed, overlaid P) bool { return equality.Semantic.DeepEqual(observed, overlaid) }

func byName[P metav1.Object](changes []Change[P]) {
	slices.SortFunc(changes, func(a, b Change[P]) int { return cmp.Compare(a.Object.GetName(), b.Object.GetName()) })
}
