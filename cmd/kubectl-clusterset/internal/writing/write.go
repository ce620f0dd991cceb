// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package writing applies and deletes the objects of a command: it reviews all of them first, and reports each.
package writing

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/definition"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
)

// ApplyAll checks all objects on the server, and then applies them in their order. If the server refuses one of them, it writes none.
func ApplyAll(ctx context.Context, c *connection.Cluster, objects []*unstructured.Unstructured, r *output.Report) error {
	reviews, err := ReviewAll(ctx, c, objects, r)
	if err != nil {
		return err
	}
	return WriteAll(ctx, c, reviews, nil, r)
}

// ReviewAll checks objects by dry runs, and reports what the writes would keep, overwrite or be refused. It returns an error if they must not
// be applied.
func ReviewAll(ctx context.Context, c *connection.Cluster, objects []*unstructured.Unstructured, r *output.Report) ([]install.Review, error) {
	reviews, defined, conflicts := make([]install.Review, 0, len(objects)), map[schema.GroupKind]bool{}, 0
	for _, object := range objects {
		if definition.Is(object) {
			stays, err := definition.KeepsNewer(ctx, c, object, r)
			if err != nil {
				return nil, err
			}
			if stays {
				continue
			}
		}
		review, err := c.Install.Review(ctx, object)
		if err != nil {
			return nil, err
		}
		if review.Refused != nil && defined[object.GroupVersionKind().GroupKind()] {
			review.Unchecked, review.Refused = review.Refused, nil // the server does not serve the new definition of its kind yet
		}
		if definition.Is(object) && review.Outcome != install.Unchanged {
			ours, err := definition.To(object)
			if err != nil {
				return nil, err
			}
			defined[schema.GroupKind{Group: ours.Spec.Group, Kind: ours.Spec.Names.Kind}] = true
		}
		reviews, conflicts = append(reviews, review), conflicts+len(review.Overwritten)
		reportReview(review, r)
		for _, d := range review.Overwritten {
			if name := install.NameOf(review.Object); c.Install.IsForced() {
				r.Notef("overwrites: %s of %s is %s, set by %s; it becomes %s", d.Field, name, d.Present, d.Manager, d.Desired)
			} else {
				r.Failf("conflict: %s of %s is %s, set by %s; this command would set %s", d.Field, name, d.Present, d.Manager, d.Desired)
			}
		}
	}
	if conflicts > 0 && !c.Install.IsForced() {
		r.Notef("set the fields above to the values of this command, or overwrite all %d values with --force-conflicts. To keep other values, install with a kustomization of your own", conflicts)
	}
	return reviews, r.CheckError()
}

// reportReview reports what an apply would keep, and be refused.
func reportReview(review install.Review, r *output.Report) {
	name := install.NameOf(review.Object)
	for _, d := range review.Kept {
		r.Notef("kept: %s of %s is %s, set by %s (this version has %s)", d.Field, name, d.Present, d.Manager, d.Desired)
	}
	if review.Unchecked != nil {
		r.Notef("%s cannot be checked before it is written: %v", name, review.Unchecked)
	}
	if review.Refused != nil {
		r.Failf("the API server would refuse %s: %v", name, review.Refused)
	}
}

// WriteAll applies reviewed objects in their order, and deletes others after them. It waits until each defined kind is served. If a write
// fails, the error says what was not written.
func WriteAll(ctx context.Context, c *connection.Cluster, reviews []install.Review, remove []*unstructured.Unstructured, r *output.Report) error {
	rest := make([]string, 0, len(reviews)+len(remove))
	for _, review := range reviews {
		rest = append(rest, install.NameOf(review.Object))
	}
	for _, object := range remove {
		rest = append(rest, "the deletion of "+install.NameOf(object))
	}
	total := len(rest)
	for _, review := range reviews {
		if err := write(ctx, c, review, r); err != nil {
			return stopped{err, total, rest}
		}
		rest = rest[1:]
	}
	for _, object := range remove {
		outcome, err := c.Install.Delete(ctx, object)
		if err != nil {
			return stopped{err, total, rest}
		}
		r.Deleted(outcome, object, object.GroupVersionKind().GroupKind())
		rest = rest[1:]
	}
	return nil
}

func write(ctx context.Context, c *connection.Cluster, review install.Review, r *output.Report) error {
	outcome := review.Outcome
	if !c.Install.IsDryRun() {
		var err error
		if outcome, err = c.Install.Apply(ctx, review.Object); err != nil {
			return err
		}
	}
	if err := r.Applied(outcome, review.Object); err != nil {
		return err
	}
	if definition.Is(review.Object) {
		return definition.AwaitServed(ctx, c, review.Object)
	}
	return nil
}

// stopped is the error of a write after which others have not been made.
type stopped struct {
	error
	total int
	rest  []string
}

func (s stopped) Error() string {
	return fmt.Sprintf("%v\n%d of %d writes have been made, and are listed above. Not made: %s. "+
		"What was not made is as before. Remove the cause and run the same command again: it is safe, and makes the rest",
		s.error, s.total-len(s.rest), s.total, strings.Join(s.rest, ", "))
}

func (s stopped) Unwrap() error { return s.error }

// DeleteExisting deletes the objects in reverse order. It does not report those that do not exist.
func DeleteExisting(ctx context.Context, c *connection.Cluster, objects []*unstructured.Unstructured, r *output.Report) error {
	for _, object := range slices.Backward(objects) {
		outcome, err := c.Install.Delete(ctx, object)
		if err != nil {
			return err
		}
		if outcome != install.NotFound {
			r.Deleted(outcome, object, object.GroupVersionKind().GroupKind())
		}
	}
	return nil
}

// DeleteAll deletes the objects that pick selects, in their order, and waits until they do not exist.
func DeleteAll(ctx context.Context, c *connection.Cluster, objects []*unstructured.Unstructured, r *output.Report, pick func(*unstructured.Unstructured) bool) error {
	for _, object := range objects {
		if !pick(object) {
			continue
		}
		outcome, err := c.Install.Delete(ctx, object)
		if err != nil {
			return err
		}
		r.Deleted(outcome, object, object.GroupVersionKind().GroupKind())
		if outcome == install.Deleted && !c.Install.IsDryRun() {
			if err := AwaitDeleted(ctx, c, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// AwaitDeleted waits until an object does not exist.
func AwaitDeleted(ctx context.Context, c *connection.Cluster, object *unstructured.Unstructured) error {
	existing := &unstructured.Unstructured{}
	existing.SetGroupVersionKind(object.GroupVersionKind())
	err := connection.Poll(ctx, func(ctx context.Context) (bool, error) {
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), existing)
		return connection.IsAbsent(err), connection.IgnoreTransient(err)
	})
	if err != nil {
		return fmt.Errorf("%s of %s is not gone (finalizers: %v): %w", install.NameOf(object), c.What, existing.GetFinalizers(), err)
	}
	return nil
}

// Pointers returns pointers to the items.
func Pointers[T any](items []T) []*T {
	result := make([]*T, 0, len(items))
	for i := range items {
		result = append(result, &items[i])
	}
	return result
}
