// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/manifests"
)

// TestCompleteImages: given and running images stay, a release adds its own, and a development build names the missing flags.
func TestCompleteImages(t *testing.T) {
	release, devel := Build{Version: "v1.2.3", Registry: "ghcr.io/tombolo-mcs"}, Build{Version: "devel"}
	const refusal = "this command is a development build (devel), for which no images were released: pass "
	const next = ` with an image that the nodes can pull ("make images" builds it)`
	for name, test := range map[string]struct {
		options    runtimeOptions
		agent, dns string
		err        string
	}{
		"release":                {runtimeOptions{build: release}, "ghcr.io/tombolo-mcs/tombolo-agent:v1.2.3", "ghcr.io/tombolo-mcs/tombolo-dns:v1.2.3", ""},
		"release, without DNS":   {runtimeOptions{build: release, profile: "agent"}, "ghcr.io/tombolo-mcs/tombolo-agent:v1.2.3", "", ""},
		"release, one given":     {runtimeOptions{build: release, agentImage: "a:1"}, "a:1", "ghcr.io/tombolo-mcs/tombolo-dns:v1.2.3", ""},
		"devel":                  {runtimeOptions{build: devel}, "", "", refusal + "--agent-image and --dns-image" + next},
		"devel, agent given":     {runtimeOptions{build: devel, agentImage: "a:1"}, "a:1", "", refusal + "--dns-image" + next},
		"devel, without DNS":     {runtimeOptions{build: devel, profile: "agent"}, "", "", refusal + "--agent-image" + next},
		"devel, all that it has": {runtimeOptions{build: devel, profile: "agent", agentImage: "a:1"}, "a:1", "", ""},
		"devel, with gateways":   {runtimeOptions{build: devel, gateway: true, agentImage: "a:1", dnsImage: "d:1"}, "a:1", "d:1", refusal + "--gateway-image" + next},
		"devel, both given":      {runtimeOptions{build: devel, agentImage: "a:1", dnsImage: "d:1"}, "a:1", "d:1", ""},
	} {
		text := ""
		if err := test.options.completeImages(); err != nil {
			text = err.Error()
		}
		got, want := []string{test.options.agentImage, test.options.dnsImage, text}, []string{test.agent, test.dns, test.err}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestUpgradeImages: upgrade replaces only images of a release, unless a flag names the image.
func TestUpgradeImages(t *testing.T) {
	runs := func(image string) *appsv1.Deployment {
		d := &appsv1.Deployment{}
		d.Spec.Template.Spec.Containers = []corev1.Container{{Image: image}}
		return d
	}
	release := Build{Version: "v2.0.0", Registry: "r.example"}
	for name, test := range map[string]struct {
		options    runtimeOptions
		agent, dns *appsv1.Deployment
		want       string
	}{
		"of a release": {runtimeOptions{build: release}, runs("r.example/tombolo-agent:v1.0.0"), runs("r.example/tombolo-dns:v1.0.0"), ""},
		"chosen": {
			runtimeOptions{build: release},
			runs("mine/agent:1"), runs("r.example/tombolo-dns:v1.0.0"),
			"  FAIL  the image mine/agent:1 of tombolo-agent is none of a release's: pass the newer one by --agent-image\n",
		},
		"development build": {
			runtimeOptions{build: Build{Version: "devel"}, agentImage: "mine/agent:2"},
			runs("mine/agent:1"), runs("mine/dns:1"),
			"  FAIL  this command is a development build (devel), for which no images were released: pass --dns-image with an image that the nodes can pull " +
				"(\"make images\" builds it)\n",
		},
	} {
		var out bytes.Buffer
		u := &upgradeCommand{runtimeOptions: test.options, r: &report{out: &out}}
		u.running = map[string]*appsv1.Deployment{manifests.AgentDeployment: test.agent, manifests.DNSDeployment: test.dns}
		u.checkImages()
		if diff := cmp.Diff(test.want, out.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
