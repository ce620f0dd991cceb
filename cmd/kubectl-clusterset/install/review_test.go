// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// reviewed returns what a Review says of a desired object, if another field manager has set fields of the existing one.
func reviewed(t *testing.T, existing, desired, fields string) (Review, []string) {
	t.Helper()
	before, result := parse(t, existing), Review{Object: parse(t, desired)}
	before.SetManagedFields(parse(t, `{metadata: {managedFields: [
		{manager: kubectl-clusterset, operation: Apply, fieldsV1: {"f:spec": {"f:replicas": {}}}},
		{manager: hpa, operation: Update, subresource: status, fieldsV1: {"f:status": {"f:replicas": {}}}},
		{manager: alice, operation: Update, fieldsV1: `+fields+`}]}}`).GetManagedFields())
	others, err := fieldsOfOthers(before)
	check.Must(t, err)
	result.keep(before, others)
	result.overwrite(before, result.Object, others)
	var lines []string
	for _, d := range result.Kept {
		lines = append(lines, fmt.Sprintf("kept %s %s: %s for %s", d.Manager, d.Field, d.Present, d.Desired))
	}
	for _, d := range result.Overwritten {
		lines = append(lines, fmt.Sprintf("overwritten %s %s: %s by %s", d.Manager, d.Field, d.Present, d.Desired))
	}
	return result, lines
}

// TestSettings: how many pods run, where, and with which resources stays as others have set it. Any other field of theirs is a conflict, and
// a field that is not desired or has the desired value is neither.
func TestSettings(t *testing.T) {
	t.Parallel()
	const pod = `{"f:spec": {"f:template": {"f:spec": %s}}}`
	const container = `{"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"agent\"}": %s}}}}}`
	of := func(spec string) string { return "{kind: Deployment, metadata: {name: a}, spec: " + spec + "}" }
	template := func(spec string) string { return of("{template: {spec: " + spec + "}}") }
	agent := func(rest string) string {
		return template("{containers: [{name: other, image: x}, {name: agent, " + rest + "}]}")
	}
	for name, tc := range map[string]struct {
		existing, desired, fields string
		want                      []string
		left                      string // of the desired object; empty if it is unchanged
	}{
		"replicas": {
			of("{replicas: 3}"), of("{replicas: 1, paused: false}"), `{"f:spec": {"f:replicas": {}}}`,
			[]string{"kept alice spec.replicas: 3 for 1"},
			of("{paused: false}"),
		},
		"the same replicas":             {of("{replicas: 1}"), of("{replicas: 1}"), `{"f:spec": {"f:replicas": {}}}`, nil, ""},
		"replicas that are not desired": {of("{replicas: 3}"), of("{paused: false}"), `{"f:spec": {"f:replicas": {}}}`, nil, ""},
		"a limit, beside ours": {
			agent("resources: {limits: {memory: 1Gi}, requests: {cpu: 1}}"), agent("resources: {limits: {memory: 64Mi}, requests: {cpu: 2}}"),
			fmt.Sprintf(container, `{"f:resources": {"f:limits": {"f:memory": {}}}}`),
			[]string{`kept alice spec.template.spec.containers[name="agent"].resources.limits.memory: "1Gi" for "64Mi"`},
			agent("resources: {limits: {}, requests: {cpu: 2}}"),
		},
		"nodeSelector": {
			template("{nodeSelector: {a: x}}"), template("{nodeSelector: {a: w, b: z}}"), fmt.Sprintf(pod, `{"f:nodeSelector": {"f:a": {}}}`),
			[]string{`kept alice spec.template.spec.nodeSelector.a: "x" for "w"`},
			template("{nodeSelector: {b: z}}"),
		},
		"tolerations": {
			template("{tolerations: [{key: a}]}"), template("{tolerations: [{key: b}]}"), fmt.Sprintf(pod, `{"f:tolerations": {}}`),
			[]string{`kept alice spec.template.spec.tolerations: [{"key":"a"}] for [{"key":"b"}]`},
			template("{}"),
		},
		"affinity": {
			template("{affinity: {podAffinity: {x: [1]}}}"), template("{affinity: {podAffinity: {x: [2]}}}"), fmt.Sprintf(pod, `{"f:affinity": {"f:podAffinity": {"f:x": {}}}}`),
			[]string{"kept alice spec.template.spec.affinity.podAffinity.x: [1] for [2]"},
			template("{affinity: {podAffinity: {}}}"),
		},
		"topologySpreadConstraints": {
			template("{topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: S, maxSkew: 5}]}"),
			template("{topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: S, maxSkew: 1}]}"),
			fmt.Sprintf(pod, `{"f:topologySpreadConstraints": {"k:{\"topologyKey\":\"zone\",\"whenUnsatisfiable\":\"S\"}": {"f:maxSkew": {}}}}`),
			[]string{`kept alice spec.template.spec.topologySpreadConstraints[topologyKey="zone",whenUnsatisfiable="S"].maxSkew: 5 for 1`},
			template("{topologySpreadConstraints: [{topologyKey: zone, whenUnsatisfiable: S}]}"),
		},
		"priorityClassName": {
			template("{priorityClassName: a}"), template("{priorityClassName: b}"), fmt.Sprintf(pod, `{"f:priorityClassName": {}}`),
			[]string{`kept alice spec.template.spec.priorityClassName: "a" for "b"`},
			template("{}"),
		},
		"an image": {
			agent("image: x"), agent("image: w"), fmt.Sprintf(container, `{"f:image": {}}`),
			[]string{`overwritten alice spec.template.spec.containers[name="agent"].image: "x" by "w"`},
			"",
		},
		"arguments": {
			agent("args: [x]"), agent("args: [w]"), fmt.Sprintf(container, `{"f:args": {}}`),
			[]string{`overwritten alice spec.template.spec.containers[name="agent"].args: ["x"] by ["w"]`},
			"",
		},
		"a label with a dot": {
			"{kind: Deployment, metadata: {name: a, labels: {example.com/a: x}}}", "{kind: Deployment, metadata: {name: a, labels: {example.com/a: w}}}",
			`{"f:metadata": {"f:labels": {"f:example.com/a": {}}}}`,
			[]string{`overwritten alice metadata.labels.example.com/a: "x" by "w"`},
			"",
		},
		"a container of another user": {
			agent("image: x"), template("{containers: [{name: other, image: x}]}"), fmt.Sprintf(container, `{"f:image": {}}`), nil, "",
		},
		"replicas of another kind": {
			"{kind: Scale, metadata: {name: a}, spec: {replicas: 3}}", "{kind: Scale, metadata: {name: a}, spec: {replicas: 1}}", `{"f:spec": {"f:replicas": {}}}`,
			[]string{"overwritten alice spec.replicas: 3 by 1"},
			"",
		},
		"a value of a Secret": {
			"{kind: Secret, metadata: {name: a}, data: {token: x}}", "{kind: Secret, metadata: {name: a}, data: {token: w}}", `{"f:data": {"f:token": {}}}`,
			[]string{"overwritten alice data.token: (not shown) by (not shown)"},
			"",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, lines := reviewed(t, tc.existing, tc.desired, tc.fields)
			check.Equal(t, "differences", tc.want, lines)
			left := tc.left
			if left == "" {
				left = tc.desired
			}
			check.Equal(t, "the object to apply", parse(t, left).Object, result.Object.Object)
		})
	}
}

// TestRespell: a value that the API server stores as the existing one is applied as it is stored, so that it is no conflict.
func TestRespell(t *testing.T) {
	t.Parallel()
	const quota = `{kind: ResourceQuota, metadata: {name: a}, spec: {hard: {pods: %q, secrets: %q}}}`
	before, after := parse(t, fmt.Sprintf(quota, "1k", "5")), parse(t, fmt.Sprintf(quota, "1k", "6"))
	before.SetManagedFields(parse(t, `{metadata: {managedFields: [{manager: helm, operation: Apply, fieldsV1: {"f:spec": {"f:hard": {"f:pods": {}, "f:secrets": {}}}}}]}}`).GetManagedFields())
	others, err := fieldsOfOthers(before)
	check.Must(t, err)
	result := Review{Object: parse(t, fmt.Sprintf(quota, "1000", "6"))}
	result.overwrite(before, after, others)
	result.respell(before, after, others)
	check.Equal(t, "overwritten", []Difference{{"spec.hard.secrets", "helm", `"5"`, `"6"`}}, result.Overwritten)
	check.Equal(t, "the object to apply", after.Object, result.Object.Object)
}

// TestOnlyOwn: an object is only the command's own if the command has applied it and no other client has set a field.
func TestOnlyOwn(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		managers      string
		applied, only bool
	}{
		"of no manager":              {"", false, true},
		"applied":                    {"{manager: kubectl-clusterset, operation: Apply}", true, true},
		"updated by the command":     {"{manager: kubectl-clusterset, operation: Update}", false, true},
		"with a status":              {"{manager: kubectl-clusterset, operation: Apply}, {manager: x, operation: Update, subresource: status}", true, true},
		"with a controller":          {"{manager: kubectl-clusterset, operation: Apply}, {manager: kube-controller-manager, operation: Update}", true, true},
		"changed by a user":          {"{manager: kubectl-clusterset, operation: Apply}, {manager: kubectl-edit, operation: Update}", true, false},
		"applied by a user":          {"{manager: kubectl, operation: Apply}", false, false},
		"of Helm and of the command": {"{manager: helm, operation: Apply}, {manager: kubectl-clusterset, operation: Apply}", true, false},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{}}
		object.SetManagedFields(parse(t, "{metadata: {managedFields: ["+tc.managers+"]}}").GetManagedFields())
		check.Equal(t, name+": applied", tc.applied, WasApplied(object))
		check.Equal(t, name+": only by the command", tc.only, OnlyOwn(object))
	}
}
