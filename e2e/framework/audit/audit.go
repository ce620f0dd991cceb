// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package audit compares what an account may do in a cluster, by the manifests that are released, with what it has asked for,
// by the audit log of the API server: a right that is never used should not be given, and nothing should be refused.
package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Request is what RBAC decides about. Of equal ones, one is kept.
type Request struct {
	Verb, Group string
	// Resource has the subresource behind a slash.
	Resource string
	// Namespace is empty where all are meant, or the resource has none. Name is empty where the URL has none.
	Namespace, Name string
	// Refused says that RBAC does not allow it.
	Refused bool
}

func (r Request) String() string {
	return fmt.Sprintf("%s %s %q in %q", r.Verb, groupResource(r.Group, r.Resource), r.Name, r.Namespace)
}

// event is what of an audit event matters here (audit.k8s.io/v1).
type event struct {
	Verb string `json:"verb"`
	User struct {
		Username string `json:"username"`
	} `json:"user"`
	UserAgent      string `json:"userAgent"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	ObjectRef *struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Annotations map[string]string `json:"annotations"`
}

// Answer is what an API server has answered to one request.
type Answer struct {
	Request
	// User is the name that the request was authenticated as; UserAgent is what its client calls itself.
	User, UserAgent string
	// Code is the HTTP status.
	Code int
}

// Requests returns what a ServiceAccount has asked an API server for, by the audit log at a path. URLs that lead to no
// resource, as those of discovery, are left out. A watch is logged when it ends.
func Requests(path string, account types.NamespacedName) (sets.Set[Request], error) {
	answers, err := Answers(path)
	if err != nil {
		return nil, err
	}
	found := sets.New[Request]()
	for _, a := range answers {
		if a.User == "system:serviceaccount:"+account.Namespace+":"+account.Name {
			found.Insert(a.Request)
		}
	}
	return found, nil
}

// Answers returns what an API server has answered to all requests for resources, by the audit log at a path, in the order
// of the log. A last line without its end is passed over: the API server is just writing it.
func Answers(path string) ([]Answer, error) {
	log, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var found []Answer
	n := 0
	for line := range bytes.Lines(log[:bytes.LastIndexByte(log, '\n')+1]) {
		n++
		var e event
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("audit log %s, line %d: %w", path, n, err)
		}
		if e.ObjectRef == nil {
			continue
		}
		o := *e.ObjectRef
		resource := o.Resource
		if o.Subresource != "" {
			resource += "/" + o.Subresource
		}
		request := Request{
			Verb: e.Verb, Group: o.Group, Resource: resource, Namespace: o.Namespace, Name: o.Name,
			Refused: e.Annotations["authorization.k8s.io/decision"] == "forbid",
		}
		found = append(found, Answer{Request: request, User: e.User.Username, UserAgent: e.UserAgent, Code: e.ResponseStatus.Code})
	}
	return found, nil
}

// Misfits returns what does not fit between the rights that objects give to a ServiceAccount and its requests, by the audit logs of
// some clusters together, as Compare does.
func Misfits(account types.NamespacedName, objects []*unstructured.Unstructured, logs ...string) ([]string, error) {
	rights, err := Rights(objects, account)
	if err != nil {
		return nil, err
	}
	if len(rights) == 0 {
		return nil, fmt.Errorf("%s has no rights", account)
	}
	requests := sets.New[Request]()
	for _, log := range logs {
		some, err := Requests(log, account)
		if err != nil {
			return nil, err
		}
		requests = requests.Union(some)
	}
	return Compare(account, rights, requests), nil
}

// Compare returns what does not fit between the rights of a ServiceAccount and its requests, sorted: rights that no
// request has needed, and requests that were always refused. (An API server that has just started refuses everything for a
// moment, until it has read the roles.) A right in all namespaces needs a request outside of the account's own.
func Compare(account types.NamespacedName, rights []Right, requests sets.Set[Request]) []string {
	var problems []string
	for _, right := range rights {
		if !slices.ContainsFunc(requests.UnsortedList(), func(r Request) bool { return right.needed(account, r) }) {
			problems = append(problems, "never used: "+right.String())
		}
	}
	for _, r := range requests.UnsortedList() {
		if r.Refused && !slices.ContainsFunc(requests.UnsortedList(), r.allowedBy) {
			problems = append(problems, "refused: "+r.String())
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems)
}

// allowedBy reports whether another request is the same and was allowed. Of a create that was refused an API server does not log the
// name: it has not read that far.
func (r Request) allowedBy(other Request) bool {
	if r.Verb == "create" && r.Name == "" {
		other.Name = ""
	}
	r.Refused = false
	return r == other
}

func groupResource(group, resource string) string { return strings.TrimSuffix(resource+"."+group, ".") }

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
