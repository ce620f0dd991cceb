// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tombolo-mcs/tombolo/manifests"
)

// annotationArguments on the agent's Deployment remembers the arguments that join or upgrade has set. What is not among them
// when they come again, somebody else has added or changed.
const annotationArguments = "tombolo-mcs.io/arguments"

// serviceCIDRsFlag is the agent's flag for the ranges of its cluster's Services. join alone knows its right value.
const serviceCIDRsFlag = "service-cidrs"

// agentArg is a flag of a command line with its value, which may be an element of its own.
type agentArg []string

// name returns the flag's, without dashes.
func (a agentArg) name() string {
	name, _, _ := strings.Cut(strings.TrimLeft(a[0], "-"), "=")
	return name
}

// argumentsOf returns the arguments of a command line.
func argumentsOf(line []string) []agentArg {
	var result []agentArg
	for _, element := range line {
		if last := len(result) - 1; last >= 0 && !strings.HasPrefix(element, "-") {
			result[last] = append(result[last], element)
			continue
		}
		result = append(result, agentArg{element})
	}
	return result
}

// named returns the argument for a flag, the last one of several, nil where there is none.
func named(arguments []agentArg, name string) agentArg {
	for _, a := range slices.Backward(arguments) {
		if a.name() == name {
			return a
		}
	}
	return nil
}

// holds reports whether an argument is among others, value and all.
func holds(arguments []agentArg, a agentArg) bool {
	return slices.ContainsFunc(arguments, func(other agentArg) bool { return slices.Equal(other, a) })
}

// carryOver returns the command line that the agent is to have, and the arguments in it that are kept for somebody else. ours
// is the one that is rendered, running the one that stands, and before what was rendered for that, nil where nobody knows.
//
// What runs and was not rendered before is kept, but for --service-cidrs where we have another; what was rendered before is
// as it is rendered now, or goes. The order is that of what runs: where only somebody else has changed something, the
// result is what runs, and to apply it conflicts with nobody.
func carryOver(ours, running, before []string) (line, kept []string) {
	rendered, earlier := argumentsOf(ours), argumentsOf(before)
	var result []agentArg
	for _, a := range argumentsOf(running) {
		now := named(rendered, a.name())
		isOurs := holds(earlier, a) || now != nil && (before == nil || a.name() == serviceCIDRsFlag)
		switch {
		case !isOurs && !slices.Equal(a, now):
			kept = append(kept, strings.Join(a, " "))
			result = append(result, a)
		case now != nil && !holds(result, now):
			result = append(result, now)
		}
	}
	for _, a := range rendered {
		if named(result, a.name()) == nil {
			result = append(result, a)
		}
	}
	for _, a := range result {
		line = append(line, a...)
	}
	return line, kept
}

// agentContainer is the name of the agent's container in its Deployment.
const agentContainer = "agent"

// argumentsIn returns the agent's command line in a Deployment.
func argumentsIn(d *appsv1.Deployment) []string {
	for _, c := range d.Spec.Template.Spec.Containers {
		if c.Name == agentContainer {
			return c.Args
		}
	}
	return nil
}

// rememberedIn returns the command line that was rendered for a Deployment, nil where it does not say.
func rememberedIn(d *appsv1.Deployment) []string {
	var line []string
	if err := json.Unmarshal([]byte(d.Annotations[annotationArguments]), &line); err != nil {
		return nil
	}
	return line
}

// rangesArgument returns the agent's argument that join has added, where the cluster does not tell its Services' ranges. One
// that somebody else has added is kept as others are.
func rangesArgument(agent *appsv1.Deployment) []string {
	before := rememberedIn(agent)
	if before != nil && named(argumentsOf(before), serviceCIDRsFlag) == nil {
		return nil
	}
	return named(argumentsOf(argumentsIn(agent)), serviceCIDRsFlag)
}

// renderOver returns what is to run in the member in place of what runs, its namespace first. Arguments that somebody has
// given the agent are kept, and told.
func (o *runtimeOptions) renderOver(agentArgs []string, r *report) ([]*unstructured.Unstructured, error) {
	objects, err := o.render(agentArgs)
	if err != nil {
		return nil, err
	}
	agent, err := agentDeployment(objects)
	if err != nil {
		return nil, err
	}
	kept, err := keepArguments(agent, o.running)
	if err != nil {
		return nil, fmt.Errorf("the arguments of Deployment %s: %w", manifests.AgentDeployment, err)
	}
	if len(kept) > 0 {
		r.notef("kept: %s (another user has given the agent this; to remove it, edit Deployment %s/%s)",
			strings.Join(kept, " "), manifests.AgentNamespace, manifests.AgentDeployment)
	}
	return objects, nil
}

// keepArguments has a rendered agent remember its arguments, and take over from the running one, nil where there is none,
// those that are somebody else's, which it returns.
func keepArguments(rendered *unstructured.Unstructured, running *appsv1.Deployment) (kept []string, err error) {
	containers, _, err := unstructured.NestedSlice(rendered.Object, "spec", "template", "spec", "containers")
	if err != nil || len(containers) == 0 {
		return nil, errors.Join(errors.New("the manifests have no container for them"), err)
	}
	agent := containers[0].(map[string]any)
	ours, _, err := unstructured.NestedStringSlice(agent, "args")
	if err != nil {
		return nil, err
	}
	memory, err := json.Marshal(ours)
	if err != nil {
		return nil, err
	}
	if err := unstructured.SetNestedField(rendered.Object, string(memory), "metadata", "annotations", annotationArguments); err != nil {
		return nil, err
	}
	if running == nil {
		return nil, nil
	}
	line, kept := carryOver(ours, argumentsIn(running), rememberedIn(running))
	if err := unstructured.SetNestedStringSlice(agent, line, "args"); err != nil {
		return nil, err
	}
	return kept, unstructured.SetNestedSlice(rendered.Object, containers, "spec", "template", "spec", "containers")
}
