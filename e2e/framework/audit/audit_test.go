// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/e2e/framework/audit"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

var account = types.NamespacedName{Namespace: "home", Name: "robot"}

const roles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: everywhere}
rules:
- {apiGroups: [""], resources: [services, services/status], verbs: [get, update]}
- {apiGroups: [example.com], resources: [things], verbs: [list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: here, namespace: home}
rules:
- {apiGroups: [coordination.k8s.io], resources: [leases], resourceNames: [one, two], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: here, namespace: elsewhere}
rules:
- {apiGroups: [""], resources: [secrets], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: everywhere}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: everywhere}
subjects: [{kind: ServiceAccount, name: other, namespace: home}, {kind: ServiceAccount, name: robot, namespace: home}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: here, namespace: home}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: here}
subjects: [{kind: ServiceAccount, name: robot, namespace: home}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: here, namespace: elsewhere}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: here}
subjects: [{kind: ServiceAccount, name: robot, namespace: other}]
`

// used are requests that need all rights of the robot.
var used = []string{
	`{"verb":"get","user":{"username":"system:serviceaccount:home:robot"},"objectRef":{"resource":"services","namespace":"shop","name":"web"}}`,
	`{"verb":"update","user":{"username":"system:serviceaccount:home:robot"},"objectRef":{"resource":"services","namespace":"shop","name":"web"}}`,
	`{"verb":"get","user":{"username":"system:serviceaccount:home:robot"},"objectRef":{"resource":"services","subresource":"status","namespace":"shop","name":"web"}}`,
	`{"verb":"update","user":{"username":"system:serviceaccount:home:robot"},"objectRef":{"resource":"services","subresource":"status","namespace":"shop","name":"web"}}`,
	`{"verb":"list","user":{"username":"system:serviceaccount:home:robot"},"objectRef":{"apiGroup":"example.com","resource":"things"}}`,
	`{"verb":"get","user":{"username":"system:serviceaccount:home:robot"},"objectRef":{"apiGroup":"coordination.k8s.io","resource":"leases","namespace":"home","name":"one"}}`,
	`{"verb":"get","user":{"username":"system:serviceaccount:home:robot"},"objectRef":{"apiGroup":"coordination.k8s.io","resource":"leases","namespace":"home","name":"two"}}`,
	`{"verb":"get","user":{"username":"system:serviceaccount:home:robot"}}`, // discovery
}

// refusedCreate is a create that was refused: its name has not been read.
const refusedCreate = `{"verb":"create","user":{"username":"system:serviceaccount:home:robot"},"objectRef":{"resource":"services","namespace":"shop"},"annotations":{"authorization.k8s.io/decision":"forbid"}}`

// TestCompare: each right that is not used is named, and so is each refusal.
func TestCompare(t *testing.T) {
	for name, c := range map[string]struct {
		without int // the number of a request that is not there
		more    string
		want    []string
	}{
		"all used":          {without: -1},
		"a verb":            {without: 1, want: []string{`never used: update services, by ClusterRole everywhere`}},
		"a subresource":     {without: 2, want: []string{`never used: get services/status, by ClusterRole everywhere`}},
		"a group":           {without: 4, want: []string{`never used: list things.example.com, by ClusterRole everywhere`}},
		"a name":            {without: 6, want: []string{`never used: get leases.coordination.k8s.io "two" in "home", by Role here`}},
		"by another user":   {without: 0, more: strings.Replace(used[0], "robot", "other", 1), want: []string{`never used: get services, by ClusterRole everywhere`}},
		"at home only":      {without: 0, more: strings.Replace(used[0], "shop", "home", 1), want: []string{`never used: get services, by ClusterRole everywhere`}},
		"in another's home": {without: 5, more: strings.Replace(used[5], `"namespace":"home"`, `"namespace":"shop"`, 1), want: []string{`never used: get leases.coordination.k8s.io "one" in "home", by Role here`}},
		"refused": {
			without: 0, more: strings.TrimSuffix(used[0], "}") + `,"annotations":{"authorization.k8s.io/decision":"forbid"}}`,
			want: []string{`never used: get services, by ClusterRole everywhere`, `refused: get services "web" in "shop"`},
		},
		"a create, refused once": {without: -1, more: strings.Replace(used[1], `"update"`, `"create"`, 1) + "\n" + refusedCreate},
		"a create in another namespace": {
			without: -1, more: strings.NewReplacer(`"update"`, `"create"`, `"shop"`, `"home"`).Replace(used[1]) + "\n" + refusedCreate,
			want: []string{`refused: create services "" in "shop"`},
		},
		"refused once": {without: -1, more: strings.TrimSuffix(used[0], "}") + `,"annotations":{"authorization.k8s.io/decision":"forbid"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			for i, line := range append(slices.Clone(used), c.more) {
				if i != c.without && line != "" {
					lines = append(lines, line)
				}
			}
			path := filepath.Join(t.TempDir(), "audit.log")
			lines = append(lines, used[0][:20]) // being written
			lab.Must(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600))
			rights, err := audit.Rights(objects(t, roles), account)
			lab.Must(t, err)
			requests, err := audit.Requests(path, account)
			lab.Must(t, err)
			lab.Equal(t, "problems", c.want, audit.Compare(account, rights, requests))
		})
	}
}

// TestErrors: what cannot be compared is not passed over.
func TestErrors(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"no role":   {strings.Replace(roles, "metadata: {name: everywhere}", "metadata: {name: renamed}", 1), "ClusterRoleBinding everywhere: there is no ClusterRole everywhere"},
		"URLs":      {strings.Replace(roles, "- {apiGroups: [example.com]", `- {nonResourceURLs: [/metrics]`, 1), "ClusterRoleBinding everywhere: ClusterRole everywhere: rights to [/metrics] cannot be compared"},
		"elsewhere": {strings.Replace(roles, "{name: here, namespace: home}", "{name: here, namespace: shop}", 1), "RoleBinding here: there is no Role here"},
	} {
		if _, err := audit.Rights(objects(t, c.text), account); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	path := filepath.Join(t.TempDir(), "audit.log")
	if _, err := audit.Requests(path, account); err == nil {
		t.Error("a log that is not there is read")
	}
	lab.Must(t, os.WriteFile(path, []byte("{}\n{\n"), 0o600))
	want := "audit log " + path + ", line 2: unexpected end of JSON input"
	if _, err := audit.Requests(path, account); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var out []*unstructured.Unstructured
	for _, document := range strings.Split(text, "---") {
		o := &unstructured.Unstructured{}
		lab.Must(t, yaml.Unmarshal([]byte(document), &o.Object))
		out = append(out, o)
	}
	return out
}
