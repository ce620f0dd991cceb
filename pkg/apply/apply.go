// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply is the only package that changes anything in a cluster. A Writer carries out the plans of the agents and
// changes only what is ours: the guard stands here, below everything that decides. An Installer does what an administrator
// has commanded, with that one's rights: it applies and deletes whole objects by their names, and writes an object of
// somebody else that has been edited.
package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/plan"
)

// ErrForeign says that an object which is not ours bears the name that ours needs, or that ours bears somebody else's mark by
// now. It is left alone.
var ErrForeign = errors.New("it is not managed by Tombolo and is left alone: rename or delete it")

// ErrStale says that a plan was made from an outdated view. The watch that brings the newer one also brings the next
// try, so there is nothing to report, and nothing to wait for but what RetryAfter says.
var ErrStale = errors.New("the object has changed since it was observed")

// remadeAfter is how long to wait before a namespace that is said to be about to go is written to again.
const remadeAfter = time.Second

// RetryAfter returns after how long to try again what has failed with ErrStale; 0 where a watch brings the next try. None need
// bring it where the API server says that the namespace is about to go: of a namespace that was made anew at once it says so
// until it has seen that itself, which may be after us. Who tries again looks at the namespace first, or at the Member that was in it,
// which ends this where it does go.
func RetryAfter(err error) time.Duration {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return remadeAfter
	}
	return 0
}

// errGone says that we have deleted the object.
var errGone = fmt.Errorf("%w: it is deleted", ErrStale)

// ErrTaken says that another import of ours has got the name in this very moment. The watch will tell the other import of
// it, and not the one that has to choose another name, so it has to be tried again.
var ErrTaken = errors.New("the name has just been given to the import of another service")

// Writer writes to one cluster.
type Writer struct {
	client client.Client
	live   client.Reader
	// owns reports whether an object is ours, and lost whether it is ours though our mark was taken from it: that may be
	// updated, which gives the mark back, and not deleted.
	owns, lost func(client.Object) bool
	memory     memory
	// note is told of each write of a rehearsal; nil where it is the real thing.
	note func(Act)
}

// ToMember returns a Writer to a member cluster, where ours is what bears our managed-by label or has lost it, and the status of
// ServiceExports. live reads past any cache.
func ToMember(c client.Client, live client.Reader) Writer {
	return Writer{
		client: client.WithFieldOwner(c, clusterset.FieldManager), live: live, memory: newMemory(),
		owns: func(object client.Object) bool { return clusterset.MarkOf(object) == clusterset.ManagedBy },
		lost: func(object client.Object) bool { return clusterset.HasLostMark(object) },
	}
}

// ToHub returns a Writer to the hub, where ours is what lies in our namespace.
func ToHub(c client.Client, namespace string) Writer {
	return Writer{
		client: c, live: c, memory: newMemory(),
		owns: func(object client.Object) bool { return object.GetNamespace() == namespace },
		lost: func(client.Object) bool { return false },
	}
}

// Do carries out the changes in their order and returns the objects that it created or updated, as the API server
// answered them. It goes on after a failure. The error joins all failures, each with the object's key and its Reason; it is ErrStale
// only where nothing worse happened, and then the first of them. A deletion of what is gone is done.
func Do[T client.Object](ctx context.Context, w Writer, changes []plan.Change[T]) ([]T, error) {
	var written []T
	var failures []error
	var outdated error
	for _, change := range changes {
		object, err := do(ctx, w, change)
		switch {
		case errors.Is(err, ErrStale):
			outdated = cmp.Or(outdated, fmt.Errorf("%s %T %s: %w", change.Verb, object, client.ObjectKeyFromObject(object), err))
		case err != nil:
			failures = append(failures, fmt.Errorf("%s %T %s: %w", change.Verb, object, client.ObjectKeyFromObject(object), refusal{err}))
		case change.Verb != plan.Delete:
			written = append(written, object)
		}
	}
	if len(failures) > 0 {
		return written, errors.Join(failures...)
	}
	return written, outdated
}

func do[T client.Object](ctx context.Context, w Writer, change plan.Change[T]) (T, error) {
	object := change.Object.DeepCopyObject().(T)
	object.SetManagedFields(nil) // a cache holds less of them than the API server, which keeps its own
	observed := ""
	if change.Verb != plan.Create {
		observed = change.Observed.GetResourceVersion()
	}
	err := w.recall(ctx, object, observed)
	if errors.Is(err, errGone) && change.Verb == plan.Delete {
		return object, nil
	}
	if err != nil {
		return object, err
	}
	log.FromContext(ctx).V(1).Info("writing", "verb", change.Verb, "kind", fmt.Sprintf("%T", object), "object", client.ObjectKeyFromObject(object))
	err = w.carryOut(ctx, change.Verb, object, change.Observed)
	if w.note != nil {
		w.note(act(change, object, err))
	}
	if err != nil {
		return object, err
	}
	if change.Verb == plan.Delete {
		w.memory.note(change.Object, deleted)
	} else {
		w.memory.note(object, stands)
	}
	return object, nil
}

func (w Writer) carryOut(ctx context.Context, verb plan.Verb, object, observed client.Object) error {
	switch verb {
	case plan.Create:
		return w.create(ctx, object)
	case plan.UpdateStatus: // a subresource of its own, which is always the controller's
		return stale(w.client.Status().Update(ctx, object))
	case plan.Update, plan.Delete:
		if !w.owns(observed) && (verb == plan.Delete || !w.lost(observed)) {
			return ErrForeign
		}
		if verb == plan.Update {
			if err := w.complete(ctx, object); err != nil {
				return stale(err)
			}
			return stale(w.client.Update(ctx, object))
		}
		return w.delete(ctx, object)
	}
	return fmt.Errorf("unknown verb %q", verb)
}

// complete gives a slice that a cache has condensed its endpoints back, as they are in the cluster. If the slice has changed since
// it was observed, the update is refused as a conflict.
func (w Writer) complete(ctx context.Context, object client.Object) error {
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if !ok || !plan.IsCondensed(slice.Endpoints) {
		return nil
	}
	existing := &discoveryv1.EndpointSlice{}
	err := w.live.Get(ctx, client.ObjectKeyFromObject(object), existing)
	slice.Endpoints = existing.Endpoints
	return err
}

// recall returns ErrStale where the plan was made without knowing our own last write of the object, and that is how
// things stand: the watch has not brought it back yet. To ask is cheaper than to have a write refused, for which an API
// server goes through admission, quotas included. What others have done to the object since is for the write itself to
// find out.
func (w Writer) recall(ctx context.Context, object client.Object, observed string) error {
	last := w.memory.unseen(object, observed)
	if last == (write{}) {
		return nil
	}
	existing := object.DeepCopyObject().(client.Object)
	err := w.live.Get(ctx, client.ObjectKeyFromObject(object), existing)
	switch {
	case apierrors.IsNotFound(err) && last.outcome == deleted:
		return errGone
	case err != nil:
		return client.IgnoreNotFound(err)
	case last.outcome != stands || existing.GetResourceVersion() != last.version:
		return nil
	case observed == "" && !sameImport(object, existing): // what we wrote was for another import
		return taken(existing)
	}
	return ErrStale
}

// create creates object. What bears its name already is looked at live, so that an outdated cache never leads to a
// second object or to taking over a foreign one (spec D2, I7).
func (w Writer) create(ctx context.Context, object client.Object) error {
	// A conflict here is not about the object, which does not exist yet, but about the quota that counts it: two creates
	// at once. No watch would bring that back to us.
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return w.client.Create(ctx, object) })
	switch {
	case apierrors.IsConflict(err) || isKindGone(err):
		return err
	case !apierrors.IsAlreadyExists(err):
		return stale(err)
	}
	existing := object.DeepCopyObject().(client.Object)
	if err := w.live.Get(ctx, client.ObjectKeyFromObject(object), existing); err != nil {
		return err // also where it is gone again: no watch need tell that to whom the name is of use now
	}
	_, isSlice := object.(*discoveryv1.EndpointSlice)
	switch owns := w.owns(existing); {
	case !owns && !w.lost(existing):
		return ErrForeign
	case owns && sameImport(object, existing):
		return ErrStale
	case !isSlice && !sameImport(object, existing):
		return taken(existing)
	}
	// It is ours and was not found by its labels: they were edited. Nothing in it is worth keeping.
	object.SetResourceVersion(existing.GetResourceVersion())
	return stale(w.client.Update(ctx, object))
}

// isKindGone reports whether a create has failed because the API server does not serve the kind, as after its definition was
// deleted. No watch brings that back: what watches the kind has seen all its objects go already. (Where it is the namespace that
// is missing, the error names it.)
func isKindGone(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == ""
}

func taken(existing client.Object) error {
	return fmt.Errorf("%w: %s", ErrTaken, existing.GetLabels()[mcsv1beta1.LabelServiceName])
}

// sameImport reports whether two objects say that they belong to the same import, by which they are found.
func sameImport(a, b client.Object) bool {
	return a.GetLabels()[mcsv1beta1.LabelServiceName] == b.GetLabels()[mcsv1beta1.LabelServiceName]
}

// delete deletes the very object that was observed.
func (w Writer) delete(ctx context.Context, object client.Object) error {
	uid, version := object.GetUID(), object.GetResourceVersion()
	err := w.client.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return stale(err)
}

// stale returns ErrStale for the errors that say that the world has moved on, and any other error as it is.
func stale(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}
