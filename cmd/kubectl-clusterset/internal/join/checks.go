// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/admission"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/definition"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/identity"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/skew"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// minMember is the oldest Kubernetes version of a member: the schemas of the kinds use validation rules of this version.
var minMember = version.MustParseGeneric("1.30")

// check runs all checks, and reports the failed ones. It returns an error if a check cannot run.
func (j *command) check(ctx context.Context) error {
	checkHub := j.CheckHub
	if j.invited != nil {
		checkHub = j.checkInvitation
	}
	if !checkHub(ctx) {
		return nil // the other checks need the hub
	}
	if j.member.Version.LessThan(minMember) {
		j.r.Failf("Kubernetes %s is too old for a member: it needs %s", j.member.Version, minMember)
	}
	var err error
	if j.UID, err = identity.ClusterUID(ctx, j.member); err != nil {
		return err
	}
	for _, run := range []func(context.Context) error{
		j.checkRuntime, j.checkVersion, j.checkIdentity, j.checkAdmission, j.checkDefinitions,
		j.checkRanges, j.checkOthers, j.checkGateway, j.checkHubAddress,
	} {
		if err := run(ctx); err != nil {
			return err
		}
	}
	if j.r.Failed > 0 {
		return nil
	}
	return j.checkInside(ctx) // last, because it starts a pod
}

// checkRuntime sets what the flags do not set: from the existing Deployments, else the images of this release.
func (j *command) checkRuntime(ctx context.Context) error {
	if err := j.Read(ctx, j.member); err != nil {
		return err
	}
	j.Gateway = j.gatewayFlag
	if !j.gatewayGiven {
		j.Gateway = j.Running[manifests.GatewayDeployment] != nil
	}
	j.AutoExport = j.autoExports()
	j.checkInstaller()
	j.GatewayType = corev1.ServiceType(j.gatewayServiceType)
	j.SetDefaults()
	j.KeepImages()
	if j.InstalledBy() != "" {
		return nil
	}
	if err := j.CompleteImages(); err != nil {
		j.r.Failf("%v", err)
	}
	return nil
}

// checkVersion fails if a new member would be newer than its hub. A member that joins again keeps its version.
func (j *command) checkVersion(ctx context.Context) error {
	if j.Agent() == nil {
		version, err := j.hubVersion(ctx)
		skew.Check(j.Build.Version, version, err, j.r)
	}
	return nil
}

func (j *command) checkDefinitions(ctx context.Context) error {
	if j.InstalledBy() != "" {
		return nil
	}
	var err error
	j.definitions, err = definition.CheckMember(ctx, j.member, definition.Keep, j.r)
	return err
}

// checkAdmission checks that the cluster ID is free on the hub, or belongs to this cluster (K2).
func (j *command) checkAdmission(ctx context.Context) error {
	if j.ID == "" {
		return nil
	}
	member, err := j.memberOnHub(ctx, j.ID)
	switch {
	case err != nil:
		return fmt.Errorf("get Member of %s on the hub: %w", j.ID, err)
	case member == nil:
		j.r.Okf("cluster ID %q is free", j.ID)
		return nil
	}
	j.Admitted = member
	if member.Spec.Suspended {
		j.r.Failf("%s", admission.SuspendedMember(j.ID))
	}
	holder := member.Annotations[identity.AnnotationClusterUID]
	beat, err := identity.Heartbeat(ctx, j.Hub, j.ID)
	if err != nil {
		return err
	}
	if beat != nil {
		holder = beat.Spec.ClusterUID
	}
	switch holder {
	case j.UID:
		j.r.Okf("cluster ID %q is this cluster's already", j.ID)
		return j.checkCopy(ctx, beat)
	case "":
		j.r.Okf("cluster ID %q has been admitted by hand, and no agent has used it yet", j.ID)
	default:
		j.r.Failf("cluster ID %q is another cluster's (its kube-system has the UID %s, this one's %s): pass another --cluster-id; "+
			"or, if that cluster no longer exists, run \"kubectl clusterset leave --from hub --cluster-id %s\" first", j.ID, holder, j.UID, j.ID)
	}
	return nil
}
