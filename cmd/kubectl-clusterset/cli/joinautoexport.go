// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"

	"github.com/spf13/pflag"

	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// autoExportFlag is a flag of join, and of the agent.
const autoExportFlag = "auto-export"

// autoExportOptions are the flags of join for automatic export (P3).
type autoExportOptions struct {
	autoExportFlag  bool // --auto-export, if autoExportGiven
	autoExportGiven bool
}

func (o *autoExportOptions) addAutoExportFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.autoExportFlag, autoExportFlag, false, "export the Services that have the label "+clusterset.LabelAutoExport+"=true, or whose Namespace has it: all users who may edit a Service may export it then. Defaults to the present setting, and =false ends it")
}

// autoExports returns the desired setting: that of the flag, else the present one.
func (j *joinCommand) autoExports() bool {
	if j.autoExportGiven {
		return j.autoExportFlag
	}
	return j.runsAutoExport()
}

// runsAutoExport reports whether join has given the existing agent automatic export.
func (o *runtimeOptions) runsAutoExport() bool { return joinArgument(o.agent(), autoExportFlag) != nil }

// removeAutoExport deletes the rights for automatic export if --auto-export=false. The ServiceExports stay.
func (j *joinCommand) removeAutoExport(ctx context.Context) error {
	if !j.autoExportGiven || j.autoExport {
		return nil
	}
	objects, err := manifests.AutoExportRights()
	if err != nil {
		return err
	}
	if j.runsAutoExport() {
		j.r.notef("the ServiceExports of labelled Services stay; to delete them: kubectl delete serviceexports -A -l %s=%s", clusterset.LabelManagedBy, clusterset.ManagedBy)
	}
	return deleteExisting(ctx, j.member, objects, j.r)
}
