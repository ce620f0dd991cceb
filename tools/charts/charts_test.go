// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

const (
	root        = "../.."
	hubChart    = root + "/charts/tombolo-hub"
	memberChart = root + "/charts/tombolo"
)

// object is an object as YAML describes it.
type object = map[string]any

// load returns a chart.
func load(t *testing.T, dir string) *v2.Chart {
	t.Helper()
	c, err := loader.LoadDir(dir)
	must(t, err)
	return c
}

// template returns the objects that Helm would create with the values, in YAML, those in crds first.
func template(c *v2.Chart, values string) ([]object, error) {
	var given map[string]any
	if err := yaml.UnmarshalStrict([]byte(values), &given); err != nil {
		return nil, err
	}
	options := common.ReleaseOptions{Name: "tombolo", Namespace: "tombolo-system", IsInstall: true}
	all, err := util.ToRenderValues(c, given, options, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	rendered, err := engine.Render(c, all)
	if err != nil {
		return nil, err
	}
	var objects []object
	for _, crd := range c.CRDObjects() {
		rendered[crd.Filename] = string(crd.File.Data)
	}
	for name, text := range rendered {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		parsed, err := parse(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		objects = append(objects, parsed...)
	}
	return objects, nil
}

// parse returns the objects of a file in YAML.
func parse(text string) ([]object, error) {
	var objects []object
	for _, document := range regexp.MustCompile(`(?m)^---\s*$`).Split(text, -1) {
		var o object
		if err := yaml.UnmarshalStrict([]byte(document), &o); err != nil {
			return nil, err
		}
		if len(o) > 0 {
			objects = append(objects, o)
		}
	}
	return objects, nil
}

// kustomized returns the objects of kustomizations.
func kustomized(t *testing.T, names ...string) []object {
	t.Helper()
	var objects []object
	for _, name := range names {
		rendered, err := render(root, name)
		must(t, err)
		for _, r := range rendered.Resources() {
			o, err := r.Map()
			must(t, err)
			objects = append(objects, o)
		}
	}
	return objects
}

// byName returns objects by kind and name, without what a chart adds.
func byName(t *testing.T, objects []object) map[string]object {
	t.Helper()
	all := map[string]object{}
	for _, o := range objects {
		text, err := yaml.Marshal(o)
		must(t, err)
		text = bytes.ReplaceAll(text, []byte("    helm.sh/resource-policy: keep\n"), nil)
		var plain object // numbers are of one type, too
		must(t, yaml.Unmarshal(text, &plain))
		metadata := plain["metadata"].(object)
		key := fmt.Sprintf("%v %v/%v", plain["kind"], metadata["namespace"], metadata["name"])
		if all[key] != nil {
			t.Errorf("%s is there twice", key)
		}
		all[key] = plain
	}
	return all
}

// release returns the registry and the version in manifests/images.
func release(t *testing.T) (registry, version string) {
	t.Helper()
	text, err := os.ReadFile(root + "/manifests/images/kustomization.yaml")
	must(t, err)
	var k types.Kustomization
	must(t, yaml.Unmarshal(text, &k))
	return strings.TrimSuffix(k.Images[0].NewName, "/"+k.Images[0].Name), k.Images[0].NewTag
}

// TestCharts: the objects of the charts are those of the kustomizations, for each profile, with gateways and with monitoring.
func TestCharts(t *testing.T) {
	t.Parallel()
	_, version := release(t)
	crds := []string{"crd/mcs"}
	for values, kustomizations := range map[string][]string{
		"{profile: quickstart}":                               {"overlays/quickstart"},
		"{profile: production}":                               {"overlays/production"},
		"{profile: agent}":                                    {"agent"},
		"{gateway: {enabled: true}}":                          {"overlays/quickstart", "gateway"},
		"{gateway: {enabled: true}, egress: {enabled: true}}": {"overlays/quickstart", "gateway", "egress"},
		"{profile: agent, monitoring: {enabled: true}}":       {"agent", "monitoring/agent", "dashboard"},
		"{profile: production, gateway: {enabled: true}, monitoring: {enabled: true}}": {"overlays/production", "gateway", "monitoring"},
	} {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			c := load(t, memberChart)
			c.Metadata.AppVersion = "v1.2.3" // as released
			got, err := template(c, values)
			must(t, err)
			var want []object
			for _, name := range append(kustomizations, crds...) {
				if name == "dashboard" { // for all that is scraped
					want = append(want, slices.DeleteFunc(kustomized(t, "monitoring"), func(o object) bool { return o["kind"] != "ConfigMap" })...)
					continue
				}
				want = append(want, kustomized(t, name)...)
			}
			want = append(want, slices.DeleteFunc(kustomized(t, "crd"), func(o object) bool {
				return o["metadata"].(object)["name"] != "clusterproperties.about.k8s.io"
			})...)
			want = slices.DeleteFunc(want, func(o object) bool { return o["kind"] == "Namespace" }) // helm creates it
			for _, o := range want {
				if o["kind"] == "Deployment" {
					container := containerOf(o)
					container["image"] = strings.TrimSuffix(container["image"].(string), ":"+version) + ":v1.2.3"
				}
			}
			same(t, want, got)
		})
	}
	got, err := template(load(t, hubChart), "{}")
	must(t, err)
	same(t, kustomized(t, "hub"), got)
}

// same compares the objects of kustomizations with those of a chart.
func same(t *testing.T, want, got []object) {
	t.Helper()
	wanted, found := byName(t, want), byName(t, got)
	for name := range found {
		if wanted[name] == nil {
			t.Errorf("only the chart has %s", name)
		}
	}
	for name, o := range wanted {
		if diff := cmp.Diff(o, found[name]); diff != "" {
			t.Errorf("%s: -kustomization +chart:\n%s", name, diff)
		}
	}
}

// containerOf returns the container of a Deployment.
func containerOf(deployment object) object {
	return podOf(deployment)["containers"].([]any)[0].(object)
}

func podOf(deployment object) object {
	return deployment["spec"].(object)["template"].(object)["spec"].(object)
}

// TestSameRules: both charts decide alike which CRDs they create.
func TestSameRules(t *testing.T) {
	t.Parallel()
	var texts []string
	for _, dir := range []string{hubChart, memberChart} {
		text, err := os.ReadFile(filepath.Join(dir, "templates", "_crds.tpl"))
		must(t, err)
		texts = append(texts, string(text))
	}
	if diff := cmp.Diff(texts[0], texts[1]); diff != "" {
		t.Errorf("templates/_crds.tpl of the charts differ:\n%s", diff)
	}
}

// TestLint: helm lint has no complaint.
func TestLint(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{hubChart, memberChart} {
		result := lint.RunAll(dir, map[string]any{}, "tombolo-system")
		for _, m := range result.Messages {
			if !strings.Contains(m.Error(), "icon is recommended") {
				t.Errorf("%s: %s", dir, m.Error())
			}
		}
	}
}

// TestStamped: the charts have the version and the registry of manifests/images.
func TestStamped(t *testing.T) {
	t.Parallel()
	registry, version := release(t)
	if got := load(t, memberChart).Values["image"].(object)["registry"]; got != registry {
		t.Errorf("the registry is %v, want %s", got, registry)
	}
	want := strings.TrimPrefix(version, "v")
	if version == "dev" {
		want = "0.0.0-dev"
	}
	for _, dir := range []string{hubChart, memberChart} {
		if m := load(t, dir).Metadata; m.AppVersion != version || m.Version != want {
			t.Errorf("%s is %s for %s, want %s for %s", dir, m.Version, m.AppVersion, want, version)
		}
	}
}

// TestFresh: the files of the charts are those that "make generate" writes, and no others.
func TestFresh(t *testing.T) {
	t.Parallel()
	out := t.TempDir()
	must(t, generate(root, out))
	for _, dir := range []string{"tombolo/files", "tombolo/crds", "tombolo-hub/files"} {
		want, got := contents(t, filepath.Join(out, dir)), contents(t, filepath.Join(root, "charts", dir))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("charts/%s is stale: run make generate (-want +got):\n%s", dir, diff)
		}
	}
}

// contents returns the files of a folder.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	must(t, err)
	all := map[string]string{}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		must(t, err)
		all[entry.Name()] = string(text)
	}
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
