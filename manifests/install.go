// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Parts selects what runs in a member cluster. Each value is a kustomization of this directory.
type Parts string

// Values of Parts.
const (
	// AgentOnly is one agent. The cluster's own DNS must serve the names of the clusterset.
	AgentOnly Parts = "agent"
	// Quickstart is one agent and the DNS.
	Quickstart Parts = "overlays/quickstart"
	// Production is two agents on two nodes, the DNS, disruption budgets and network policies.
	Production Parts = "overlays/production"
)

// InstallOptions select what runs in a member cluster, and its images.
type InstallOptions struct {
	Parts Parts
	// Gateway adds gateways. Their Service has the type GatewayType, or LoadBalancer if that is empty.
	Gateway     bool
	GatewayType corev1.ServiceType
	// AutoExport adds automatic export: the flag of the agent and its rights.
	AutoExport bool
	// AgentImage, DNSImage and GatewayImage are image references. If empty, those of CurrentRelease are used.
	AgentImage, DNSImage, GatewayImage string
	// AgentArgs are added to the agent's command line.
	AgentArgs []string
}

// Install returns the objects to create in a member cluster.
func Install(o InstallOptions) ([]*unstructured.Unstructured, error) {
	kustomization := types.Kustomization{
		TypeMeta:  types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		Resources: []string{"../../" + string(o.Parts)},
	}
	if o.Gateway {
		kustomization.Resources = append(kustomization.Resources, "../../"+gatewayParts)
		if o.GatewayType != "" {
			kustomization.Patches = append(kustomization.Patches, serviceType(o.GatewayType))
		}
	}
	if o.AutoExport {
		kustomization.Components = append(kustomization.Components, "../../autoexport")
	}
	release, err := CurrentRelease()
	if err != nil {
		return nil, err
	}
	for name, reference := range map[string]string{AgentImageName: o.AgentImage, DNSImageName: o.DNSImage, GatewayImageName: o.GatewayImage} {
		if reference != "" {
			kustomization.Images = append(kustomization.Images, imageOf(release.Registry+"/"+name, reference))
		}
	}
	if len(o.AgentArgs) > 0 {
		patch, err := appendArgs(o.AgentArgs)
		if err != nil {
			return nil, err
		}
		kustomization.Patches = append(kustomization.Patches, patch)
	}
	content, err := yaml.Marshal(kustomization)
	if err != nil {
		return nil, err
	}
	objects, err := render("overlays/rendered", map[string][]byte{"overlays/rendered/kustomization.yaml": content})
	if err != nil {
		return nil, fmt.Errorf("manifests: %s: %w", o.Parts, err)
	}
	return objects, nil
}

// gatewayParts is the kustomization of the gateways.
const gatewayParts = "gateway"

// Gateway returns the objects that run gateways in a member, without their kinds.
func Gateway() ([]*unstructured.Unstructured, error) {
	objects, err := Render(gatewayParts)
	return slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == "CustomResourceDefinition" }), err
}

// AutoExportRights returns the rights that the agent has only for automatic export.
func AutoExportRights() ([]*unstructured.Unstructured, error) { return Render("autoexport/rights") }

// serviceType returns a patch of the type of the gateways' Service.
func serviceType(to corev1.ServiceType) types.Patch {
	service := resid.NewResId(resid.NewGvk("", "v1", "Service"), clusterset.GatewayService)
	return types.Patch{
		Patch:  `[{"op": "replace", "path": "/spec/type", "value": "` + string(to) + `"}]`,
		Target: &types.Selector{ResId: service},
	}
}

// imageOf returns the replacement of an image by a reference: name[:tag][@digest], and the name may have a port.
func imageOf(name, reference string) types.Image {
	image := types.Image{Name: name}
	reference, image.Digest, _ = strings.Cut(reference, "@")
	if i := strings.LastIndex(reference, ":"); i > strings.LastIndex(reference, "/") {
		reference, image.NewTag = reference[:i], reference[i+1:]
	}
	image.NewName = reference
	return image
}

func appendArgs(args []string) (types.Patch, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value string `json:"value"`
	}
	var operations []operation
	for _, arg := range args {
		operations = append(operations, operation{"add", "/spec/template/spec/containers/0/args/-", arg})
	}
	patch, err := json.Marshal(operations)
	agent := resid.NewResId(resid.NewGvk("apps", "v1", "Deployment"), "tombolo-agent")
	return types.Patch{Patch: string(patch), Target: &types.Selector{ResId: agent}}, err
}
