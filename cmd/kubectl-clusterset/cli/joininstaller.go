// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
)

// annotationRelease is set by Helm on each object of a release.
const annotationRelease = "meta.helm.sh/release-name"

// installedBy returns what manages the objects in this cluster, if that is not this command: join then writes none of them, because the next
// "helm upgrade" or "kubectl apply" would be in conflict with it. It is empty if this command manages them, or if there is no agent.
func (o *runtimeOptions) installedBy() string {
	agent := o.agent()
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

// checkInstaller fails if a flag decides what runs in a cluster where another installer decides about that.
func (j *joinCommand) checkInstaller() {
	switch by := j.installedBy(); {
	case by == "":
	case len(j.chosen) > 0:
		j.r.failf("%s has installed the agent, and decides what runs in this cluster: change that there, and leave out %s", by, strings.Join(j.chosen, ", "))
	default:
		j.r.okf("%s has installed the agent: what runs in this cluster stays as it is", by)
	}
}

// noteServiceCIDRs says that the agent of another installer does not have the argument with the ranges of Services, if it needs it.
func (j *joinCommand) noteServiceCIDRs() {
	if j.hasServiceCIDRs {
		return
	}
	running := findArgument(parseArguments(runningArguments(j.agent())), serviceCIDRsFlag)
	if want := "--" + serviceCIDRsFlag + "=" + commas(j.own.services); strings.Join(running, "=") != want {
		j.r.notef("the agent needs the argument %s, because this cluster has no ServiceCIDRs: add it with agent.args of the Helm chart, or with a patch of the kustomization", want)
	}
}
