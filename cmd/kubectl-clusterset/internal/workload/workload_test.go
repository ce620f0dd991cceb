// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// TestCarryOver: arguments of other users stay in place, those that join and upgrade set follow them.
func TestCarryOver(t *testing.T) {
	for name, test := range map[string]struct{ ours, running, before, line, kept string }{
		"first time":                      {"--a=1 --b=2", "", "", "--a=1 --b=2", ""},
		"nothing changed":                 {"--a=1 --b=2", "--a=1 --b=2", "--a=1 --b=2", "--a=1 --b=2", ""},
		"added":                           {"--a=1", "--a=1 --v=2", "--a=1", "--a=1 --v=2", "--v=2"},
		"added before ours":               {"--a=1", "--v=2 --a=1", "--a=1", "--v=2 --a=1", "--v=2"},
		"added twice":                     {"--a=1", "--a=1 --v=2 --v=3", "--a=1", "--a=1 --v=2 --v=3", "--v=2|--v=3"},
		"added, the value an element":     {"--a=1", "--a=1 --deny x -v 2", "--a=1", "--a=1 --deny x -v 2", "--deny x|-v 2"},
		"changed":                         {"--a=1 --b=2", "--a=9 --b=2", "--a=1 --b=2", "--a=9 --b=2", "--a=9"},
		"changed by a second one":         {"--a=1", "--a=1 --a=9", "--a=1", "--a=1 --a=9", "--a=9"},
		"changed to what is ours now":     {"--a=9", "--a=9", "--a=1", "--a=9", ""},
		"removed":                         {"--a=1 --b=2", "--b=2", "--a=1 --b=2", "--b=2 --a=1", ""},
		"ours changes":                    {"--a=2 --b=2", "--v=2 --a=1 --b=2", "--a=1 --b=2", "--v=2 --a=2 --b=2", "--v=2"},
		"ours goes":                       {"--b=2", "--a=1 --b=2 --v=2", "--a=1 --b=2", "--b=2 --v=2", "--v=2"},
		"ours comes":                      {"--a=1 --new=1", "--a=1 --v=2", "--a=1", "--a=1 --v=2 --new=1", "--v=2"},
		"ours comes, added before":        {"--a=1 --v=1", "--a=1 --v=2", "--a=1", "--a=1 --v=2", "--v=2"},
		"it is unknown what was ours":     {"--a=1 --b=2", "--a=9 --v=2", "", "--a=1 --v=2 --b=2", "--v=2"},
		"ranges of Services change":       {"--a=1 --service-cidrs=r", "--a=1 --service-cidrs=q --v=2", "--a=1 --service-cidrs=p", "--a=1 --service-cidrs=r --v=2", "--v=2"},
		"ranges of Services go":           {"--a=1", "--a=1 --service-cidrs=p", "--a=1 --service-cidrs=p", "--a=1", ""},
		"ranges of Services, not by join": {"--a=1", "--a=1 --service-cidrs=p", "--a=1", "--a=1 --service-cidrs=p", "--service-cidrs=p"},
	} {
		t.Run(name, func(t *testing.T) {
			var before []string
			if test.before != "" {
				before = strings.Fields(test.before)
			}
			line, kept := combineArguments(strings.Fields(test.ours), strings.Fields(test.running), before)
			check.Equal(t, "the agent runs with", test.line, strings.Join(line, " "))
			check.Equal(t, "kept", test.kept, strings.Join(kept, "|"))
		})
	}
}

// running returns the agent's Deployment among the objects, as stored by an API server, with its arguments changed.
func running(t *testing.T, objects []*unstructured.Unstructured, change func(args []string) []string) *appsv1.Deployment {
	t.Helper()
	object, err := AgentDeployment(objects)
	check.Must(t, err)
	result := &appsv1.Deployment{}
	check.Must(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, result))
	container := &result.Spec.Template.Spec.Containers[0]
	container.Args = change(container.Args)
	return result
}

// TestRenderOver: arguments that another user has changed are applied as they are, and reported.
func TestRenderOver(t *testing.T) {
	const ranges, denied = "--service-cidrs=10.96.0.0/16", "--deny-namespaces=a,b"
	same := func(args []string) []string { return args }
	var out bytes.Buffer
	r := &output.Report{Out: &out}
	first, err := (&Options{}).RenderUpdate([]string{ranges}, r)
	check.Must(t, err)
	agent := running(t, first, func(args []string) []string { return append([]string{denied}, args...) })
	o := &Options{Running: map[string]*appsv1.Deployment{manifests.AgentDeployment: agent}}
	for verb, args := range map[string][]string{"join": {ranges}, "upgrade": JoinArguments(agent)} {
		out.Reset()
		second, err := o.RenderUpdate(args, r)
		check.Must(t, err)
		got := running(t, second, same)
		check.Equal(t, verb+": arguments that run (want) and that are applied", runningArguments(agent), runningArguments(got))
		check.Equal(t, verb+" remembers", runningArguments(running(t, first, same)), renderedArguments(got))
		if text := out.String(); !strings.Contains(text, "  note  kept: "+denied+" (") || strings.Contains(text, ranges) {
			t.Errorf("%s says %q", verb, text)
		}
	}
	if got := runningArguments(running(t, first, same)); len(got) != 3 {
		t.Errorf("the agent is rendered with %q, not with the kustomization's two and the ranges", got)
	}
}

// TestRangesArgument: an upgrade keeps the ranges that join has found, with the running value.
func TestRangesArgument(t *testing.T) {
	for name, test := range map[string]struct {
		args       []string
		annotation string
		want       []string
	}{
		"by join":                    {[]string{"--v=1", "--service-cidrs=p"}, `["--service-cidrs=p"]`, []string{"--service-cidrs=p"}},
		"by join, and changed since": {[]string{"--service-cidrs", "q"}, `["--service-cidrs=p"]`, []string{"--service-cidrs", "q"}},
		"by another user":            {[]string{"--service-cidrs=p"}, `[]`, nil},
		"by an unknown user":         {[]string{"--service-cidrs=p"}, ``, []string{"--service-cidrs=p"}},
		"unreadable memory":          {[]string{"--service-cidrs=p"}, `{`, []string{"--service-cidrs=p"}},
		"none":                       {[]string{"--v=1"}, ``, nil},
		"gateways":                   {[]string{"--gateway-address=g"}, `["--gateway-address=g"]`, []string{"--gateway-address=g"}},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := (&Options{}).render(nil)
			check.Must(t, err)
			agent := running(t, objects, func([]string) []string { return test.args })
			agent.Annotations = map[string]string{AnnotationArguments: test.annotation}
			check.Equal(t, "arguments", test.want, JoinArguments(agent))
		})
	}
}

// TestCompleteImages: given and running images stay, a release adds its own, and a development build names the missing flags.
func TestCompleteImages(t *testing.T) {
	release, devel := Build{Version: "v1.2.3", Registry: "ghcr.io/tombolo-mcs"}, Build{Version: "dev", Registry: "ghcr.io/tombolo-mcs"}
	const refusal = "this command is a development build (dev), for which no images were published, so it cannot know their names: pass "
	const next = ` with an image that the nodes can pull ("make images" builds it)`
	for name, test := range map[string]struct {
		options    Options
		agent, dns string
		err        string
	}{
		"release":                {Options{Build: release}, "ghcr.io/tombolo-mcs/tombolo-agent:v1.2.3", "ghcr.io/tombolo-mcs/tombolo-dns:v1.2.3", ""},
		"release, without DNS":   {Options{Build: release, profile: "agent"}, "ghcr.io/tombolo-mcs/tombolo-agent:v1.2.3", "", ""},
		"release, mirror":        {Options{Build: release, ImageRegistry: "r.example/m", dnsImage: "d:1"}, "r.example/m/tombolo-agent:v1.2.3", "d:1", ""},
		"devel, mirror":          {Options{Build: devel, ImageRegistry: "r.example/m", profile: "agent"}, "", "", refusal + "--agent-image" + next},
		"release, one given":     {Options{Build: release, AgentImage: "a:1"}, "a:1", "ghcr.io/tombolo-mcs/tombolo-dns:v1.2.3", ""},
		"dev":                    {Options{Build: devel}, "", "", refusal + "--agent-image and --dns-image" + next},
		"devel, agent given":     {Options{Build: devel, AgentImage: "a:1"}, "a:1", "", refusal + "--dns-image" + next},
		"devel, without DNS":     {Options{Build: devel, profile: "agent"}, "", "", refusal + "--agent-image" + next},
		"devel, all that it has": {Options{Build: devel, profile: "agent", AgentImage: "a:1"}, "a:1", "", ""},
		"devel, with gateways":   {Options{Build: devel, Gateway: true, AgentImage: "a:1", dnsImage: "d:1"}, "a:1", "d:1", refusal + "--gateway-image" + next},
		"devel, both given":      {Options{Build: devel, AgentImage: "a:1", dnsImage: "d:1"}, "a:1", "d:1", ""},
	} {
		text := check.Message(test.options.CompleteImages())
		got, want := []string{test.options.AgentImage, test.options.dnsImage, text}, []string{test.agent, test.dns, test.err}
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

// TestKeepImages: existing images stay. With another registry, the project's own keep their version, and others are replaced.
func TestKeepImages(t *testing.T) {
	for running, want := range map[string][2]string{ // without and with --image-registry=m.example:5000/x
		"r.example/tombolo-agent:v1.0.0":      {"r.example/tombolo-agent:v1.0.0", "m.example:5000/x/tombolo-agent:v1.0.0"},
		"tombolo-agent":                       {"tombolo-agent", "m.example:5000/x/tombolo-agent"},
		"r.example:1/tombolo-agent@sha256:ab": {"r.example:1/tombolo-agent@sha256:ab", "m.example:5000/x/tombolo-agent@sha256:ab"},
		"r.example/agent:v1":                  {"r.example/agent:v1", "m.example:5000/x/tombolo-agent:v2.0.0"},
	} {
		for i, registry := range []string{"", "m.example:5000/x/"} {
			o := Options{Build: release, ImageRegistry: registry, profile: "agent"}
			o.Running = map[string]*appsv1.Deployment{manifests.AgentDeployment: runs(running)}
			check.Must(t, o.Validate())
			o.KeepImages()
			if err := o.CompleteImages(); err != nil || o.AgentImage != want[i] {
				t.Errorf("%s with registry %q: %s, %v, want %s", running, registry, o.AgentImage, err, want[i])
			}
		}
	}
}

// TestNamespaceFirst: join applies the agent's Secret between the namespace and the other objects, in every profile,
// also with gateways.
func TestNamespaceFirst(t *testing.T) {
	for profile := range profiles {
		objects, err := (&Options{profile: profile, Gateway: true}).render(nil)
		check.Must(t, err)
		isNamespace := func(o *unstructured.Unstructured) bool { return o.GetKind() == "Namespace" }
		if !isNamespace(objects[0]) || slices.ContainsFunc(objects[1:], isNamespace) {
			t.Errorf("profile %s: the one namespace is not the first object", profile)
		}
	}
}

func TestTagOf(t *testing.T) {
	t.Parallel()
	for image, want := range map[string]string{
		"example.com:5000/a/tombolo-agent:v1.2.3": "v1.2.3", "example.com:5000/a/tombolo-agent": "", "tombolo-agent:v1@sha256:0": "v1", "": "",
	} {
		check.Equal(t, image, want, TagOf(image))
	}
}
