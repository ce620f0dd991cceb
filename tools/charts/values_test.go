// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestValues: each value changes what it names.
func TestValues(t *testing.T) {
	t.Parallel()
	c := load(t, memberChart)
	got, err := template(c, `
clusterID: east
clusterset: eu
image: {registry: mirror.example:5000/x, tag: v9, pullPolicy: Always, pullSecrets: [{name: pull}]}
agent: {args: [--deny-namespaces=x], replicas: 3, resources: {limits: {memory: 1Gi, cpu: 1}}, podAnnotations: {a: b}, priorityClassName: high}
aggregateExportRights: false
dns: {clusterIP: 10.96.0.20, image: "mine/dns:1", replicas: 0, resources: {limits: null, requests: {memory: null}}, nodeSelector: {disk: ssd},
  tolerations: [{key: k}], affinity: {nodeAffinity: {}}}
gateway: {enabled: true, service: {type: NodePort, annotations: {c: d}}, args: [--max-streams=5]}
`)
	must(t, err)
	all := byName(t, got)
	type part = map[string]any
	agent, dns := all["Deployment tombolo-system/tombolo-agent"], all["Deployment tombolo-system/tombolo-dns"]
	gateway, service := all["Deployment tombolo-system/tombolo-gateway"], all["Service tombolo-system/tombolo-gateway"]
	for name, values := range map[string][2]any{
		"cluster ID":      {all["ClusterProperty <nil>/cluster.clusterset.k8s.io"]["spec"], part{"value": "east"}},
		"clusterset":      {all["ClusterProperty <nil>/clusterset.k8s.io"]["spec"], part{"value": "eu"}},
		"image":           {containerOf(agent)["image"], "mirror.example:5000/x/tombolo-agent:v9"},
		"gateway's image": {containerOf(gateway)["image"], "mirror.example:5000/x/tombolo-gateway:v9"},
		"own image":       {containerOf(dns)["image"], "mine/dns:1"},
		"pull policy":     {containerOf(dns)["imagePullPolicy"], "Always"},
		"pull secrets":    {podOf(agent)["imagePullSecrets"], []any{part{"name": "pull"}}},
		"agent's args": {
			containerOf(agent)["args"],
			[]any{"--hub-kubeconfig=/etc/tombolo/hub/kubeconfig", "--hub-secret=tombolo-hub", "--deny-namespaces=x"},
		},
		"gateway's args": {containerOf(gateway)["args"], []any{"--max-streams=5"}},
		"replicas":       {agent["spec"].(object)["replicas"], 3.0},
		"no replicas":    {dns["spec"].(object)["replicas"], 0.0},
		"resources": {
			containerOf(agent)["resources"],
			part{"limits": part{"memory": "1Gi", "cpu": 1.0}, "requests": part{"cpu": "50m", "memory": "64Mi"}},
		},
		"no limits":             {containerOf(dns)["resources"], part{"requests": part{"cpu": "50m"}}},
		"annotations":           {agent["spec"].(object)["template"].(object)["metadata"].(object)["annotations"], part{"a": "b"}},
		"priority class":        {podOf(agent)["priorityClassName"], "high"},
		"export rights":         {all["ClusterRole <nil>/tombolo-export"]["metadata"].(object)["labels"], part{"app.kubernetes.io/part-of": "tombolo"}},
		"node selector":         {podOf(dns)["nodeSelector"], part{"disk": "ssd", "kubernetes.io/os": "linux"}},
		"tolerations":           {podOf(dns)["tolerations"], []any{part{"key": "k"}}},
		"affinity":              {podOf(dns)["affinity"], part{"nodeAffinity": part{}}},
		"address of DNS":        {all["Service tombolo-system/tombolo-dns"]["spec"].(object)["clusterIP"], "10.96.0.20"},
		"type of Service":       {service["spec"].(object)["type"], "NodePort"},
		"Service's annotations": {service["metadata"].(object)["annotations"], part{"c": "d"}},
	} {
		if diff := cmp.Diff(values[1], values[0]); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	got, err = template(load(t, hubChart), `audiences: ["https://a'b.example", "x\"y"]`)
	must(t, err)
	want := []any{part{"name": "audiences", "expression": `["https://a'b.example","x\"y"]`}}
	policy := byName(t, got)["ValidatingAdmissionPolicy <nil>/"+hubTokens]
	if diff := cmp.Diff(want, policy["spec"].(object)["variables"]); diff != "" {
		t.Errorf("audiences: -want +got:\n%s", diff)
	}
}

// TestRefused: a chart does not install what cannot work.
func TestRefused(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"{}": "this chart is a development build (dev), for which no images were published, so it cannot know " +
			"their names: set image.tag",
		"{agent: {image: a}}":                                          "or dns.image",
		"{image: {tag: v1}, profile: big}":                             "/profile",
		"{image: {tag: v1}, agnt: {}}":                                 "agnt",
		"{image: {tag: v1, registry: r/}}":                             "/image/registry",
		"{image: {tag: v1}, dns: {enabled: false}}":                    "/dns/enabled",
		"{image: {tag: v1}, dns: {args: [x]}}":                         "/dns/args",
		"{image: {tag: v1}, dns: {clusterIP: None}}":                   "/dns/clusterIP",
		"{image: {tag: v1}, agent: {clusterIP: 10.96.0.20}}":           "/agent/clusterIP",
		"{image: {tag: v1}, agent: {enabled: false}}":                  "/agent/enabled",
		"{image: {tag: v1}, clusterID: East}":                          "/clusterID",
		"{image: {tag: v1}, gateway: {service: {type: ExternalName}}}": "/gateway/service/type",
	} {
		c := load(t, memberChart)
		c.Metadata.AppVersion = "dev"
		if _, err := template(c, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", values, err, want)
		}
	}
	if _, err := template(load(t, memberChart), "{agent: {image: a}, dns: {image: b}}"); err != nil {
		t.Error(err)
	}
}

// TestDocumented: the README of a chart has each value.
func TestDocumented(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{hubChart, memberChart} {
		readme, err := os.ReadFile(filepath.Join(dir, "README.md"))
		must(t, err)
		var got []string
		for _, row := range regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(string(readme), -1) {
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[1], -1) {
				got = append(got, name[1])
			}
		}
		want := leaves("", load(t, dir).Values)
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -values +README:\n%s", dir, diff)
		}
	}
}

// leaves returns the names of all values, such as image.tag.
func leaves(prefix string, values map[string]any) []string {
	var names []string
	for name, value := range values {
		if inner, ok := value.(map[string]any); ok && len(inner) > 0 {
			names = append(names, leaves(prefix+name+".", inner)...)
			continue
		}
		names = append(names, prefix+name)
	}
	return names
}
