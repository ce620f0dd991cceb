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
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// runtimeOptions select what runs in the member, for join and upgrade.
type runtimeOptions struct {
	build                                       Build
	profile, agentImage, dnsImage, gatewayImage string
	// imageRegistry has the images instead of the release's registry. registryGiven is whether a flag says so, not an earlier join.
	imageRegistry       string
	registryGiven       bool
	gateway, autoExport bool
	gatewayType         corev1.ServiceType
	// hub is the URL at which the agent reaches the hub; empty if it is unknown.
	hub string
	// running are the existing Deployments, by their names.
	running map[string]*appsv1.Deployment
	// gatewayService is the existing Service of the gateways, nil if there is none.
	gatewayService *corev1.Service
}

// component is a Deployment in the member.
type component struct {
	deployment, image, flag string
	given                   *string
	wanted                  bool
}

func (o *runtimeOptions) components() []component {
	return []component{
		{manifests.AgentDeployment, manifests.AgentImageName, agentImageFlag, &o.agentImage, true},
		{manifests.DNSDeployment, manifests.DNSImageName, dnsImageFlag, &o.dnsImage, o.parts() != manifests.AgentOnly},
		{manifests.GatewayDeployment, manifests.GatewayImageName, gatewayImageFlag, &o.gatewayImage, o.gateway},
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

	imageRegistryFlag = "--image-registry"
)

func (o *runtimeOptions) addRuntimeFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.profile, "profile", "", "what runs in the cluster: quickstart (one agent, and the DNS), production (two agents, the DNS, disruption budgets, network policies) or agent (no DNS); defaults to the present one, or "+defaultProfile)
	addImageRegistryFlag(flags, &o.imageRegistry, "; defaults to the registry of an earlier join, or of the release")
	flags.StringVar(&o.agentImage, agentImageFlag[2:], "", "image of the agent; defaults to the release's. A development build has none: set it")
	flags.StringVar(&o.dnsImage, dnsImageFlag[2:], "", "image of the DNS; defaults to the release's. A development build has none: set it")
	flags.StringVar(&o.gatewayImage, gatewayImageFlag[2:], "", "image of the gateways; defaults to the release's. A development build has none: set it")
}

func addImageRegistryFlag(flags *pflag.FlagSet, value *string, defaults string) {
	flags.StringVar(value, imageRegistryFlag[2:], "", "registry and path of all images, such as registry.example.com/team, if the nodes pull them from a mirror"+defaults)
}

func (o *runtimeOptions) validate() error {
	o.imageRegistry = strings.TrimSuffix(o.imageRegistry, "/")
	o.registryGiven = o.imageRegistry != ""
	if _, known := profiles[o.profile]; o.profile != "" && !known {
		return fmt.Errorf("--profile=%s: must be %s", o.profile, strings.Join(slices.Sorted(maps.Keys(profiles)), ", "))
	}
	return nil
}

// read reads what runs in the member.
func (o *runtimeOptions) read(ctx context.Context, c *cluster) error {
	o.running = map[string]*appsv1.Deployment{}
	for _, part := range o.components() {
		deployment := &appsv1.Deployment{}
		found, err := get(ctx, c, part.deployment, deployment)
		if err != nil {
			return err
		}
		if found {
			o.running[part.deployment] = deployment
		}
	}
	service := &corev1.Service{}
	found, err := get(ctx, c, clusterset.GatewayService, service)
	if found {
		o.gatewayService = service
	}
	return err
}

// get reads an object in the agent's namespace, and reports whether it exists.
func get(ctx context.Context, c *cluster, name string, object client.Object) (bool, error) {
	err := c.client.Get(ctx, client.ObjectKey{Namespace: manifests.AgentNamespace, Name: name}, object)
	if isAbsentKind(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("get %s %s of %s: %w", clusterset.KindOf(object), name, c.what, err)
	}
	return true, nil
}

// agent returns the agent's existing Deployment, nil if there is none.
func (o *runtimeOptions) agent() *appsv1.Deployment { return o.running[manifests.AgentDeployment] }

// setDefaults sets the profile and the hub's URL, unless they are set, from the existing agent, and the type of the gateways' Service
// from the existing one.
func (o *runtimeOptions) setDefaults() {
	if o.gatewayService != nil {
		o.gatewayType = cmp.Or(o.gatewayType, o.gatewayService.Spec.Type)
	}
	if agent := o.agent(); agent != nil {
		o.profile = cmp.Or(o.profile, agent.Annotations[annotationProfile])
		o.hub = cmp.Or(o.hub, agent.Spec.Template.Annotations[annotationHub])
		o.imageRegistry = cmp.Or(o.imageRegistry, agent.Annotations[annotationImageRegistry])
	}
}

// keepImages sets images that no flag sets from the existing Deployments. If a flag names another registry, the versions stay.
func (o *runtimeOptions) keepImages() {
	for _, part := range o.components() {
		running := o.running[part.deployment]
		if running == nil {
			continue
		}
		image := imageIn(running)
		if o.registryGiven {
			image = mirrored(image, o.imageRegistry, part.image)
		}
		*part.given = cmp.Or(*part.given, image)
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
	objects, err := manifests.Install(manifests.InstallOptions{
		Parts: o.parts(), Gateway: o.gateway, GatewayType: o.gatewayType, AutoExport: o.autoExport,
		AgentImage: o.agentImage, DNSImage: o.dnsImage, GatewayImage: o.gatewayImage, AgentArgs: agentArgs,
	})
	if err != nil {
		return nil, err
	}
	return objects, o.annotate(objects, cmp.Or(o.profile, defaultProfile))
}

// parts returns the parts of the profile.
func (o *runtimeOptions) parts() manifests.Parts { return profiles[cmp.Or(o.profile, defaultProfile)] }

// annotationProfile on the agent's Deployment stores the profile for the next join or upgrade.
const annotationProfile = "tombolo-mcs.io/profile"

// annotationImageRegistry on the agent's Deployment stores the registry of the images for the next join or upgrade.
const annotationImageRegistry = "tombolo-mcs.io/image-registry"

// annotationHub on the agent's pods is the URL of the hub. An agent reads its kubeconfig at start, so another URL must replace
// the pods.
const annotationHub = survey.AnnotationHub

// annotate stores the profile, the registry of the images and the hub's URL in annotations of the agent's Deployment.
func (o *runtimeOptions) annotate(objects []*unstructured.Unstructured, profile string) error {
	agent, err := agentDeployment(objects)
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
		{o.imageRegistry, []string{"metadata", "annotations", annotationImageRegistry}},
		{o.hub, []string{"spec", "template", "metadata", "annotations", annotationHub}},
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

// agentDeployment returns the agent's Deployment among the manifests.
func agentDeployment(objects []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for _, object := range objects {
		if object.GetKind() == "Deployment" && object.GetName() == manifests.AgentDeployment {
			return object, nil
		}
	}
	return nil, fmt.Errorf("the manifests have no Deployment %s", manifests.AgentDeployment)
}
