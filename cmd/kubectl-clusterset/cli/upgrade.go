// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const aboutUpgrade = `Upgrade the current context's cluster to this version: the kinds of the Multi-Cluster Services API if they are older
(newer ones stay), the agent, the DNS and the gateways.

Upgrade the hub first with "kubectl clusterset init-hub", then the members, one after the other. Imports stay in place. The
API server checks everything before the first write: if it refuses an object, or another client has changed an object, or the
member would be newer than its hub, nothing is changed. Arguments of the agent, replicas, resources and the scheduling of
pods that another user has set are kept and listed. Objects of earlier versions that this version no longer has are deleted.`

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
			if u.hubFlags != (hubFlags{}) {
				if u.hubConfig, err = u.hubFlags.config(usual); err != nil {
					return usageError{err}
				}
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
	cmd.Flags().StringVar(&u.hubFlags.kubeconfig, "hub-kubeconfig", "", "kubeconfig of the hub, to read its version; defaults to the credentials of the agent")
	cmd.Flags().StringVar(&u.hubFlags.context, "hub-context", "", "context of the hub, to read its version")
	return cmd
}

// upgradeCommand is the state of the command upgrade.
type upgradeCommand struct {
	writeFlags
	runtimeOptions
	hubFlags  hubFlags
	hubConfig *rest.Config // nil if there are no flags for the hub
	member    *cluster
	r         *report
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
	if by := u.installedBy(); by != "" {
		u.r.failf("%s has installed the agent: upgrade it with the newer kustomization or chart", by)
	}
	u.checkVersions(ctx, before)
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
	objects, err := u.renderUpdate(joinArguments(before), u.r)
	if err != nil {
		return err
	}
	obsolete, err := obsoleteMemberObjects(ctx, u.member, u.running, u.r)
	if err != nil {
		return err
	}
	reviews, err := reviewAll(ctx, u.member, append(definitions, objects...), u.r)
	if err != nil {
		return err
	}
	u.r.titlef("%s", u.heading("In this cluster"))
	if err := writeAll(ctx, u.member, reviews, obsolete, u.r); err != nil {
		return err
	}
	if u.isDryRun() {
		return nil
	}
	u.r.titlef("Upgraded. \"kubectl -n %s rollout status deployment/%s\" shows when the new agent runs.", manifests.AgentNamespace, manifests.AgentDeployment)
	return nil
}

// checkVersions fails if this version is newer than the hub, and reports a rollback.
func (u *upgradeCommand) checkVersions(ctx context.Context, running *appsv1.Deployment) {
	var from client.Reader
	var err error
	if u.hubConfig != nil {
		from, err = hub.Client(u.hubConfig)
	} else {
		from, err = hubOfAgent(ctx, u.member)
	}
	version := ""
	if err == nil {
		version, err = versionOf(ctx, from)
	}
	checkSkew(u.build.Version, version, err, u.r)
	if now := tagOf(imageIn(running)); clusterset.CompareVersions(u.build.Version, now) == clusterset.Older {
		u.r.notef("this is a rollback of the agent from %s to %s. Newer kinds stay as they are. To roll back the hub too, roll back all members first", now, u.build.Version)
	}
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
