// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// nextVersion is the version of the hub's kinds that does not exist yet.
const nextVersion = "v1alpha2"

// recordKind is one of the kinds that agents read on the hub.
type recordKind struct{ kind, plural string }

func recordKinds() []recordKind {
	return []recordKind{{"PublishedService", "publishedservices"}, {"PublishedEndpoints", "publishedendpoints"}}
}

// newerSchema upgrades the hub to a version that does not exist yet, under agents of this one: records are kept in that
// version, have a field more, and services may be of a type more. A member's agent of the next version has written one of
// that type, and one with that field, before it was rolled back. Then the hub is rolled back too.
func newerSchema(ctx context.Context, w *world) error {
	var befores []*unstructured.Unstructured
	for _, kind := range recordKinds() {
		before := definition(kind)
		w.must(w.hubKube.Get(ctx, client.ObjectKeyFromObject(before), before))
		befores = append(befores, before)
		w.must(w.define(ctx, next(before)))
		w.must(w.kept(ctx, kind, nextVersion))
	}
	err := errors.Join(w.crosses(ctx, w.members[0], w.members[1]), w.readsWhatItCan(ctx))
	for i, kind := range recordKinds() {
		err = errors.Join(err, w.removeNextVersion(ctx, kind, befores[i]))
	}
	return errors.Join(err, w.crosses(ctx, w.members[0], w.members[1]))
}

// definition returns the CustomResourceDefinition of a kind, not yet read.
func definition(kind recordKind) *unstructured.Unstructured {
	d := &unstructured.Unstructured{}
	d.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	d.SetName(kind.plural + "." + hubv1alpha1.GroupVersion.Group)
	return d
}

// next returns what becomes of a definition: the next version beside this one, kept in place of it; both know a field more.
func next(before *unstructured.Unstructured) *unstructured.Unstructured {
	d := before.DeepCopy()
	version := d.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	spec := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)["spec"].(map[string]any)
	properties := spec["properties"].(map[string]any)
	properties["colour"] = map[string]any{"type": "string", "maxLength": int64(64)}
	if kind, ok := properties["type"].(map[string]any); ok {
		kind["enum"] = append(kind["enum"].([]any), "Gateway")
	}
	newer := (&unstructured.Unstructured{Object: version}).DeepCopy().Object
	newer["name"], newer["storage"], version["storage"] = nextVersion, true, false
	d.Object["spec"].(map[string]any)["versions"] = []any{version, newer}
	return d
}

// define gives the hub another definition of a kind.
func (w *world) define(ctx context.Context, wanted *unstructured.Unstructured) error {
	found := wanted.DeepCopy()
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := w.hubKube.Get(ctx, client.ObjectKeyFromObject(wanted), found); err != nil {
			return err
		}
		found.Object["spec"] = wanted.DeepCopy().Object["spec"]
		return w.hubKube.Update(ctx, found)
	})
}

// records returns those of a kind, in a version.
func (w *world) records(ctx context.Context, kind recordKind, version string) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: hubv1alpha1.GroupVersion.Group, Version: version, Kind: kind.kind + "List"})
	err := w.hubKube.List(ctx, list)
	return list.Items, err
}

// kept returns once the hub keeps what is written of a kind in a version. A write that changes nothing is one only where the
// hub has kept the record in another version.
func (w *world) kept(ctx context.Context, kind recordKind, version string) error {
	return eventually(ctx, func(ctx context.Context) error {
		found, err := w.records(ctx, kind, version)
		if err != nil {
			return err
		}
		for i := range found {
			namespace, _, err := unstructured.NestedString(found[i].Object, "spec", "namespace")
			if err != nil || namespace != still {
				continue
			}
			before := found[i].GetResourceVersion()
			if err := w.hubKube.Update(ctx, &found[i]); err != nil {
				return err
			}
			if found[i].GetResourceVersion() != before {
				return nil
			}
		}
		return fmt.Errorf("%s is not kept as %s: %w", kind.plural, version, errNoEffect)
	})
}

// removeNextVersion stores all records of a kind in the current version, and then removes the next one from its CRD.
func (w *world) removeNextVersion(ctx context.Context, kind recordKind, before *unstructured.Unstructured) error {
	this := hubv1alpha1.GroupVersion.Version
	back := next(before)
	for _, version := range back.Object["spec"].(map[string]any)["versions"].([]any) {
		version := version.(map[string]any)
		version["storage"] = version["name"] == this
	}
	w.must(w.define(ctx, back), w.kept(ctx, kind, this))
	found, err := w.records(ctx, kind, this)
	w.must(err)
	for i := range found { // who changed or deleted one meanwhile has written it
		if err := w.hubKube.Update(ctx, &found[i]); client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
			return err
		}
	}
	d := definition(kind)
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := w.hubKube.Get(ctx, client.ObjectKeyFromObject(d), d); err != nil {
			return err
		}
		if err := unstructured.SetNestedStringSlice(d.Object, []string{this}, "status", "storedVersions"); err != nil {
			return err
		}
		return w.hubKube.Status().Update(ctx, d)
	})
	return errors.Join(err, w.define(ctx, before))
}

// readsWhatItCan has the last member's agent of the next version write two records before this one's starts again: with
// the new field one is imported as if it had none, of the new type the other is not, and both go when this one's starts.
func (w *world) readsWhatItCan(ctx context.Context) error {
	m, n := w.members[2], w.random.IntN(1e6)
	today, tomorrow := oracle.Key{Namespace: scratch, Name: fmt.Sprintf("today-%d", n)}, oracle.Key{Namespace: scratch, Name: fmt.Sprintf("tomorrow-%d", n)}
	w.watch.will(oracle.Silence, m.id, oracle.Key{})
	w.must(m.agent.stop())
	hub, err := client.New(m.hubConfig, client.Options{Scheme: w.hubKube.Scheme()})
	w.must(err)
	err = errors.Join(hub.Create(ctx, m.recordToCome(tomorrow, "Gateway")), hub.Create(ctx, m.recordToCome(today, "ClusterSetIP")))
	for _, other := range w.members[:2] {
		err = errors.Join(err, eventually(ctx, func(ctx context.Context) error { return other.Get(ctx, today, &mcsv1beta1.ServiceImport{}) }))
		err = errors.Join(err, other.refuses(ctx, tomorrow))
	}
	w.watch.will(oracle.Source, m.id, today)
	return errors.Join(err, m.agent.start(), gone(ctx, w.members[:2], today))
}

// recordToCome returns a record as the next version's agent writes it.
func (m *member) recordToCome(k oracle.Key, kind string) *unstructured.Unstructured {
	result := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"namespace": k.Namespace, "service": k.Name, "exportedAt": time.Now().UTC().Format(time.RFC3339), "type": kind, "colour": "blue",
		"ipFamilies": []any{"IPv4"}, "ports": []any{map[string]any{"name": "http", "protocol": "TCP", "port": int64(80)}},
	}}}
	result.SetGroupVersionKind(schema.GroupVersionKind{Group: hubv1alpha1.GroupVersion.Group, Version: nextVersion, Kind: "PublishedService"})
	result.SetNamespace("member-" + m.id)
	result.SetName(k.Namespace + "." + k.Name)
	return result
}

// refuses returns once the member has said in an Event that it does not import a service.
func (m *member) refuses(ctx context.Context, k oracle.Key) error {
	err := eventually(ctx, func(ctx context.Context) error {
		events := &corev1.EventList{}
		if err := m.List(ctx, events, client.InNamespace(k.Namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == "RecordRefused" && e.InvolvedObject.Name == k.Name {
				return nil
			}
		}
		return fmt.Errorf("%s does not say that it refuses %s: %w", m.id, k, errNoEffect)
	})
	if err != nil {
		return err
	}
	if err := m.Get(ctx, k, &mcsv1beta1.ServiceImport{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("%s in %s: %w", k, m.id, err)
	}
	return nil
}
