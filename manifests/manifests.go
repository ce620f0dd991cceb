// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manifests embeds the kustomizations of this directory and renders them, without a file system and without an installed
// kustomize. It returns the objects that "kubectl apply -k" would send, in the same order.
package manifests

import (
	"embed"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

//go:embed agent autoexport crd dns egress gateway hub images member metrics-auth monitoring overlays
var files embed.FS

// Names of the objects in a member cluster.
const (
	AgentNamespace      = "tombolo-system"
	AgentServiceAccount = "tombolo-agent"
	AgentDeployment     = "tombolo-agent"
	// HubSecret has the credentials for the hub. The agent's Deployment mounts it.
	HubSecret = "tombolo-hub"
	// DNSService is the Service to which the cluster's own DNS forwards clusterset.local, and DNSDeployment is its Deployment.
	DNSService    = "tombolo-dns"
	DNSDeployment = "tombolo-dns"
	// GatewayDeployment runs the gateways.
	GatewayDeployment = "tombolo-gateway"
)

// Hub returns the objects that make an API server the hub of a clusterset, for all members. audiences are those of the API server:
// members may request tokens only for these. If there are none, audiences are not restricted.
func Hub(audiences ...string) ([]*unstructured.Unstructured, error) {
	objects, err := Render("hub")
	if err != nil || len(audiences) == 0 {
		return objects, err
	}
	quoted := make([]string, len(audiences))
	for i, audience := range audiences {
		quoted[i] = strconv.QuoteToASCII(audience)
	}
	variable := map[string]any{"name": "audiences", "expression": "[" + strings.Join(quoted, ", ") + "]"}
	for _, object := range objects {
		if object.GetKind() == "ValidatingAdmissionPolicy" && object.GetName() == tokensPolicy {
			return objects, unstructured.SetNestedSlice(object.Object, []any{variable}, "spec", "variables")
		}
	}
	return nil, fmt.Errorf("manifests: there is no policy %s", tokensPolicy)
}

// tokensPolicy is the admission policy for the tokens that members request.
const tokensPolicy = "tokens.hub.tombolo-mcs.io"

// MemberDefinitions returns the CRDs that a cluster needs before it joins: those of the Multi-Cluster Services API, as released
// upstream, and ClusterProperty.
func MemberDefinitions() ([]*unstructured.Unstructured, error) {
	definitions, err := Render("crd/mcs")
	if err != nil {
		return nil, err
	}
	own, err := Render("crd")
	if err != nil {
		return nil, err
	}
	for _, object := range own {
		if object.GetName() == clusterProperties {
			definitions = append(definitions, object)
		}
	}
	return definitions, nil
}

// clusterProperties is the name of the CRD of ClusterProperty (KEP-2149).
const clusterProperties = "clusterproperties.about.k8s.io"

// Render returns the objects of a kustomization of this directory, such as "hub", in the order in which they can be created.
func Render(kustomization string) ([]*unstructured.Unstructured, error) {
	return render(kustomization, nil)
}

// render adds files to the tree, by their paths, before it renders a kustomization.
func render(kustomization string, added map[string][]byte) ([]*unstructured.Unstructured, error) {
	tree, err := load(added)
	if err != nil {
		return nil, fmt.Errorf("manifests: %w", err)
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // as kubectl does
	resources, err := krusty.MakeKustomizer(options).Run(tree, kustomization)
	if err != nil {
		return nil, fmt.Errorf("manifests: rendering %s: %w", kustomization, err)
	}
	objects := make([]*unstructured.Unstructured, 0, resources.Size())
	for _, resource := range resources.Resources() {
		content, err := resource.MarshalJSON()
		if err != nil {
			return nil, fmt.Errorf("manifests: %s: %w", resource.CurId(), err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(content); err != nil {
			return nil, fmt.Errorf("manifests: %s: %w", resource.CurId(), err)
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// load returns an in-memory file system with the tree and the added files: kustomize requires one that it can write to.
func load(added map[string][]byte) (filesys.FileSystem, error) {
	tree := filesys.MakeFsInMemory()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		return tree.WriteFile(path, content)
	})
	if err != nil {
		return nil, err
	}
	for path, content := range added {
		if err := tree.WriteFile(path, content); err != nil {
			return nil, err
		}
	}
	return tree, nil
}
