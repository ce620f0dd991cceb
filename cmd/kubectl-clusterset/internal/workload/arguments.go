// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// AnnotationArguments on the agent's Deployment holds the arguments that join or upgrade has rendered. Any other argument was
// added or changed by another user.
const AnnotationArguments = "tombolo-mcs.io/arguments"

// Flags of the agent whose values only join sets.
const (
	ServiceCIDRsFlag   = "service-cidrs"   // the ranges of the cluster's Services, if it has no ServiceCIDRs
	GatewayAddressFlag = "gateway-address" // the addresses of the gateways, if they are not those of their Service
)

// agentArg is a flag of a command line with its value, which may be a separate element.
type agentArg []string

// name returns the name of the flag, without dashes.
func (a agentArg) name() string {
	name, _, _ := strings.Cut(strings.TrimLeft(a[0], "-"), "=")
	return name
}

// parseArguments returns the arguments of a command line.
func parseArguments(line []string) []agentArg {
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

// findArgument returns the last argument for a flag, nil if there is none.
func findArgument(arguments []agentArg, name string) agentArg {
	for _, a := range slices.Backward(arguments) {
		if a.name() == name {
			return a
		}
	}
	return nil
}

// containsArgument reports whether the arguments contain one with the same flag and value.
func containsArgument(arguments []agentArg, a agentArg) bool {
	return slices.ContainsFunc(arguments, func(other agentArg) bool { return slices.Equal(other, a) })
}

// combineArguments returns the desired command line of the agent, and the arguments of other users that it keeps. ours is the
// rendered command line, running the existing one, and before the one that was rendered for that, nil if it is unknown.
//
// It keeps arguments that run and were not rendered before, except those whose values only join sets, if ours has them. It updates or
// removes arguments that were rendered before. The order is that of running: if only other users have changed something, the
// result equals running, and applying it causes no conflict.
func combineArguments(ours, running, before []string) (line, kept []string) {
	rendered, earlier := parseArguments(ours), parseArguments(before)
	var result []agentArg
	for _, a := range parseArguments(running) {
		now := findArgument(rendered, a.name())
		isOurs := containsArgument(earlier, a) || now != nil && (before == nil || a.name() == ServiceCIDRsFlag || a.name() == GatewayAddressFlag)
		switch {
		case !isOurs && !slices.Equal(a, now):
			kept = append(kept, strings.Join(a, " "))
			result = append(result, a)
		case now != nil && !containsArgument(result, now):
			result = append(result, now)
		}
	}
	for _, a := range rendered {
		if findArgument(result, a.name()) == nil {
			result = append(result, a)
		}
	}
	for _, a := range result {
		line = append(line, a...)
	}
	return line, kept
}

// AgentContainer is the name of the agent's container in its Deployment.
const AgentContainer = "agent"

// runningArguments returns the agent's command line in a Deployment.
func runningArguments(d *appsv1.Deployment) []string {
	for _, c := range d.Spec.Template.Spec.Containers {
		if c.Name == AgentContainer {
			return c.Args
		}
	}
	return nil
}

// renderedArguments returns the command line that was rendered for a Deployment, nil if it is unknown.
func renderedArguments(d *appsv1.Deployment) []string {
	var line []string
	if err := json.Unmarshal([]byte(d.Annotations[AnnotationArguments]), &line); err != nil {
		return nil
	}
	return line
}

// JoinArguments returns the arguments whose values only join sets. One that another user has added is kept like any other.
func JoinArguments(agent *appsv1.Deployment) []string {
	return slices.Concat(JoinArgument(agent, ServiceCIDRsFlag), JoinArgument(agent, GatewayAddressFlag))
}

// JoinArgument returns the argument that join has added for a flag, nil if it has added none.
func JoinArgument(agent *appsv1.Deployment, flag string) []string {
	if agent == nil {
		return nil
	}
	before := renderedArguments(agent)
	if before != nil && findArgument(parseArguments(before), flag) == nil {
		return nil
	}
	return RunningArgument(agent, flag)
}

// RunningArgument returns the argument for a flag of the agent in a Deployment, nil if there is none.
func RunningArgument(agent *appsv1.Deployment, flag string) []string {
	return findArgument(parseArguments(runningArguments(agent)), flag)
}

// RenderUpdate returns the desired objects of the member, its namespace first. It keeps and reports the arguments that other
// users have given the agent.
func (o *Options) RenderUpdate(agentArgs []string, r *output.Report) ([]*unstructured.Unstructured, error) {
	objects, err := o.render(agentArgs)
	if err != nil {
		return nil, err
	}
	agent, err := AgentDeployment(objects)
	if err != nil {
		return nil, err
	}
	kept, err := keepArguments(agent, o.Agent())
	if err != nil {
		return nil, fmt.Errorf("the arguments of Deployment %s: %w", manifests.AgentDeployment, err)
	}
	if len(kept) > 0 {
		r.Notef("kept: %s (another user has given the agent this; to remove it, edit Deployment %s/%s)",
			strings.Join(kept, " "), manifests.AgentNamespace, manifests.AgentDeployment)
	}
	return objects, nil
}

// keepArguments adds the annotation with the rendered arguments to the agent. It adds and returns the arguments of other users in
// the running Deployment, which is nil if there is none.
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
	if err := unstructured.SetNestedField(rendered.Object, string(memory), "metadata", "annotations", AnnotationArguments); err != nil {
		return nil, err
	}
	if running == nil {
		return nil, nil
	}
	line, kept := combineArguments(ours, runningArguments(running), renderedArguments(running))
	if err := unstructured.SetNestedStringSlice(agent, line, "args"); err != nil {
		return nil, err
	}
	return kept, unstructured.SetNestedSlice(rendered.Object, containers, "spec", "template", "spec", "containers")
}
