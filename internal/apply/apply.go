// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply writes to member clusters and to the hub. It is the only package of the agent that writes. A Writer applies plans,
// and updates or deletes managed objects only.
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/plan"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// ErrUnmanaged reports that an object with the same name is not managed by Tombolo, or that another manager has taken over a managed
// object. The object is not changed.
var ErrUnmanaged = errors.New("it is not managed by Tombolo and is left alone: rename or delete it")

// ErrStale reports that a plan was computed from a stale cache. The watch event with the newer version enqueues the object again, so
// the error is not reported. See RetryAfter for an exception.
var ErrStale = errors.New("the object has changed since it was observed")

// namespaceRetry is the delay before the next write to a namespace that is terminating.
const namespaceRetry = time.Second

// RetryAfter returns the delay before a write that failed with ErrStale is retried; 0 if a watch event triggers the retry. If the
// namespace is terminating, there may be no such event: the API server may return this error for a short time after the namespace
// was deleted and created again. The retries end when the cache no longer has the namespace, or the Member in it.
func RetryAfter(err error) time.Duration {
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return namespaceRetry
	}
	return 0
}

// errDeleted reports that the agent has deleted the object.
var errDeleted = fmt.Errorf("%w: it is deleted", ErrStale)

// ErrNameTaken reports that another import was given the name at the same time. The watch enqueues only that import, so the one that
// needs another name must be retried.
var ErrNameTaken = errors.New("the name has just been given to the import of another service")

// Writer writes to one cluster.
type Writer struct {
	client client.Client
	live   client.Reader
	// manages reports whether an object is managed. lostLabel reports whether it is managed but its managed-by label was removed.
	// Such an object may be updated, which restores the label, but not deleted.
	manages, lostLabel func(client.Object) bool
	lastWrites         writeCache
	// report is called for each write of a dry run; nil if writes are not dry runs.
	report func(DryRunWrite)
}

// ToMember returns a Writer for a member cluster. It may write objects that have the managed-by label or have lost it, and the
// status of users' objects. live reads from the API server, not from a cache.
func ToMember(c client.Client, live client.Reader) Writer {
	return Writer{
		client: client.WithFieldOwner(c, clusterset.FieldManager), live: live, lastWrites: newWriteCache(),
		manages: func(object client.Object) bool {
			if export, ok := object.(*mcsv1beta1.ServiceExport); ok {
				return clusterset.IsAutomatic(export)
			}
			return clusterset.ManagerOf(object) == clusterset.ManagedBy
		},
		lostLabel: func(object client.Object) bool {
			_, isExport := object.(*mcsv1beta1.ServiceExport) // a user who removes its label has taken it over (P3)
			return !isExport && clusterset.HasLostLabel(object)
		},
	}
}

// ToHub returns a Writer for the hub. It may write only objects in the namespace of the local member.
func ToHub(c client.Client, namespace string) Writer {
	return Writer{
		client: c, live: c, lastWrites: newWriteCache(),
		manages:   func(object client.Object) bool { return object.GetNamespace() == namespace },
		lostLabel: func(client.Object) bool { return false },
	}
}

// Do applies the changes in their order and returns the objects that it created or updated, as the API server returned them. It
// continues after a failure. The error joins all failures, each with the object's key and its Reason. If every failure is ErrStale,
// it is the first of them. Deleting an object that does not exist succeeds.
func Do[T client.Object](ctx context.Context, w Writer, changes []plan.Change[T]) ([]T, error) {
	var written []T
	var failures []error
	var outdated error
	for _, change := range changes {
		object, err := do(ctx, w, change)
		switch {
		case errors.Is(err, ErrStale):
			outdated = cmp.Or(outdated, fmt.Errorf("%s %s %s: %w", change.Verb, clusterset.KindOf(object), client.ObjectKeyFromObject(object), err))
		case err != nil:
			failures = append(failures, fmt.Errorf("%s %s %s: %w", change.Verb, clusterset.KindOf(object), client.ObjectKeyFromObject(object), WriteError{err, change.Verb, object}))
		case change.Verb != plan.Delete:
			written = append(written, object)
		}
	}
	return written, Join(append(failures, outdated)...)
}

// Join joins the errors of several writes. The result is ErrStale only if no other error is among them.
func Join(errs ...error) error {
	var stale error
	var failures []error
	for _, err := range errs {
		switch {
		case errors.Is(err, ErrStale):
			stale = cmp.Or(stale, err)
		case err != nil:
			failures = append(failures, err)
		}
	}
	if len(failures) > 0 && stale != nil {
		return incomplete{errors.Join(failures...)}
	}
	return cmp.Or(errors.Join(failures...), stale)
}

func do[T client.Object](ctx context.Context, w Writer, change plan.Change[T]) (T, error) {
	object := change.Object.DeepCopyObject().(T)
	object.SetManagedFields(nil) // the cache has only part of them; the API server keeps its own
	version := ""
	if change.Verb != plan.Create {
		version = change.Existing.GetResourceVersion()
	}
	var err error
	if change.Verb != plan.UpdateStatus || w.manages(change.Existing) { // users' objects: conflicts are rare, and need no right to get
		err = w.checkLastWrite(ctx, object, version)
	}
	if errors.Is(err, errDeleted) && change.Verb == plan.Delete {
		return object, nil
	}
	if err != nil {
		return object, err
	}
	log.FromContext(ctx).V(1).Info("writing", "verb", change.Verb, "kind", clusterset.KindOf(object), "object", client.ObjectKeyFromObject(object))
	sent := plan.MetadataOf(object) // the response replaces the object
	err = w.send(ctx, change.Verb, object, change.Existing)
	if w.report != nil && !isWithoutEffect(change.Verb, object, change.Existing, err) {
		w.report(dryRunWrite(change, object, err))
	}
	if err != nil {
		return object, err
	}
	if change.Verb == plan.Delete {
		w.lastWrites.record(change.Object, outcomeDeleted, plan.Metadata{})
	} else {
		w.lastWrites.record(object, outcomeWritten, plan.AddedTo(sent, plan.MetadataOf(object)))
	}
	return object, nil
}

func (w Writer) send(ctx context.Context, verb plan.Verb, object, existing client.Object) error {
	switch verb {
	case plan.Create:
		return w.create(ctx, object)
	case plan.UpdateStatus: // only the controller writes the status subresource
		return asStale(w.client.Status().Update(ctx, object))
	case plan.Update, plan.Delete:
		if !w.manages(existing) && (verb == plan.Delete || !w.lostLabel(existing)) {
			return ErrUnmanaged
		}
		if verb == plan.Update {
			if err := w.restoreEndpoints(ctx, object); err != nil {
				return asStale(err)
			}
			return asStale(w.client.Update(ctx, object))
		}
		return w.delete(ctx, object)
	}
	return fmt.Errorf("unknown verb %q", verb)
}

// restoreEndpoints replaces the endpoints of a condensed slice by those of the API server. If the slice has changed since the plan
// was computed, the update fails with a conflict.
func (w Writer) restoreEndpoints(ctx context.Context, object client.Object) error {
	slice, ok := object.(*discoveryv1.EndpointSlice)
	if !ok || !plan.IsCondensed(slice.Endpoints) {
		return nil
	}
	existing := &discoveryv1.EndpointSlice{}
	err := w.live.Get(ctx, client.ObjectKeyFromObject(object), existing)
	slice.Endpoints = existing.Endpoints
	return err
}

// checkLastWrite returns ErrStale if the plan was computed before the cache received the last write of this agent, and the object
// has not changed since. This costs less than a refused write, which the API server sends through admission and quotas. Changes by
// other writers are detected by the write itself.
func (w Writer) checkLastWrite(ctx context.Context, object client.Object, version string) error {
	last := w.lastWrites.missingFrom(object, version)
	if last == (write{}) {
		return nil
	}
	existing := object.DeepCopyObject().(client.Object)
	err := w.live.Get(ctx, client.ObjectKeyFromObject(object), existing)
	switch {
	case apierrors.IsNotFound(err) && last.outcome == outcomeDeleted:
		return errDeleted
	case err != nil:
		return client.IgnoreNotFound(err)
	case last.outcome != outcomeWritten || existing.GetResourceVersion() != last.version:
		return nil
	case version == "" && !sameImport(object, existing): // the last write was for another import
		return nameTaken(existing)
	}
	return ErrStale
}

// create creates object. If the name exists, it reads that object from the API server, so that a stale cache never leads to a
// duplicate, or to a change of an unmanaged object (spec D2, I7).
func (w Writer) create(ctx context.Context, object client.Object) error {
	// A conflict is not about the object, which does not exist yet, but about the quota: two creates at the same time. No watch
	// event would trigger a retry.
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { return w.client.Create(ctx, object) })
	switch {
	case apierrors.IsConflict(err) || isKindMissing(err):
		return err
	case !apierrors.IsAlreadyExists(err):
		return asStale(err)
	}
	existing := object.DeepCopyObject().(client.Object)
	if err := w.live.Get(ctx, client.ObjectKeyFromObject(object), existing); err != nil {
		return err // also if it was deleted meanwhile: there may be no watch event for this import
	}
	_, isSlice := object.(*discoveryv1.EndpointSlice)
	ofOneImport := isSlice || clusterset.IsVirtualIPName(object.GetName()) // the name contains the import
	switch managed := w.manages(existing); {
	case !managed && !w.lostLabel(existing):
		return ErrUnmanaged
	case managed && sameImport(object, existing):
		return ErrStale
	case !ofOneImport && !sameImport(object, existing):
		return nameTaken(existing)
	}
	// The object is managed, but its labels were edited, so it was not found by them. It is overwritten.
	object.SetResourceVersion(existing.GetResourceVersion())
	return asStale(w.client.Update(ctx, object))
}

// isKindMissing reports whether a write failed because the API server does not serve the kind in this version, with this scope or with this
// subresource, as after its CRD was deleted or replaced. No watch event triggers a retry then: a list shows objects that have not changed
// meanwhile, which enqueues nothing. (If an object or its namespace is missing, the API server names it.)
func isKindMissing(err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details == nil || details.Name == "" || apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

func nameTaken(existing client.Object) error {
	return fmt.Errorf("%w: %s", ErrNameTaken, existing.GetLabels()[mcsv1beta1.LabelServiceName])
}

// sameImport reports whether the labels of two objects name the same import.
func sameImport(a, b client.Object) bool {
	same := func(label string) bool { return a.GetLabels()[label] == b.GetLabels()[label] }
	return same(mcsv1beta1.LabelServiceName) && same(clusterset.LabelVirtualIPOf) && same(clusterset.LabelAliasOf)
}

// delete deletes the object only if its UID and version are unchanged.
func (w Writer) delete(ctx context.Context, object client.Object) error {
	uid, version := object.GetUID(), object.GetResourceVersion()
	err := w.client.Delete(ctx, object, client.Preconditions{UID: &uid, ResourceVersion: &version})
	if apierrors.IsNotFound(err) && !isKindMissing(err) {
		return nil
	}
	return asStale(err)
}

// asStale returns ErrStale for errors which show that the plan was stale, and any other error unchanged.
func asStale(err error) error {
	if isKindMissing(err) {
		return err
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	return err
}
