// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

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
	object, err := agentDeployment(objects)
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
	r := &report{out: &out}
	first, err := (&runtimeOptions{}).renderUpdate([]string{ranges}, r)
	check.Must(t, err)
	agent := running(t, first, func(args []string) []string { return append([]string{denied}, args...) })
	o := &runtimeOptions{running: map[string]*appsv1.Deployment{manifests.AgentDeployment: agent}}
	for verb, args := range map[string][]string{"join": {ranges}, "upgrade": joinArguments(agent)} {
		out.Reset()
		second, err := o.renderUpdate(args, r)
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
			objects, err := (&runtimeOptions{}).render(nil)
			check.Must(t, err)
			agent := running(t, objects, func([]string) []string { return test.args })
			agent.Annotations = map[string]string{annotationArguments: test.annotation}
			check.Equal(t, "arguments", test.want, joinArguments(agent))
		})
	}
}
