// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// inviteFlag is the flag of join for an invitation.
const inviteFlag = "invite"

// openInvitation reads the file of --invite. Flags that it replaces are refused.
func (o *joinOptions) openInvitation(flags *pflag.FlagSet, now time.Time) (err error) {
	if o.inviteFile == "" {
		return nil
	}
	replaced := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&hubFlags{}).add(replaced)
	(&joinOptions{}).addMemberFlags(replaced)
	var first string
	replaced.VisitAll(func(f *pflag.Flag) {
		if first == "" && flags.Changed(f.Name) {
			first = f.Name
		}
	})
	if first != "" {
		return fmt.Errorf("--%s and --%s exclude each other: the hub's administrator decides about it with \"kubectl clusterset invite\"", inviteFlag, first)
	}
	if o.invited, err = readInvitation(o.inviteFile, now); err != nil {
		return fmt.Errorf("--%s: %w", inviteFlag, err)
	}
	if o.id != "" && o.id != o.invited.ClusterID {
		return fmt.Errorf("--cluster-id=%s: the invitation is for %s", o.id, o.invited.ClusterID)
	}
	o.id = o.invited.ClusterID
	if o.clusterSet == "" {
		o.clusterSet = o.invited.ClusterSet
	}
	return nil
}

// connect connects to the hub, with the rights of the invitation if there is one, and to the cluster of the kubeconfig flags.
func (o *joinOptions) connect(usual *genericclioptions.ConfigFlags) (hub, member *cluster, err error) {
	if o.invited == nil {
		return connectBoth(usual, &o.hub, o.writeFlags)
	}
	config, err := usual.ToRESTConfig()
	if err != nil {
		return nil, nil, usageError{err}
	}
	if member, err = connect("this cluster", "--kubeconfig and --context", config, o.writeFlags); err != nil {
		return nil, nil, err
	}
	hub, err = connect("the hub", "that it is reached from here", o.invited.config(), o.writeFlags)
	if apierrors.IsUnauthorized(err) {
		return nil, nil, errInvitationUsed
	}
	return hub, member, err
}

// checkInvitation checks that the hub accepts the invitation, for its cluster ID.
func (j *joinCommand) checkInvitation(ctx context.Context) bool {
	id := clusterset.ClusterID(j.invited.ClusterID)
	err := j.hub.client.Get(ctx, client.ObjectKey{Namespace: id.HubNamespace(), Name: hubv1alpha1.MemberName}, &hubv1alpha1.Member{})
	switch {
	case apierrors.IsUnauthorized(err):
		j.r.failf("%v", errInvitationUsed)
	case isAbsentKind(err):
		j.r.failf("the hub has no Member for %q any more: let its administrator run \"kubectl clusterset invite\" again", id)
	case err != nil:
		j.r.failf("the invitation has no right to join as %q (%v): let the hub's administrator run \"kubectl clusterset invite\" again", id, err)
	default:
		j.r.okf("the hub at %s accepts the invitation for %q, until %s", j.hub.config.Host, id, j.invited.Expires.UTC().Format(timeFormat))
	}
	return err == nil
}

// useUpInvitation ends the invitation: the hub refuses its token when the Secret to which it is bound does not exist.
func (j *joinCommand) useUpInvitation(ctx context.Context) error {
	if j.invited == nil {
		return nil
	}
	secret := client.ObjectKey{Namespace: j.id.HubNamespace(), Name: manifests.InvitationName}
	if err := j.hub.install.DeleteSecret(ctx, secret); err != nil && !apierrors.IsUnauthorized(err) {
		return fmt.Errorf("%s has joined, but the invitation can still be used: let the hub's administrator run \"kubectl clusterset invite revoke %s\": %w", j.id, j.id, err)
	}
	j.r.okf("the invitation is used up")
	return nil
}
