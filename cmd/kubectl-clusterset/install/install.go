// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package install applies, updates and deletes objects for an administrator, with the administrator's rights.
package install

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Installer applies and deletes whole objects with the administrator's rights, by server-side apply.
type Installer struct {
	client client.Client
	dryRun DryRun
	force  bool
}

// DryRun says whether, and by whom, writes are only simulated.
type DryRun string

// The values of DryRun, as in kubectl.
const (
	NoDryRun DryRun = "none"
	// ServerDryRun sends dry-run requests, which the API server validates.
	ServerDryRun DryRun = "server"
	// ClientDryRun sends no request that writes.
	ClientDryRun DryRun = "client"
)

// FieldManager is the field manager of the objects that an Installer applies.
const FieldManager = "kubectl-clusterset"

const installerOwner = client.FieldOwner(FieldManager)

// Outcome is the outcome of a write, also of a dry run.
type Outcome string

// The outcomes.
const (
	Created    Outcome = "created"
	Configured Outcome = "configured"
	Unchanged  Outcome = "unchanged"
	Deleted    Outcome = "deleted"
	NotFound   Outcome = "not found"
)

// New returns an Installer for the cluster of a client.
func New(c client.Client) Installer { return Installer{client: c} }

// DryRun returns an Installer that simulates its writes.
func (i Installer) DryRun(by DryRun) Installer { i.dryRun = by; return i }

// Force returns an Installer that takes over fields of other field managers.
func (i Installer) Force() Installer { i.force = true; return i }

// IsForced reports whether it takes over fields of other field managers.
func (i Installer) IsForced() bool { return i.force }

// IsDryRun reports whether it only simulates its writes.
func (i Installer) IsDryRun() bool { return i.dryRun == ServerDryRun || i.dryRun == ClientDryRun }

// Apply applies an object and returns the outcome. It does not change its argument. The error names the object.
func (i Installer) Apply(ctx context.Context, object *unstructured.Unstructured) (Outcome, error) {
	before, err := i.get(ctx, object)
	if err != nil {
		return "", fmt.Errorf("get %s: %w", NameOf(object), err)
	}
	if i.dryRun == ClientDryRun {
		return compare(before, object), nil
	}
	after := object.DeepCopy()
	options := []client.ApplyOption{installerOwner}
	if i.dryRun == ServerDryRun {
		options = append(options, client.DryRunAll)
	}
	if i.force {
		options = append(options, client.ForceOwnership)
	}
	err = i.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(after), options...)
	switch {
	case err != nil && i.IsDryRun() && before == nil && isAbsent(err):
		return Created, nil // its namespace or its kind would have been created before it
	case apierrors.IsConflict(err):
		return "", fmt.Errorf("apply %s: another client has changed it (%w): --force-conflicts overwrites that", NameOf(object), err)
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return "", fmt.Errorf("apply %s: its namespace is being deleted: wait until it does not exist (kubectl wait --for=delete namespace/%s), and run this again (%w)",
			NameOf(object), object.GetNamespace(), err)
	case err != nil:
		return "", fmt.Errorf("apply %s: %w", NameOf(object), err)
	}
	return outcomeOf(before, after), nil
}

// Update writes an object of another owner that was read and edited. It fails if the object has changed since.
func (i Installer) Update(ctx context.Context, edited client.Object) (Outcome, error) {
	before := edited.DeepCopyObject().(client.Object)
	key, kind := client.ObjectKeyFromObject(edited), clusterset.KindOf(edited)
	if err := i.client.Get(ctx, key, before); err != nil {
		return "", fmt.Errorf("get %s %s: %w", kind, key, err)
	}
	if equality.Semantic.DeepEqual(before, edited) {
		return Unchanged, nil
	}
	if i.dryRun == ClientDryRun {
		return Configured, nil
	}
	options := []client.UpdateOption{installerOwner}
	if i.dryRun == ServerDryRun {
		options = append(options, client.DryRunAll)
	}
	if err := i.client.Update(ctx, edited, options...); err != nil {
		return "", fmt.Errorf("update %s %s: %w", kind, key, err)
	}
	return Configured, nil
}

// Patch writes the difference between an object that was read and its edited copy, and takes over the fields that differ, so that it has no
// conflicts with other field managers. Other fields stay, also those that this version does not know.
func (i Installer) Patch(ctx context.Context, before, edited client.Object) (Outcome, error) {
	if equality.Semantic.DeepEqual(before, edited) {
		return Unchanged, nil
	}
	if i.dryRun == ClientDryRun {
		return Configured, nil
	}
	options := []client.PatchOption{installerOwner}
	if i.dryRun == ServerDryRun {
		options = append(options, client.DryRunAll)
	}
	if err := i.client.Patch(ctx, edited.DeepCopyObject().(client.Object), client.MergeFrom(before), options...); err != nil {
		return "", fmt.Errorf("patch %s %s: %w", clusterset.KindOf(edited), client.ObjectKeyFromObject(edited), err)
	}
	return Configured, nil
}

// Delete deletes an object. The API server deletes the content of a namespace after Delete has returned.
func (i Installer) Delete(ctx context.Context, object *unstructured.Unstructured) (Outcome, error) {
	before, err := i.get(ctx, object)
	if err != nil {
		return "", fmt.Errorf("get %s: %w", NameOf(object), err)
	}
	if before == nil {
		return NotFound, nil
	}
	if i.dryRun == ClientDryRun {
		return Deleted, nil
	}
	uid := before.GetUID()
	options := []client.DeleteOption{client.Preconditions{UID: &uid}, client.PropagationPolicy("Background")}
	if i.dryRun == ServerDryRun {
		options = append(options, client.DryRunAll)
	}
	if err := i.client.Delete(ctx, before, options...); err != nil && !isAbsent(err) {
		return "", fmt.Errorf("delete %s: %w", NameOf(object), err)
	}
	return Deleted, nil
}

// get returns the existing object, nil if there is none.
func (i Installer) get(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	result := &unstructured.Unstructured{}
	result.SetGroupVersionKind(object.GroupVersionKind())
	err := i.client.Get(ctx, client.ObjectKeyFromObject(object), result)
	if isAbsent(err) {
		return nil, nil
	}
	return result, err
}

// NameOf returns the kind and the name of an object, such as "Deployment tombolo-system/tombolo-agent".
func NameOf(object *unstructured.Unstructured) string {
	name := object.GetName()
	if object.GetNamespace() != "" {
		name = object.GetNamespace() + "/" + name
	}
	return object.GetKind() + " " + name
}

// content returns an object without its status and the metadata that the API server sets.
func content(object *unstructured.Unstructured) map[string]any {
	result := object.DeepCopy()
	result.SetManagedFields(nil)
	result.SetResourceVersion("")
	result.SetGeneration(0)
	unstructured.RemoveNestedField(result.Object, "status")
	return result.Object
}

// isAbsent reports whether an object, its namespace or its whole kind does not exist.
func isAbsent(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }

// compare returns the outcome of an apply without asking the API server for it: Unchanged if the existing object has all desired fields.
func compare(before, desired *unstructured.Unstructured) Outcome {
	switch {
	case before == nil:
		return Created
	case contains(before.Object, desired.Object):
		return Unchanged
	}
	return Configured
}

// contains reports whether an existing value has all fields of a desired one. Lists must have the same length: what an API server adds to
// their elements is ignored.
func contains(existing, desired any) bool {
	switch d := desired.(type) {
	case map[string]any:
		e, ok := existing.(map[string]any)
		if !ok && len(d) > 0 {
			return false
		}
		for name, value := range d {
			if !contains(e[name], value) {
				return false
			}
		}
		return true
	case []any:
		e, ok := existing.([]any)
		if !ok || len(e) != len(d) {
			return len(d) == 0 && !ok
		}
		for i := range d {
			if !contains(e[i], d[i]) {
				return false
			}
		}
		return true
	}
	return equality.Semantic.DeepEqual(existing, desired)
}
