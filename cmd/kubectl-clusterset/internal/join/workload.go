// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"strings"

	"github.com/spf13/pflag"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/ranges"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/workload"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/writing"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// checkInstaller fails if a flag decides what runs in a cluster where another installer decides about that.
func (j *command) checkInstaller() {
	switch by := j.InstalledBy(); {
	case by == "":
	case len(j.chosen) > 0:
		j.r.Failf("%s has installed the agent, and decides what runs in this cluster: change that there, and leave out %s", by, strings.Join(j.chosen, ", "))
	default:
		j.r.Okf("%s has installed the agent: what runs in this cluster stays as it is", by)
	}
}

// noteServiceCIDRs says that the agent of another installer does not have the argument with the ranges of Services, if it needs it.
func (j *command) noteServiceCIDRs() {
	if j.hasServiceCIDRs {
		return
	}
	running := workload.RunningArgument(j.Agent(), workload.ServiceCIDRsFlag)
	if want := "--" + workload.ServiceCIDRsFlag + "=" + ranges.Commas(j.Own.Services); strings.Join(running, "=") != want {
		j.r.Notef("the agent needs the argument %s, because this cluster has no ServiceCIDRs: add it with agent.args of the Helm chart, or with a patch of the kustomization", want)
	}
}

// autoExportOptions are the flags of join for automatic export (P3).
type autoExportOptions struct {
	autoExportFlag  bool // --auto-export, if autoExportGiven
	autoExportGiven bool
}

func (o *autoExportOptions) addAutoExportFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.autoExportFlag, workload.AutoExportFlag, false, "export the Services that have the label "+clusterset.LabelAutoExport+"=true, or whose Namespace has it: all users who may edit a Service may export it then. Defaults to the present setting, and =false ends it")
}

// autoExports returns the desired setting: the value of the flag, else the present value.
func (j *command) autoExports() bool {
	if j.autoExportGiven {
		return j.autoExportFlag
	}
	return j.RunsAutoExport()
}

// removeAutoExport deletes the rights for automatic export if --auto-export=false. The ServiceExports stay.
func (j *command) removeAutoExport(ctx context.Context) error {
	if !j.autoExportGiven || j.AutoExport {
		return nil
	}
	objects, err := manifests.AutoExportRights()
	if err != nil {
		return err
	}
	if j.RunsAutoExport() {
		j.r.Notef("the ServiceExports of labelled Services stay; to delete them: kubectl delete serviceexports -A -l %s=%s", clusterset.LabelManagedBy, clusterset.ManagedBy)
	}
	return writing.DeleteExisting(ctx, j.member, objects, j.r)
}
