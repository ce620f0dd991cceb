// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Right is one verb on one resource that a role grants.
type Right struct {
	Verb, Group, Resource string
	// Namespace is empty for a right in all of them, Name for one to all objects.
	Namespace, Name string
	// Role is the role that has it.
	Role string
}

func (r Right) String() string {
	text := fmt.Sprintf("%s %s", r.Verb, groupResource(r.Group, r.Resource))
	if r.Name != "" {
		text += fmt.Sprintf(" %q", r.Name)
	}
	if r.Namespace != "" {
		text += fmt.Sprintf(" in %q", r.Namespace)
	}
	return text + ", by " + r.Role
}

// needed reports whether a request would have been refused without the right, and narrower ones in the account's own
// namespace would not have done.
func (r Right) needed(account types.NamespacedName, request Request) bool {
	if request.Refused || request.Verb != r.Verb || request.Group != r.Group || request.Resource != r.Resource {
		return false
	}
	if r.Name != "" && request.Name != r.Name {
		return false
	}
	if r.Namespace != "" {
		return request.Namespace == r.Namespace
	}
	return request.Namespace != account.Namespace
}

// Rights returns what the roles among objects grant to a ServiceAccount, by the bindings among them. An error says that a
// binding names a role that is not among them, or that a right is not about resources.
func Rights(objects []*unstructured.Unstructured, account types.NamespacedName) ([]Right, error) {
	var rights []Right
	for _, o := range objects {
		if o.GetKind() != "RoleBinding" && o.GetKind() != "ClusterRoleBinding" {
			continue
		}
		binding := rbacv1.RoleBinding{} // the same fields as a ClusterRoleBinding's, which has no namespace
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &binding); err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		subject := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: account.Namespace, Name: account.Name}
		if !slices.Contains(binding.Subjects, subject) {
			continue
		}
		granted, err := granted(objects, binding)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		rights = append(rights, granted...)
	}
	return rights, nil
}

// granted returns the rights that a binding gives.
func granted(objects []*unstructured.Unstructured, binding rbacv1.RoleBinding) ([]Right, error) {
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool {
		return o.GetKind() == binding.RoleRef.Kind && o.GetName() == binding.RoleRef.Name &&
			(o.GetNamespace() == "" || o.GetNamespace() == binding.Namespace)
	})
	if i < 0 {
		return nil, fmt.Errorf("there is no %s %s", binding.RoleRef.Kind, binding.RoleRef.Name)
	}
	role := rbacv1.Role{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(objects[i].Object, &role); err != nil {
		return nil, fmt.Errorf("%s %s: %w", objects[i].GetKind(), objects[i].GetName(), err)
	}
	var rights []Right
	for _, rule := range role.Rules {
		if len(rule.NonResourceURLs) > 0 {
			return nil, fmt.Errorf("%s %s: rights to %v cannot be compared", objects[i].GetKind(), role.Name, rule.NonResourceURLs)
		}
		names := rule.ResourceNames
		if len(names) == 0 {
			names = []string{""}
		}
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, verb := range rule.Verbs {
					for _, name := range names {
						rights = append(rights, Right{
							Verb: verb, Group: group, Resource: resource, Namespace: binding.Namespace, Name: name,
							Role: objects[i].GetKind() + " " + role.Name,
						})
					}
				}
			}
		}
	}
	return rights, nil
}
