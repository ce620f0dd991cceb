// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/manifests"
)

// runtimeOptions select what runs in the member, for join and upgrade.
type runtimeOptions struct {
	build                         Build
	profile, agentImage, dnsImage string
	// hub is the URL at which the agent reaches the hub; empty if it is unknown.
	hub string
	// running is the agent's existing Deployment, nil if there is none.
	running *appsv1.Deployment
}

var profiles = map[string]manifests.Parts{
	"agent":      manifests.AgentOnly,
	"quickstart": manifests.Quickstart,
	"production": manifests.Production,
}

const defaultProfile = "quickstart"

// Flags that appear in messages.
const (
	agentImageFlag = "--agent-image"
	dnsImageFlag   = "--dns-image"
)

func (o *runtimeOptions) addRuntimeFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.profile, "profile", "", "what runs in the cluster: quickstart (one agent, and the DNS), production (two agents, the DNS, disruption budgets, network policies) or agent (no DNS); defaults to the present one, or "+defaultProfile)
	flags.StringVar(&o.agentImage, agentImageFlag[2:], "", "image of the agent; defaults to this release's image. A development build has none: set it")
	flags.StringVar(&o.dnsImage, dnsImageFlag[2:], "", "image of the DNS; defaults to this release's image. A development build has none: set it")
}

func (o *runtimeOptions) validate() error {
	if _, known := profiles[o.profile]; o.profile != "" && !known {
		return fmt.Errorf("--profile=%s: must be %s", o.profile, strings.Join(slices.Sorted(maps.Keys(profiles)), ", "))
	}
	return nil
}

// installed returns an existing Deployment of Tombolo, nil if there is none.
func installed(ctx context.Context, c *cluster, name string) (*appsv1.Deployment, error) {
	result := &appsv1.Deployment{}
	err := c.client.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: name}, result)
	if isAbsentKind(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get Deployment %s of %s: %w", name, c.what, err)
	}
	return result, nil
}

// setDefaults sets the options that no flag sets from the existing Deployments.
func (o *runtimeOptions) setDefaults(agent, dns *appsv1.Deployment) {
	if agent == nil {
		return
	}
	o.running = agent
	if o.profile == "" {
		o.profile = agent.Annotations[annotationProfile]
	}
	if o.agentImage == "" {
		o.agentImage = imageIn(agent)
	}
	if o.hub == "" {
		o.hub = agent.Spec.Template.Annotations[annotationHub]
	}
	if o.dnsImage == "" && dns != nil {
		o.dnsImage = imageIn(dns)
	}
}

// imageIn returns the image of a Deployment's only container.
func imageIn(d *appsv1.Deployment) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		return c.Image
	}
	return ""
}

// render returns the objects that run in the member, its namespace first.
func (o *runtimeOptions) render(agentArgs []string) ([]*unstructured.Unstructured, error) {
	objects, err := manifests.Install(manifests.InstallOptions{Parts: o.parts(), AgentImage: o.agentImage, DNSImage: o.dnsImage, AgentArgs: agentArgs})
	if err != nil {
		return nil, err
	}
	return objects, o.annotate(objects, cmp.Or(o.profile, defaultProfile))
}

// parts returns the parts of the profile.
func (o *runtimeOptions) parts() manifests.Parts { return profiles[cmp.Or(o.profile, defaultProfile)] }

// annotationProfile on the agent's Deployment stores the profile for the next join or upgrade.
const annotationProfile = "tombolo-mcs.io/profile"

// annotationHub on the agent's pods is the URL of the hub. An agent reads its kubeconfig at start, so another URL must replace
// the pods.
const annotationHub = "tombolo-mcs.io/hub"

// annotate stores the profile and the hub's URL in annotations of the agent's Deployment.
func (o *runtimeOptions) annotate(objects []*unstructured.Unstructured, profile string) error {
	agent, err := agentDeployment(objects)
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(agent.Object, profile, "metadata", "annotations", annotationProfile); err != nil {
		return fmt.Errorf("annotate Deployment %s: %w", manifests.AgentDeployment, err)
	}
	if o.hub == "" {
		return nil
	}
	if err := unstructured.SetNestedField(agent.Object, o.hub, "spec", "template", "metadata", "annotations", annotationHub); err != nil {
		return fmt.Errorf("annotate Deployment %s: %w", manifests.AgentDeployment, err)
	}
	return nil
}

// agentDeployment returns the agent's Deployment among the manifests.
func agentDeployment(objects []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for _, object := range objects {
		if object.GetKind() == "Deployment" && object.GetName() == manifests.AgentDeployment {
			return object, nil
		}
	}
	return nil, fmt.Errorf("the manifests have no Deployment %s", manifests.AgentDeployment)
}
