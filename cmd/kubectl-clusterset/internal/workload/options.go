// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workload renders what runs in a member: the agent, the DNS, the gateways, and the pods of checks.
package workload

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Options select what runs in the member, for join and upgrade.
type Options struct {
	Build                                       Build
	profile, AgentImage, dnsImage, gatewayImage string
	// ImageRegistry has the images instead of the release's registry. registryGiven is whether a flag says so, not an earlier join.
	ImageRegistry       string
	RegistryGiven       bool
	Gateway, AutoExport bool
	GatewayType         corev1.ServiceType
	// HubURL is the URL at which the agent reaches the hub; empty if it is unknown.
	HubURL string
	// Running are the existing Deployments, by their names.
	Running map[string]*appsv1.Deployment
	// GatewayService is the existing Service of the gateways, nil if there is none.
	GatewayService *corev1.Service
}

// Component is a Deployment in the member.
type Component struct {
	Deployment, Image, Flag string
	Given                   *string
	wanted                  bool
}

// Components returns the Deployments of a member, with the flags for their images.
func (o *Options) Components() []Component {
	return []Component{
		{manifests.AgentDeployment, manifests.AgentImageName, agentImageFlag, &o.AgentImage, true},
		{manifests.DNSDeployment, manifests.DNSImageName, dnsImageFlag, &o.dnsImage, o.parts() != manifests.AgentOnly},
		{manifests.GatewayDeployment, manifests.GatewayImageName, gatewayImageFlag, &o.gatewayImage, o.Gateway},
	}
}

var profiles = map[string]manifests.Parts{
	"agent":      manifests.AgentOnly,
	"quickstart": manifests.Quickstart,
	"production": manifests.Production,
}

const defaultProfile = "quickstart"

// Flags that appear in messages.
const (
	agentImageFlag   = "--agent-image"
	dnsImageFlag     = "--dns-image"
	gatewayImageFlag = "--gateway-image"

	ImageRegistryFlag = "--image-registry"
)

// AddRuntimeFlags adds the flags that select what runs in the member.
func (o *Options) AddRuntimeFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.profile, "profile", "", "what runs in the cluster: quickstart (one agent, and the DNS), production (two agents, the DNS, disruption budgets, network policies) or agent (no DNS); defaults to the present one, or "+defaultProfile)
	AddImageRegistryFlag(flags, &o.ImageRegistry, "; defaults to the registry of an earlier join, or of the release")
	flags.StringVar(&o.AgentImage, agentImageFlag[2:], "", "image of the agent; defaults to the release's. A development build has none: set it")
	flags.StringVar(&o.dnsImage, dnsImageFlag[2:], "", "image of the DNS; defaults to the release's. A development build has none: set it")
	flags.StringVar(&o.gatewayImage, gatewayImageFlag[2:], "", "image of the gateways; defaults to the release's. A development build has none: set it")
}

// AddImageRegistryFlag adds the flag for the registry of all images.
func AddImageRegistryFlag(flags *pflag.FlagSet, value *string, defaults string) {
	flags.StringVar(value, ImageRegistryFlag[2:], "", "registry and path of all images, such as registry.example.com/team, if the nodes pull them from a mirror"+defaults)
}

// Validate validates the flags.
func (o *Options) Validate() error {
	o.ImageRegistry = strings.TrimSuffix(o.ImageRegistry, "/")
	o.RegistryGiven = o.ImageRegistry != ""
	if _, known := profiles[o.profile]; o.profile != "" && !known {
		return fmt.Errorf("--profile=%s: must be %s", o.profile, strings.Join(slices.Sorted(maps.Keys(profiles)), ", "))
	}
	return nil
}

// Read reads what runs in the member.
func (o *Options) Read(ctx context.Context, c *connection.Cluster) error {
	o.Running = map[string]*appsv1.Deployment{}
	for _, part := range o.Components() {
		deployment := &appsv1.Deployment{}
		found, err := get(ctx, c, part.Deployment, deployment)
		if err != nil {
			return err
		}
		if found {
			o.Running[part.Deployment] = deployment
		}
	}
	service := &corev1.Service{}
	found, err := get(ctx, c, clusterset.GatewayService, service)
	if found {
		o.GatewayService = service
	}
	return err
}

// get reads an object in the agent's namespace, and reports whether it exists.
func get(ctx context.Context, c *connection.Cluster, name string, object client.Object) (bool, error) {
	err := c.Client.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: name}, object)
	if connection.IsAbsent(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get %s %s of %s: %w", clusterset.KindOf(object), name, c.What, err)
	}
	return true, nil
}

// Agent returns the agent's existing Deployment, nil if there is none.
func (o *Options) Agent() *appsv1.Deployment { return o.Running[manifests.AgentDeployment] }

// SetDefaults sets the profile and the hub's URL, unless they are set, from the existing agent, and the type of the gateways' Service
// from the existing one.
func (o *Options) SetDefaults() {
	if o.GatewayService != nil {
		o.GatewayType = cmp.Or(o.GatewayType, o.GatewayService.Spec.Type)
	}
	if agent := o.Agent(); agent != nil {
		o.profile = cmp.Or(o.profile, agent.Annotations[annotationProfile])
		o.HubURL = cmp.Or(o.HubURL, agent.Spec.Template.Annotations[AnnotationHub])
		o.ImageRegistry = cmp.Or(o.ImageRegistry, agent.Annotations[annotationImageRegistry])
	}
}

// KeepImages sets images that no flag sets from the existing Deployments. If a flag names another registry, the versions stay.
func (o *Options) KeepImages() {
	for _, part := range o.Components() {
		running := o.Running[part.Deployment]
		if running == nil {
			continue
		}
		image := ImageIn(running)
		if o.RegistryGiven {
			image = Mirrored(image, o.ImageRegistry, part.Image)
		}
		*part.Given = cmp.Or(*part.Given, image)
	}
}

// ImageIn returns the image of a Deployment's only container.
func ImageIn(d *appsv1.Deployment) string {
	for _, c := range d.Spec.Template.Spec.Containers {
		return c.Image
	}
	return ""
}

// render returns the objects that run in the member, its namespace first.
func (o *Options) render(agentArgs []string) ([]*unstructured.Unstructured, error) {
	objects, err := manifests.Install(manifests.InstallOptions{
		Parts: o.parts(), Gateway: o.Gateway, GatewayType: o.GatewayType, AutoExport: o.AutoExport,
		AgentImage: o.AgentImage, DNSImage: o.dnsImage, GatewayImage: o.gatewayImage, AgentArgs: agentArgs,
	})
	if err != nil {
		return nil, err
	}
	return objects, o.annotate(objects, cmp.Or(o.profile, defaultProfile))
}

// parts returns the parts of the profile.
func (o *Options) parts() manifests.Parts { return profiles[cmp.Or(o.profile, defaultProfile)] }

// annotationProfile on the agent's Deployment stores the profile for the next join or upgrade.
const annotationProfile = "tombolo-mcs.io/profile"

// annotationImageRegistry on the agent's Deployment stores the registry of the images for the next join or upgrade.
const annotationImageRegistry = "tombolo-mcs.io/image-registry"

// AnnotationHub on the agent's pods is the URL of the hub. An agent reads its kubeconfig at start, so another URL must replace
// the pods.
const AnnotationHub = survey.AnnotationHub

// annotate stores the profile, the registry of the images and the hub's URL in annotations of the agent's Deployment.
func (o *Options) annotate(objects []*unstructured.Unstructured, profile string) error {
	agent, err := AgentDeployment(objects)
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(agent.Object, profile, "metadata", "annotations", annotationProfile); err != nil {
		return fmt.Errorf("annotate Deployment %s: %w", manifests.AgentDeployment, err)
	}
	for _, optional := range []struct {
		value string
		path  []string
	}{
		{o.ImageRegistry, []string{"metadata", "annotations", annotationImageRegistry}},
		{o.HubURL, []string{"spec", "template", "metadata", "annotations", AnnotationHub}},
	} {
		if optional.value == "" {
			continue
		}
		if err := unstructured.SetNestedField(agent.Object, optional.value, optional.path...); err != nil {
			return fmt.Errorf("annotate Deployment %s: %w", manifests.AgentDeployment, err)
		}
	}
	return nil
}

// AutoExportFlag is a flag of join, and of the agent.
const AutoExportFlag = "auto-export"

// RunsAutoExport reports whether join has given the existing agent automatic export.
func (o *Options) RunsAutoExport() bool { return JoinArgument(o.Agent(), AutoExportFlag) != nil }

// annotationRelease is set by Helm on each object of a release.
const annotationRelease = "meta.helm.sh/release-name"

// InstalledBy returns what manages the objects in this cluster, if that is not this command: join then writes none of them, because the next
// "helm upgrade" or "kubectl apply" would be in conflict with it. It is empty if this command manages them, or if there is no agent.
func (o *Options) InstalledBy() string {
	agent := o.Agent()
	switch {
	case agent == nil:
		return ""
	case agent.Annotations[annotationRelease] != "":
		return fmt.Sprintf("Helm (release %s)", agent.Annotations[annotationRelease])
	case agent.Annotations[annotationProfile] == "":
		return "a kustomization, or another client than this command,"
	}
	return ""
}
