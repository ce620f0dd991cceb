// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"bytes"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/workload"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// TestUpgradeImages: upgrade replaces only images of a release, unless a flag names the image.
func TestUpgradeImages(t *testing.T) {
	for name, test := range map[string]struct {
		options    workload.Options
		agent, dns *appsv1.Deployment
		want       string
	}{
		"of a release": {workload.Options{Build: release}, runs("r.example/tombolo-agent:v1.0.0"), runs("r.example/tombolo-dns:v1.0.0"), ""},
		"chosen": {
			workload.Options{Build: release},
			runs("mine/agent:1"), runs("r.example/tombolo-dns:v1.0.0"),
			"  FAIL  the image mine/agent:1 of tombolo-agent is not from r.example: pass --image-registry if that registry has the release's images, " +
				"or the newer image by --agent-image\n",
		},
		"another mirror": {
			workload.Options{Build: release, ImageRegistry: "m.example", RegistryGiven: true},
			runs("r.example/tombolo-agent:v1.0.0"), runs("mine/dns:1"), "",
		},
		"the mirror of join": {
			workload.Options{Build: release, ImageRegistry: "m.example"},
			runs("m.example/tombolo-agent:v1.0.0"), runs("r.example/tombolo-dns:v1.0.0"),
			"  FAIL  the image r.example/tombolo-dns:v1.0.0 of tombolo-dns is not from m.example: pass --image-registry if that registry has the release's images, " +
				"or the newer image by --dns-image\n",
		},
		"development build": {
			workload.Options{Build: workload.Build{Version: "dev"}, AgentImage: "mine/agent:2"},
			runs("mine/agent:1"), runs("mine/dns:1"),
			"  FAIL  this command is a development build (dev), for which no images were published, so it cannot know their names: pass --dns-image with an image that the nodes can pull " +
				"(\"make images\" builds it)\n",
		},
	} {
		var out bytes.Buffer
		u := &command{Options: test.options, r: &output.Report{Out: &out}}
		u.Running = map[string]*appsv1.Deployment{manifests.AgentDeployment: test.agent, manifests.DNSDeployment: test.dns}
		u.checkImages()
		check.Equal(t, name, test.want, out.String())
	}
}

// release is a build that the tests of images use.
var release = workload.Build{Version: "v2.0.0", Registry: "r.example"}

// runs returns a Deployment of an image.
func runs(image string) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Spec.Template.Spec.Containers = []corev1.Container{{Image: image}}
	return d
}
