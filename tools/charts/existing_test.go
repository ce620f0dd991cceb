// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
)

// cluster is the objects that exist where a chart is installed.
type cluster struct{ dynamic.Interface }

// GetClientFor returns a client for a kind that the charts look up.
func (c cluster) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	plural, _ := meta.UnsafeGuessKindToResource(schema.FromAPIVersionAndKind(apiVersion, kind))
	return c.Resource(plural), false, nil
}

// existing is an object of a cluster in which a chart is installed or upgraded, and how it differs from the chart's.
type existing struct {
	chart, name string
	change      func(object)
	upgrade     bool
	want        string // "creates", "uses", or a part of the error
}

const (
	policyCRD = "serviceexportgrants.policy.tombolo-mcs.io"
	hubCRD    = "heartbeats.hub.tombolo-mcs.io"
	property  = "cluster.clusterset.k8s.io"
)

// TestExisting: a release creates or updates what does not exist and what it has created. It uses the CRDs and ClusterProperties of
// another owner if they are the same. If they differ, the error says what to do, and nothing is changed.
func TestExisting(t *testing.T) {
	t.Parallel()
	foreign := func(object) {}
	older := func(o object) { delete(versionOf(o), "subresources") }
	for name, e := range map[string]existing{
		"a CRD that leave or kubectl left":            {name: policyCRD, change: foreign, want: "uses"},
		"one of the hub":                              {chart: hubChart, name: hubCRD, change: foreign, want: "uses"},
		"one of an uninstalled release":               {name: policyCRD, change: owned("tombolo", nil), want: "creates"},
		"one of another release":                      {name: policyCRD, change: owned("other", nil), want: "uses"},
		"an older one":                                {name: policyCRD, change: older, want: "CustomResourceDefinition " + policyCRD + " exists and differs"},
		"an older one of the hub":                     {chart: hubChart, name: hubCRD, change: older, want: "--show-only templates/crds.yaml | kubectl apply --server-side --force-conflicts"},
		"an older one, when upgraded":                 {name: policyCRD, change: older, upgrade: true, want: "exists and differs"},
		"an older one of the release, when upgraded":  {name: policyCRD, change: owned("tombolo", older), upgrade: true, want: "creates"},
		"an older one of an uninstalled release":      {name: policyCRD, change: owned("tombolo", older), want: "exists and differs"}, // Helm 3 would keep it
		"one with what the API server adds":           {name: policyCRD, change: func(o object) { o["spec"].(object)["conversion"] = object{"strategy": "None"} }, want: "uses"},
		"one that is being deleted":                   {name: policyCRD, change: deleted, want: "wait until it does not exist (kubectl wait --for=delete crd/" + policyCRD + ")"},
		"one of the release that is being deleted":    {name: policyCRD, change: owned("tombolo", deleted), want: "is being deleted"},
		"an ID that join or an administrator has set": {name: property, change: foreign, want: "uses"},
		"an ID of the release":                        {name: property, change: owned("tombolo", nil), want: "creates"},
		"another ID": {
			name: property, change: func(o object) { o["spec"].(object)["value"] = "west" },
			want: `ClusterProperty cluster.clusterset.k8s.io of this cluster is "west", and this release has not set it: use this value instead of "east"`,
		},
		"another ID of the release":         {name: property, change: owned("tombolo", func(o object) { o["spec"].(object)["value"] = "west" }), upgrade: true, want: "creates"},
		"a namespace that is being deleted": {name: "tombolo-system", change: deleted, want: "namespace tombolo-system is being deleted: wait until it does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := memberChart
			if e.chart != "" {
				dir = e.chart
			}
			got, err := e.install(t, dir)
			if err == nil && got != e.want || err != nil && !strings.Contains(err.Error(), e.want) {
				t.Errorf("the chart %q it (%v), want %q", got, err, e.want)
			}
		})
	}
}

// owned returns a change of an object to one that a release has created, and another change.
func owned(release string, change func(object)) func(object) {
	return func(o object) {
		metadata := o["metadata"].(object)
		annotations, _ := metadata["annotations"].(object)
		if annotations == nil {
			annotations = object{}
		}
		annotations["meta.helm.sh/release-name"], annotations["meta.helm.sh/release-namespace"] = release, "tombolo-system"
		metadata["annotations"] = annotations
		if change != nil {
			change(o)
		}
	}
}

func deleted(o object) { o["metadata"].(object)["deletionTimestamp"] = "2026-01-01T00:00:00Z" }

func versionOf(crd object) object { return crd["spec"].(object)["versions"].([]any)[0].(object) }

// install renders the chart where the object exists, and returns what the chart does with it.
func (e existing) install(t *testing.T, dir string) (string, error) {
	t.Helper()
	values := map[string]any{}
	if dir == memberChart {
		values = map[string]any{"clusterID": "east", "image": map[string]any{"tag": "v1"}}
	}
	o := e.object(t, dir, values)
	e.change(o)
	server := fake.NewSimpleDynamicClient(runtime.NewScheme(), &unstructured.Unstructured{Object: o})
	options := common.ReleaseOptions{Name: "tombolo", Namespace: "tombolo-system", IsInstall: !e.upgrade, IsUpgrade: e.upgrade}
	capabilities := common.DefaultCapabilities.Copy()
	capabilities.APIVersions = append(capabilities.APIVersions, "about.k8s.io/v1beta1/ClusterProperty")
	c := load(t, dir)
	all, err := util.ToRenderValues(c, values, options, capabilities)
	must(t, err)
	rendered, err := engine.RenderWithClientProvider(c, all, cluster{server})
	if err != nil {
		return "", err
	}
	for _, text := range rendered {
		if strings.Contains(text, "\n  name: "+e.name+"\n") {
			return "creates", nil
		}
	}
	return "uses", nil
}

// object returns the object as the chart has it, or the release's namespace.
func (e existing) object(t *testing.T, dir string, values map[string]any) object {
	t.Helper()
	all, err := util.ToRenderValues(load(t, dir), values, common.ReleaseOptions{Name: "tombolo", Namespace: "tombolo-system"}, common.DefaultCapabilities)
	must(t, err)
	rendered, err := engine.Render(load(t, dir), all)
	must(t, err)
	for _, text := range rendered {
		if !strings.Contains(text, e.name) {
			continue
		}
		objects, err := parse(text)
		if err != nil {
			continue // NOTES.txt
		}
		for _, o := range objects {
			if o["metadata"].(object)["name"] == e.name {
				return o
			}
		}
	}
	return object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": e.name}}
}
