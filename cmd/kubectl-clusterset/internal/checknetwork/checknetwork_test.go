// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package checknetwork

import (
	"bytes"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/workload"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/check"
)

// TestCheckNetworkImage: the pods of check-network run the image of the cluster's agent, or the release's if there is no agent.
func TestCheckNetworkImage(t *testing.T) {
	agent, devel := runs("r.example/tombolo-agent:v1.0.0"), workload.Build{Version: "dev", Registry: "r.example"}
	for name, test := range map[string]struct {
		command command
		member  survey.Member
		want    string
	}{
		"an agent":                 {command{build: devel}, survey.Member{Agent: agent}, "r.example/tombolo-agent:v1.0.0"},
		"an agent, a mirror":       {command{build: devel, imageRegistry: "m.example"}, survey.Member{Agent: agent}, "m.example/tombolo-agent:v1.0.0"},
		"an image":                 {command{build: release, image: "a:1", imageRegistry: "m.example"}, survey.Member{Agent: agent}, "a:1"},
		"no agent":                 {command{build: release}, survey.Member{}, "r.example/tombolo-agent:v2.0.0"},
		"no agent, a mirror":       {command{build: release, imageRegistry: "m.example"}, survey.Member{}, "m.example/tombolo-agent:v2.0.0"},
		"no agent, in development": {command{build: devel, imageRegistry: "m.example"}, survey.Member{}, ""},
	} {
		check.Equal(t, name, test.want, test.command.imageFor(&test.member))
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

// check-network says what the gateways of a cluster report of another. spec: G12
func TestPrintGateway(t *testing.T) {
	for want, reach := range map[string]survey.GatewayReach{
		"note  a -> b: they are in different networks, and a has no gateways":        {},
		"ok    a -> b: 2 gateways reach it":                                          {Installed: true, Known: true, Reached: 2},
		"note  a -> b: 1 of 2 gateways reach it; g2: connection refused":             {Installed: true, Known: true, Reached: 1, Unreached: 1, Message: "g2: connection refused"},
		"FAIL  a -> b: no gateway reaches it; g1: connection refused":                {Installed: true, Known: true, Unreached: 1, Message: "g1: connection refused"},
		"note  a -> b: the gateways of a do not know those of b":                     {Installed: true},
		"note  a -> b: not tried, because no service of b is imported through gatew": {Installed: true, Known: true},
	} {
		var out bytes.Buffer
		n := &command{r: &output.Report{Out: &out}}
		n.printGateway("a", "b", reach)
		if !strings.HasPrefix(strings.TrimSpace(out.String()), want) {
			t.Errorf("got %s, want %s", out.String(), want)
		}
	}
}
