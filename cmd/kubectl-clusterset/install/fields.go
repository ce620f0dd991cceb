// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Difference is a field of which another field manager has set another value than the desired one. The values are for messages.
type Difference struct{ Field, Manager, Present, Desired string }

// ownedField is a field that another field manager has set.
type ownedField struct {
	path    fieldpath.Path
	manager string
}

// fieldsOfOthers returns the fields of an object, without lists and maps that have fields of their own, that other field managers have
// set, sorted. A field of several managers is returned once.
func fieldsOfOthers(object *unstructured.Unstructured) ([]ownedField, error) {
	var result []ownedField
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == string(installerOwner) || entry.Subresource == "status" || entry.FieldsV1 == nil {
			continue
		}
		set, err := fieldSet(entry)
		if err != nil {
			return nil, fmt.Errorf("the managed fields of %s: %w", NameOf(object), err)
		}
		for path := range set.Leaves().All() {
			result = append(result, ownedField{path.Copy(), entry.Manager})
		}
	}
	slices.SortStableFunc(result, func(a, b ownedField) int {
		return cmp.Or(a.path.Compare(b.path), cmp.Compare(a.manager, b.manager))
	})
	return slices.CompactFunc(result, func(a, b ownedField) bool { return a.path.Equals(b.path) }), nil
}

func fieldSet(entry metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	set := &fieldpath.Set{}
	err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes()))
	return set, err
}

// isSetting reports whether a field is a setting of the cluster's administrator, which no installation resets: how many pods run, where,
// and with which resources.
func isSetting(kind string, path fieldpath.Path) bool {
	if kind != "Deployment" {
		return false
	}
	name := func(i int) string {
		if i >= len(path) || path[i].FieldName == nil {
			return ""
		}
		return *path[i].FieldName
	}
	if name(0) != "spec" || name(1) == "replicas" {
		return name(0) == "spec"
	}
	if name(1) != "template" || name(2) != "spec" {
		return false
	}
	switch name(3) {
	case "nodeSelector", "tolerations", "affinity", "topologySpreadConstraints", "priorityClassName":
		return true
	case "containers":
		return name(5) == "resources"
	}
	return false
}

// place is where a field is in an object.
type place struct {
	value  any
	parent map[string]any // nil if the field is an element of a list
	name   string
}

// locate returns where a field is, and whether the object has it.
func locate(object map[string]any, path fieldpath.Path) (place, bool) {
	found := place{value: object}
	for _, element := range path {
		found.parent = nil
		switch {
		case element.FieldName != nil:
			fields, _ := found.value.(map[string]any)
			next, ok := fields[*element.FieldName]
			if !ok {
				return place{}, false
			}
			found = place{next, fields, *element.FieldName}
		case element.Key != nil:
			if !found.enter(func(item any) bool { return hasKeys(item, *element.Key) }) {
				return place{}, false
			}
		case element.Value != nil:
			if !found.enter(func(item any) bool { return equality.Semantic.DeepEqual(item, (*element.Value).Unstructured()) }) {
				return place{}, false
			}
		default: // an index: lists with indexes are owned as a whole
			return place{}, false
		}
	}
	return found, true
}

// enter replaces a list by its first element that matches.
func (p *place) enter(matches func(item any) bool) bool {
	items, _ := p.value.([]any)
	i := slices.IndexFunc(items, matches)
	if i < 0 {
		return false
	}
	p.value = items[i]
	return true
}

// hasKeys reports whether an element of a list has the values of its key. A key that the element leaves out has its default value, which
// only the API server knows, as "TCP" of ports.
func hasKeys(item any, keys value.FieldList) bool {
	fields, ok := item.(map[string]any)
	for _, key := range keys {
		got, has := fields[key.Name]
		if has && !equality.Semantic.DeepEqual(got, key.Value.Unstructured()) {
			return false
		}
	}
	return ok
}

// differenceAt returns the difference of a field between two objects, and whether there is one. A field that the desired object does not
// have stays as it is.
func differenceAt(before, desired *unstructured.Unstructured, field ownedField) (Difference, bool) {
	present, isPresent := locate(before.Object, field.path)
	next, isDesired := locate(desired.Object, field.path)
	if !isPresent || !isDesired || equality.Semantic.DeepEqual(present.value, next.value) {
		return Difference{}, false
	}
	result := Difference{strings.TrimPrefix(field.path.String(), "."), field.manager, "(not shown)", "(not shown)"}
	if before.GetKind() != "Secret" {
		result.Present, result.Desired = shown(present.value), shown(next.value)
	}
	return result, true
}

// maxShown is the length of a value in a message.
const maxShown = 100

func shown(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return "?"
	}
	if runes := []rune(string(text)); len(runes) > maxShown {
		return string(runes[:maxShown]) + "..."
	}
	return string(text)
}

// controllerManager is the field manager of Kubernetes' own controllers.
const controllerManager = "kube-controller-manager"

// WasApplied reports whether an Installer has applied an object.
func WasApplied(object *unstructured.Unstructured) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == string(installerOwner) && entry.Operation == metav1.ManagedFieldsOperationApply
	})
}

// OnlyOwn reports whether only an Installer and controllers of Kubernetes have set fields of an object.
func OnlyOwn(object *unstructured.Unstructured) bool {
	return !slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager != string(installerOwner) && entry.Subresource != "status" && entry.Manager != controllerManager
	})
}
