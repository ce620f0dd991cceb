// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
)

// applyAll checks all objects on the server, and then applies them in their order. If the server refuses one of them, it writes none.
func applyAll(ctx context.Context, c *cluster, objects []*unstructured.Unstructured, r *report) error {
	reviews, err := reviewAll(ctx, c, objects, r)
	if err != nil {
		return err
	}
	return writeAll(ctx, c, reviews, nil, r)
}

// reviewAll checks objects by dry runs, and reports what the writes would keep, overwrite or be refused. It returns an error if they must not
// be applied.
func reviewAll(ctx context.Context, c *cluster, objects []*unstructured.Unstructured, r *report) ([]install.Review, error) {
	reviews, defined, conflicts := make([]install.Review, 0, len(objects)), map[schema.GroupKind]bool{}, 0
	for _, object := range objects {
		if isDefinition(object) {
			stays, err := keepsNewer(ctx, c, object, r)
			if err != nil {
				return nil, err
			}
			if stays {
				continue
			}
		}
		review, err := c.install.Review(ctx, object)
		if err != nil {
			return nil, err
		}
		if review.Refused != nil && defined[object.GroupVersionKind().GroupKind()] {
			review.Unchecked, review.Refused = review.Refused, nil // the server does not serve the new definition of its kind yet
		}
		if isDefinition(object) && review.Outcome != install.Unchanged {
			definition, err := toDefinition(object)
			if err != nil {
				return nil, err
			}
			defined[schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}] = true
		}
		reviews, conflicts = append(reviews, review), conflicts+len(review.Overwritten)
		r.reviewed(review)
		for _, d := range review.Overwritten {
			if name := nameOf(review.Object); c.install.IsForced() {
				r.notef("overwrites: %s of %s is %s, set by %s; it becomes %s", d.Field, name, d.Present, d.Manager, d.Desired)
			} else {
				r.failf("conflict: %s of %s is %s, set by %s; this command would set %s", d.Field, name, d.Present, d.Manager, d.Desired)
			}
		}
	}
	if conflicts > 0 && !c.install.IsForced() {
		r.notef("set the fields above to the values of this command, or overwrite all %d values with --force-conflicts. To keep other values, install with a kustomization of your own", conflicts)
	}
	return reviews, r.checkError()
}

// reviewed reports what an apply would keep, and be refused.
func (r *report) reviewed(review install.Review) {
	name := nameOf(review.Object)
	for _, d := range review.Kept {
		r.notef("kept: %s of %s is %s, set by %s (this version has %s)", d.Field, name, d.Present, d.Manager, d.Desired)
	}
	if review.Unchecked != nil {
		r.notef("%s cannot be checked before it is written: %v", name, review.Unchecked)
	}
	if review.Refused != nil {
		r.failf("the API server would refuse %s: %v", name, review.Refused)
	}
}

// writeAll applies reviewed objects in their order, and deletes others after them. It waits until each defined kind is served. If a write
// fails, the error says what was not written.
func writeAll(ctx context.Context, c *cluster, reviews []install.Review, remove []*unstructured.Unstructured, r *report) error {
	rest := make([]string, 0, len(reviews)+len(remove))
	for _, review := range reviews {
		rest = append(rest, nameOf(review.Object))
	}
	for _, object := range remove {
		rest = append(rest, "the deletion of "+nameOf(object))
	}
	total := len(rest)
	for _, review := range reviews {
		if err := write(ctx, c, review, r); err != nil {
			return stopped{err, total, rest}
		}
		rest = rest[1:]
	}
	for _, object := range remove {
		outcome, err := c.install.Delete(ctx, object)
		if err != nil {
			return stopped{err, total, rest}
		}
		r.deleted(outcome, object, object.GroupVersionKind().GroupKind())
		rest = rest[1:]
	}
	return nil
}

func write(ctx context.Context, c *cluster, review install.Review, r *report) error {
	outcome := review.Outcome
	if !c.install.IsDryRun() {
		var err error
		if outcome, err = c.install.Apply(ctx, review.Object); err != nil {
			return err
		}
	}
	if err := r.applied(outcome, review.Object); err != nil {
		return err
	}
	if isDefinition(review.Object) {
		return awaitServed(ctx, c, review.Object)
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

// errPartly is returned if a check has failed after other parts of the command have been written.
var errPartly = errors.New("a check has failed after the changes that are listed above, and nothing else has been changed: " +
	"remove the cause and run the same command again, which is safe")
