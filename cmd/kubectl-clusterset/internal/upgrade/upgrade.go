// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package upgrade implements the command upgrade: it brings a member to this version.
package upgrade

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/credentials"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/definition"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/skew"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/workload"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/writing"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const about = `Upgrade the current context's cluster to this version: the kinds of the Multi-Cluster Services API if they are older
(newer ones stay), the agent, the DNS and the gateways.

Upgrade the hub first with "kubectl clusterset init-hub", then the members, one after the other. Imports stay in place. The
API server checks everything before the first write: if it refuses an object, or another client has changed an object, or the
member would be newer than its hub, nothing is changed. Arguments of the agent, replicas, resources and the scheduling of
pods that another user has set are kept and listed. Objects of earlier versions that this version no longer has are deleted.`

// New returns the command upgrade.
func New(build workload.Build, usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	u := &command{Options: workload.Options{Build: build}}
	cmd := &cobra.Command{
		Use:     "upgrade",
		Short:   "upgrade a member to this version",
		Long:    about,
		Example: "  kubectl clusterset init-hub --context hub\n  kubectl clusterset upgrade --context east --dry-run\n  kubectl clusterset upgrade --context east",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := u.Validate(); err != nil {
				return output.Usage(err)
			}
			config, err := usual.ToRESTConfig()
			if err != nil {
				return output.Usage(err)
			}
			if u.hubFlags != (connection.HubFlags{}) {
				if u.hubConfig, err = u.hubFlags.Config(usual); err != nil {
					return output.Usage(err)
				}
			}
			u.r = u.NewReport(streams)
			if u.member, err = connection.Open("this cluster", "--kubeconfig and --context", config, u.WriteFlags); err != nil {
				return err
			}
			return u.run(cmd.Context())
		},
	}
	u.AddFlags(cmd)
	u.AddObjectOutput(cmd)
	u.AddRuntimeFlags(cmd.Flags())
	cmd.Flags().StringVar(&u.hubFlags.Kubeconfig, "hub-kubeconfig", "", "kubeconfig of the hub, to read its version; defaults to the credentials of the agent")
	cmd.Flags().StringVar(&u.hubFlags.Context, "hub-context", "", "context of the hub, to read its version")
	return cmd
}

// command is the state of the command upgrade.
type command struct {
	connection.WriteFlags
	workload.Options
	hubFlags  connection.HubFlags
	hubConfig *rest.Config // nil if there are no flags for the hub
	member    *connection.Cluster
	r         *output.Report
}

func (u *command) run(ctx context.Context) error {
	u.r.Titlef("Checking this cluster at %s", u.member.Config.Host)
	if err := u.Read(ctx, u.member); err != nil {
		return err
	}
	before := u.Agent()
	if before == nil {
		u.r.Failf("no agent runs in this cluster: \"kubectl clusterset join\" installs one")
		return u.r.CheckError()
	}
	if by := u.InstalledBy(); by != "" {
		u.r.Failf("%s has installed the agent: upgrade it with the newer kustomization or chart", by)
	}
	u.checkVersions(ctx, before)
	u.Gateway = u.Running[manifests.GatewayDeployment] != nil
	u.AutoExport = u.RunsAutoExport()
	u.SetDefaults()
	u.checkImages()
	definitions, err := definition.CheckMember(ctx, u.member, definition.Upgrade, u.r)
	if err != nil {
		return err
	}
	if err := u.r.CheckError(); err != nil {
		return err
	}
	objects, err := u.RenderUpdate(workload.JoinArguments(before), u.r)
	if err != nil {
		return err
	}
	obsolete, err := writing.ObsoleteInMember(ctx, u.member, u.Running, u.r)
	if err != nil {
		return err
	}
	reviews, err := writing.ReviewAll(ctx, u.member, append(definitions, objects...), u.r)
	if err != nil {
		return err
	}
	u.r.Titlef("%s", u.Heading("In this cluster"))
	if err := writing.WriteAll(ctx, u.member, reviews, obsolete, u.r); err != nil {
		return err
	}
	if u.IsDryRun() {
		return nil
	}
	u.r.Titlef("Upgraded. \"kubectl -n %s rollout status deployment/%s\" shows when the new agent runs.", manifests.AgentNamespace, manifests.AgentDeployment)
	return nil
}

// checkVersions fails if this version is newer than the hub, and reports a rollback.
func (u *command) checkVersions(ctx context.Context, running *appsv1.Deployment) {
	var from client.Reader
	var err error
	if u.hubConfig != nil {
		from, err = hub.Client(u.hubConfig)
	} else {
		from, err = credentials.HubOfAgent(ctx, u.member)
	}
	version := ""
	if err == nil {
		version, err = skew.HubVersion(ctx, from)
	}
	skew.Check(u.Build.Version, version, err, u.r)
	if now := workload.TagOf(workload.ImageIn(running)); clusterset.CompareVersions(u.Build.Version, now) == clusterset.Older {
		u.r.Notef("this is a rollback of the agent from %s to %s. Newer kinds stay as they are. To roll back the hub too, roll back all members first", now, u.Build.Version)
	}
}

// checkImages fails if an existing image is not of the registry of the release's images and no flag is given: the nodes may not be
// able to pull those.
func (u *command) checkImages() {
	for _, part := range u.Components() {
		next, running := u.Build.ImageFrom(u.ImageRegistry, part.Image), u.Running[part.Deployment]
		if running == nil || *part.Given != "" || next == "" || u.RegistryGiven {
			continue
		}
		if image := workload.ImageIn(running); workload.Repository(image) != workload.Repository(next) {
			u.r.Failf("the image %s of %s is not from %s: pass %s if that registry has the release's images, or the newer image by %s",
				image, part.Deployment, cmp.Or(u.ImageRegistry, u.Build.Registry), workload.ImageRegistryFlag, part.Flag)
		}
	}
	if err := u.CompleteImages(); err != nil {
		u.r.Failf("%v", err)
	}
}
