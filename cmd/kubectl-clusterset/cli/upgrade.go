// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/manifests"
)

const aboutUpgrade = `Upgrade the current context's cluster to this version: the kinds of the Multi-Cluster Services API if they are older
(newer ones stay), the agent, the DNS and the gateways.

Upgrade the hub first with "kubectl clusterset init-hub", then the members, one after the other. Imports stay in place
meanwhile. Arguments of the agent that another user has changed are kept and listed.`

func newUpgrade(build Build, usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	u := &upgradeCommand{runtimeOptions: runtimeOptions{build: build}}
	cmd := &cobra.Command{
		Use:     "upgrade",
		Short:   "upgrade a member to this version",
		Long:    aboutUpgrade,
		Example: "  kubectl clusterset init-hub --context hub\n  kubectl clusterset upgrade --context east --dry-run\n  kubectl clusterset upgrade --context east",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := u.validate(); err != nil {
				return usageError{err}
			}
			config, err := usual.ToRESTConfig()
			if err != nil {
				return usageError{err}
			}
			u.r = u.report(streams)
			if u.member, err = connect("this cluster", "--kubeconfig and --context", config, u.writeFlags); err != nil {
				return err
			}
			return u.run(cmd.Context())
		},
	}
	u.addFlags(cmd)
	u.addObjectOutput(cmd)
	u.addRuntimeFlags(cmd.Flags())
	return cmd
}

// upgradeCommand is the state of the command upgrade.
type upgradeCommand struct {
	writeFlags
	runtimeOptions
	member *cluster
	r      *report
}

func (u *upgradeCommand) run(ctx context.Context) error {
	u.r.titlef("Checking this cluster at %s", u.member.config.Host)
	if err := u.read(ctx, u.member); err != nil {
		return err
	}
	before := u.agent()
	if before == nil {
		u.r.failf("no agent runs in this cluster: \"kubectl clusterset join\" installs one")
		return u.r.checkError()
	}
	if _, byUs := before.Annotations[annotationProfile]; !byUs {
		u.r.failf("the agent was installed by kustomize or Helm: upgrade it with the newer kustomization or chart")
	}
	u.gateway = u.running[manifests.GatewayDeployment] != nil
	u.autoExport = u.runsAutoExport()
	u.setDefaults()
	u.checkImages()
	definitions, err := checkMemberDefinitions(ctx, u.member, upgradeDefinitions, u.r)
	if err != nil {
		return err
	}
	if err := u.r.checkError(); err != nil {
		return err
	}
	u.r.titlef("%s", u.heading("In this cluster"))
	if err := applyAll(ctx, u.member, definitions, u.r); err != nil {
		return err
	}
	objects, err := u.renderUpdate(joinArguments(before), u.r)
	if err != nil {
		return err
	}
	if err := applyAll(ctx, u.member, objects, u.r); err != nil {
		return err
	}
	if u.isDryRun() {
		return nil
	}
	u.r.titlef("Upgraded. \"kubectl -n %s rollout status deployment/%s\" shows when the new agent runs.", manifests.AgentNamespace, manifests.AgentDeployment)
	return nil
}

// checkImages fails if an existing image is not of the registry of the release's images and no flag is given: the nodes may not be
// able to pull those.
func (u *upgradeCommand) checkImages() {
	for _, part := range u.components() {
		next, running := u.build.imageFrom(u.imageRegistry, part.image), u.running[part.deployment]
		if running == nil || *part.given != "" || next == "" || u.registryGiven {
			continue
		}
		if image := imageIn(running); repository(image) != repository(next) {
			u.r.failf("the image %s of %s is not from %s: pass %s if that registry has the release's images, or the newer image by %s",
				image, part.deployment, cmp.Or(u.imageRegistry, u.build.Registry), imageRegistryFlag, part.flag)
		}
	}
	if err := u.completeImages(); err != nil {
		u.r.failf("%v", err)
	}
}
