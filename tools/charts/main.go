// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Command charts writes the files of the Helm charts that come from the kustomizations: files/ and crds/ of each chart, below -out.
// The templates include these files, and change only what a value sets. "make generate" runs it.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/resource"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	root := flag.String("root", "../..", "the repository's root")
	out := flag.String("out", "../../charts", "folder of the charts")
	flag.Parse()
	if err := generate(*root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "charts:", err)
		os.Exit(1)
	}
}

// completeName is the line with the image of a container.
var completeName = regexp.MustCompile(`image: \S+/(tombolo-[a-z]+):\S+\n`)

// hubTokens is the policy of the hub that a value changes.
const hubTokens = "tokens.hub.tombolo-mcs.io"

// file is a file of a chart: the objects of a kustomization that it selects.
type file struct {
	name, kustomization string
	selects             func(*resource.Resource) bool
}

// files returns the files of the charts. Each object of a kustomization is in one of them, except the namespace, which
// "helm install --create-namespace" creates.
func files() []file {
	all := func(*resource.Resource) bool { return true }
	kind := func(kind string) func(*resource.Resource) bool {
		return func(r *resource.Resource) bool { return r.GetKind() == kind }
	}
	without := func(kinds ...string) func(*resource.Resource) bool {
		return func(r *resource.Resource) bool { return !slices.Contains(kinds, r.GetKind()) }
	}
	named := func(name string) func(*resource.Resource) bool {
		return func(r *resource.Resource) bool { return r.GetName() == name }
	}
	deployment := func(name string) func(*resource.Resource) bool {
		return func(r *resource.Resource) bool { return r.GetKind() == "Deployment" && r.GetName() == name }
	}
	const quickstart, production = "overlays/quickstart", "overlays/production"
	const crd = "CustomResourceDefinition"
	return []file{
		{"tombolo-hub/files/crds.yaml", "hub", kind(crd)},
		{"tombolo-hub/files/hub.yaml", "hub", func(r *resource.Resource) bool { return !isTokenPolicy(r) && without(crd)(r) }},
		{"tombolo-hub/files/policy-tokens.yaml", "hub", isTokenPolicy},
		{"tombolo/files/crds.yaml", "agent", kind(crd)},
		{"tombolo/files/crds-gateway.yaml", "gateway", kind(crd)},
		{"tombolo/files/agent.yaml", "agent", func(r *resource.Resource) bool {
			return r.GetName() != "tombolo-export" && without("Namespace", "Deployment", crd)(r)
		}},
		{"tombolo/files/export-rights.yaml", "agent", named("tombolo-export")},
		{"tombolo/files/deployment-agent.yaml", quickstart, deployment("tombolo-agent")},
		{"tombolo/files/deployment-agent-production.yaml", production, deployment("tombolo-agent")},
		{"tombolo/files/dns.yaml", "dns/plugin", without("Deployment", "Service")},
		{"tombolo/files/service-dns.yaml", "dns/plugin", kind("Service")},
		{"tombolo/files/deployment-dns.yaml", quickstart, deployment("tombolo-dns")},
		{"tombolo/files/deployment-dns-production.yaml", production, deployment("tombolo-dns")},
		{"tombolo/files/production.yaml", production, func(r *resource.Resource) bool {
			return slices.Contains([]string{"PodDisruptionBudget", "NetworkPolicy"}, r.GetKind())
		}},
		{"tombolo/files/gateway.yaml", "gateway", without("Deployment", "Service", crd)},
		{"tombolo/files/deployment-gateway.yaml", "gateway", kind("Deployment")},
		{"tombolo/files/service-gateway.yaml", "gateway", kind("Service")},
		{"tombolo/files/egress-agent.yaml", "egress", named("tombolo-agent-egress")},
		{"tombolo/files/egress-gateway.yaml", "egress", named("tombolo-gateway-egress")},
		{"tombolo/files/monitoring-agent.yaml", "monitoring/agent", all},
		{"tombolo/files/monitoring-dns.yaml", "monitoring/dns", all},
		{"tombolo/files/monitoring-gateway.yaml", "monitoring/gateway", all},
		{"tombolo/files/monitoring.yaml", "monitoring", kind("ConfigMap")},
		// Helm creates what is in crds, and never changes or deletes it: other versions of these kinds stay.
		{"tombolo/crds/mcs.yaml", "crd/mcs", all},
		{"tombolo/crds/clusterproperties.yaml", "crd", func(r *resource.Resource) bool {
			return r.GetName() == "clusterproperties.about.k8s.io"
		}},
	}
}

// isInCRDs reports whether Helm creates the objects of the file once, and never deletes them.
func (f file) isInCRDs() bool { return path.Base(path.Dir(f.name)) == "crds" }

func isTokenPolicy(r *resource.Resource) bool {
	return r.GetKind() == "ValidatingAdmissionPolicy" && r.GetName() == hubTokens
}

// generate writes the files.
func generate(root, out string) error {
	for _, f := range files() {
		rendered, err := render(root, f.kustomization)
		if err != nil {
			return err
		}
		text, err := f.write(rendered)
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		name := filepath.Join(out, f.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // sources
			return err
		}
		if err := os.WriteFile(name, text, 0o644); err != nil { //nolint:gosec // a source
			return err
		}
	}
	return nil
}

// render returns the objects of a kustomization, in the order in which kubectl applies them.
func render(root, kustomization string) (resmap.ResMap, error) {
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy
	rendered, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), filepath.Join(root, "manifests", kustomization))
	if err != nil {
		return nil, fmt.Errorf("render manifests/%s: %w", kustomization, err)
	}
	return rendered, nil
}

// write returns the selected objects as YAML. Helm must not delete a CRD of a template when it uninstalls a chart, because the objects
// of users would be deleted with it.
func (f file) write(rendered resmap.ResMap) ([]byte, error) {
	text := bytes.NewBufferString("# Written by \"make generate\" from manifests/" + f.kustomization + ": change it there.\n")
	found := 0
	for _, r := range rendered.Resources() {
		if !f.selects(r) {
			continue
		}
		if r.GetKind() == "CustomResourceDefinition" && !f.isInCRDs() {
			annotations := r.GetAnnotations()
			annotations["helm.sh/resource-policy"] = "keep"
			if err := r.SetAnnotations(annotations); err != nil {
				return nil, err
			}
		}
		object, err := r.AsYAML()
		if err != nil {
			return nil, err
		}
		// The templates complete the names of images, so that a release changes Chart.yaml and none of these files.
		object = completeName.ReplaceAll(object, []byte("image: $1\n"))
		found++
		if found > 1 {
			text.WriteString("---\n")
		}
		text.Write(object)
	}
	if found == 0 {
		return nil, fmt.Errorf("no object of manifests/%s is selected", f.kustomization)
	}
	return text.Bytes(), nil
}
