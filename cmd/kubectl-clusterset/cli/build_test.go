// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// TestCompleteImages: given and running images stay, a release adds its own, and a development build names the missing flags.
func TestCompleteImages(t *testing.T) {
	release, devel := Build{Version: "v1.2.3", Registry: "ghcr.io/tombolo-mcs"}, Build{Version: "dev", Registry: "ghcr.io/tombolo-mcs"}
	const refusal = "this command is a development build (dev), for which no images were published, so it cannot know their names: pass "
	const next = ` with an image that the nodes can pull ("make images" builds it)`
	for name, test := range map[string]struct {
		options    runtimeOptions
		agent, dns string
		err        string
	}{
		"release":                {runtimeOptions{build: release}, "ghcr.io/tombolo-mcs/tombolo-agent:v1.2.3", "ghcr.io/tombolo-mcs/tombolo-dns:v1.2.3", ""},
		"release, without DNS":   {runtimeOptions{build: release, profile: "agent"}, "ghcr.io/tombolo-mcs/tombolo-agent:v1.2.3", "", ""},
		"release, mirror":        {runtimeOptions{build: release, imageRegistry: "r.example/m", dnsImage: "d:1"}, "r.example/m/tombolo-agent:v1.2.3", "d:1", ""},
		"devel, mirror":          {runtimeOptions{build: devel, imageRegistry: "r.example/m", profile: "agent"}, "", "", refusal + "--agent-image" + next},
		"release, one given":     {runtimeOptions{build: release, agentImage: "a:1"}, "a:1", "ghcr.io/tombolo-mcs/tombolo-dns:v1.2.3", ""},
		"dev":                    {runtimeOptions{build: devel}, "", "", refusal + "--agent-image and --dns-image" + next},
		"devel, agent given":     {runtimeOptions{build: devel, agentImage: "a:1"}, "a:1", "", refusal + "--dns-image" + next},
		"devel, without DNS":     {runtimeOptions{build: devel, profile: "agent"}, "", "", refusal + "--agent-image" + next},
		"devel, all that it has": {runtimeOptions{build: devel, profile: "agent", agentImage: "a:1"}, "a:1", "", ""},
		"devel, with gateways":   {runtimeOptions{build: devel, gateway: true, agentImage: "a:1", dnsImage: "d:1"}, "a:1", "d:1", refusal + "--gateway-image" + next},
		"devel, both given":      {runtimeOptions{build: devel, agentImage: "a:1", dnsImage: "d:1"}, "a:1", "d:1", ""},
	} {
		text := check.Message(test.options.completeImages())
		got, want := []string{test.options.agentImage, test.options.dnsImage, text}, []string{test.agent, test.dns, test.err}
		check.Equal(t, name, want, got)
	}
}

// release is a build that the tests of images use.
var release = Build{Version: "v2.0.0", Registry: "r.example"}

// runs returns a Deployment of an image.
func runs(image string) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Image: image}}
	return d
}

// TestUpgradeImages: upgrade replaces only images of a release, unless a flag names the image.
func TestUpgradeImages(t *testing.T) {
	for name, test := range map[string]struct {
		options    runtimeOptions
		agent, dns *appsv1.Deployment
		want       string
	}{
		"of a release": {runtimeOptions{build: release}, runs("r.example/tombolo-agent:v1.0.0"), runs("r.example/tombolo-dns:v1.0.0"), ""},
		"chosen": {
			runtimeOptions{build: release},
			runs("mine/agent:1"), runs("r.example/tombolo-dns:v1.0.0"),
			"  FAIL  the image mine/agent:1 of tombolo-agent is not from r.example: pass --image-registry if that registry has the release's images, " +
				"or the newer image by --agent-image\n",
		},
		"another mirror": {
			runtimeOptions{build: release, imageRegistry: "m.example", registryGiven: true},
			runs("r.example/tombolo-agent:v1.0.0"), runs("mine/dns:1"), "",
		},
		"the mirror of join": {
			runtimeOptions{build: release, imageRegistry: "m.example"},
			runs("m.example/tombolo-agent:v1.0.0"), runs("r.example/tombolo-dns:v1.0.0"),
			"  FAIL  the image r.example/tombolo-dns:v1.0.0 of tombolo-dns is not from m.example: pass --image-registry if that registry has the release's images, " +
				"or the newer image by --dns-image\n",
		},
		"development build": {
			runtimeOptions{build: Build{Version: "dev"}, agentImage: "mine/agent:2"},
			runs("mine/agent:1"), runs("mine/dns:1"),
			"  FAIL  this command is a development build (dev), for which no images were published, so it cannot know their names: pass --dns-image with an image that the nodes can pull " +
				"(\"make images\" builds it)\n",
		},
	} {
		var out bytes.Buffer
		u := &upgradeCommand{runtimeOptions: test.options, r: &report{out: &out}}
		u.running = map[string]*appsv1.Deployment{manifests.AgentDeployment: test.agent, manifests.DNSDeployment: test.dns}
		u.checkImages()
		check.Equal(t, name, test.want, out.String())
	}
}

// TestKeepImages: existing images stay. With another registry, the project's own keep their version, and others are replaced.
func TestKeepImages(t *testing.T) {
	for running, want := range map[string][2]string{ // without and with --image-registry=m.example:5000/x
		"r.example/tombolo-agent:v1.0.0":      {"r.example/tombolo-agent:v1.0.0", "m.example:5000/x/tombolo-agent:v1.0.0"},
		"tombolo-agent":                       {"tombolo-agent", "m.example:5000/x/tombolo-agent"},
		"r.example:1/tombolo-agent@sha256:ab": {"r.example:1/tombolo-agent@sha256:ab", "m.example:5000/x/tombolo-agent@sha256:ab"},
		"r.example/agent:v1":                  {"r.example/agent:v1", "m.example:5000/x/tombolo-agent:v2.0.0"},
	} {
		for i, registry := range []string{"", "m.example:5000/x/"} {
			o := runtimeOptions{build: release, imageRegistry: registry, profile: "agent"}
			o.running = map[string]*appsv1.Deployment{manifests.AgentDeployment: runs(running)}
			check.Must(t, o.validate())
			o.keepImages()
			if err := o.completeImages(); err != nil || o.agentImage != want[i] {
				t.Errorf("%s with registry %q: %s, %v, want %s", running, registry, o.agentImage, err, want[i])
			}
		}
	}
}

// TestCheckNetworkImage: the pods of check-network run the image of the cluster's agent, or the release's if there is no agent.
func TestCheckNetworkImage(t *testing.T) {
	agent, devel := runs("r.example/tombolo-agent:v1.0.0"), Build{Version: "dev", Registry: "r.example"}
	for name, test := range map[string]struct {
		command checkNetworkCommand
		member  survey.Member
		want    string
	}{
		"an agent":                 {checkNetworkCommand{build: devel}, survey.Member{Agent: agent}, "r.example/tombolo-agent:v1.0.0"},
		"an agent, a mirror":       {checkNetworkCommand{build: devel, imageRegistry: "m.example"}, survey.Member{Agent: agent}, "m.example/tombolo-agent:v1.0.0"},
		"an image":                 {checkNetworkCommand{build: release, image: "a:1", imageRegistry: "m.example"}, survey.Member{Agent: agent}, "a:1"},
		"no agent":                 {checkNetworkCommand{build: release}, survey.Member{}, "r.example/tombolo-agent:v2.0.0"},
		"no agent, a mirror":       {checkNetworkCommand{build: release, imageRegistry: "m.example"}, survey.Member{}, "m.example/tombolo-agent:v2.0.0"},
		"no agent, in development": {checkNetworkCommand{build: devel, imageRegistry: "m.example"}, survey.Member{}, ""},
	} {
		check.Equal(t, name, test.want, test.command.imageFor(&test.member))
	}
}
