// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/admission"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/credentials"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/invitation"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/skew"
	"github.com/tombolo-mcs/tombolo/internal/apply"
	hubdata "github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// inviteFlag is the flag of join for an invitation.
const inviteFlag = "invite"

// invite.openInvitation reads the file of --invite. Flags that it replaces are refused.
func (j *command) openInvitation(flags *pflag.FlagSet, now time.Time) (err error) {
	if j.inviteFile == "" {
		return nil
	}
	replaced := pflag.NewFlagSet("", pflag.ContinueOnError)
	(&connection.HubFlags{}).AddFlags(replaced)
	(&admission.Options{}).AddMemberFlags(replaced)
	var first string
	replaced.VisitAll(func(f *pflag.Flag) {
		if first == "" && flags.Changed(f.Name) {
			first = f.Name
		}
	})
	if first != "" {
		return fmt.Errorf("--%s and --%s exclude each other: the hub's administrator decides about it with \"kubectl clusterset invite\"", inviteFlag, first)
	}
	if j.invited, err = invitation.Read(j.inviteFile, now); err != nil {
		return fmt.Errorf("--%s: %w", inviteFlag, err)
	}
	if j.ClusterID != "" && j.ClusterID != j.invited.ClusterID {
		return fmt.Errorf("--cluster-id=%s: the invitation is for %s", j.ClusterID, j.invited.ClusterID)
	}
	j.ClusterID = j.invited.ClusterID
	if j.ClusterSet == "" {
		j.ClusterSet = j.invited.ClusterSet
	}
	return nil
}

// connect connects to the hub, with the rights of the invitation if there is one, and to the cluster of the kubeconfig flags.
func (j *command) connect(ctx context.Context, usual *genericclioptions.ConfigFlags) (err error) {
	if j.invited == nil {
		j.Hub, j.member, err = connection.OpenBoth(usual, &j.hubFlags, j.WriteFlags)
		return err
	}
	if j.member, err = connection.OpenMember(usual, j.WriteFlags); err != nil {
		return err
	}
	j.Hub, err = connection.Open("the hub", "that it is reached from here", j.invited.Config(), j.WriteFlags)
	if apierrors.IsUnauthorized(err) {
		j.Hub, err = j.connectAsAgent(ctx)
	}
	return err
}

// annotationInvitation on the agent's Secret identifies the invitation by which join has written it.
const annotationInvitation = "tombolo-mcs.io/invitation"

// connectAsAgent connects to the hub with the agent's token, if the same invitation was used up to get it: by this run, or by an earlier one that
// was interrupted or refused afterwards.
func (j *command) connectAsAgent(ctx context.Context) (*connection.Cluster, error) {
	secret, err := credentials.ReadSecret(ctx, j.member)
	if err != nil {
		return nil, err
	}
	if secret == nil || secret.Annotations[annotationInvitation] != j.invited.Fingerprint() {
		return nil, invitation.ErrUsed
	}
	address := credentials.AddressIn(secret)
	if address == nil || string(address.CA) != j.invited.Hub.CertificateAuthority { // the token must not get to another server
		return nil, invitation.ErrUsed
	}
	config := j.invited.Config()
	config.BearerToken = string(secret.Data[clusterset.HubSecretToken])
	hub, err := connection.Open("the hub", "that it is reached from here", config, j.WriteFlags)
	if apierrors.IsUnauthorized(err) {
		return nil, invitation.ErrUsed
	}
	j.usedUp = true
	return hub, err
}

// checkInvitation checks that the hub accepts the invitation, for its cluster ID.
func (j *command) checkInvitation(ctx context.Context) bool {
	id := clusterset.ClusterID(j.invited.ClusterID)
	member, err := j.memberOnHub(ctx, id)
	switch {
	case apierrors.IsUnauthorized(err):
		j.r.Failf("%v", invitation.ErrUsed)
	case err != nil:
		j.r.Failf("the invitation has no right to join as %q (%v): let the hub's administrator run \"kubectl clusterset invite\" again", id, err)
	case member == nil:
		j.r.Failf("the hub has no Member for %q any more: let its administrator run \"kubectl clusterset invite\" again", id)
	case j.usedUp:
		j.r.Okf("an earlier run has used up the invitation for %q, and the hub at %s accepts the agent's token", id, j.Hub.Config.Host)
	default:
		j.r.Okf("the hub at %s accepts the invitation for %q, until %s", j.Hub.Config.Host, id, j.invited.Expires.UTC().Format(output.TimeFormat))
	}
	return member != nil
}

// hubVersion returns the version of the hub, and why it is not known. An invitation has no right to read the version, but may issue a token of the
// agent, which has the right.
func (j *command) hubVersion(ctx context.Context) (string, error) {
	if j.invited == nil || j.usedUp {
		return skew.HubVersion(ctx, j.Hub.Client)
	}
	token, err := j.issueToken(ctx, clusterset.ClusterID(j.invited.ClusterID), shortestToken)
	if err != nil {
		return "", err
	}
	config := j.invited.Config()
	config.BearerToken, config.Timeout, config.UserAgent = token.Token, connection.IdentifyTimeout, "kubectl-clusterset"
	agent, err := hubdata.Client(config)
	if err != nil {
		return "", err
	}
	return skew.HubVersion(ctx, agent)
}

// shortestToken is the shortest lifetime that API servers accept.
const shortestToken = 10 * time.Minute

// issueToken returns a token of a member's agent for the hub.
func (j *command) issueToken(ctx context.Context, id clusterset.ClusterID, lifetime time.Duration) (authenticationv1.TokenRequestStatus, error) {
	account := client.ObjectKey{Namespace: id.HubNamespace(), Name: manifests.MemberServiceAccount}
	token, err := apply.ToHub(j.Hub.Client, account.Namespace).IssueToken(ctx, account, lifetime)
	if err != nil {
		return token, fmt.Errorf("on the hub: %w", err)
	}
	return token, nil
}

// memberOnHub returns a Member on the hub, nil if there is none. An agent may list Members, and not get one.
func (j *command) memberOnHub(ctx context.Context, id clusterset.ClusterID) (*hubv1alpha1.Member, error) {
	if j.usedUp {
		list := &hubv1alpha1.MemberList{}
		if err := j.Hub.Client.List(ctx, list, client.InNamespace(id.HubNamespace())); err != nil || len(list.Items) == 0 {
			return nil, err
		}
		return &list.Items[0], nil
	}
	member := &hubv1alpha1.Member{}
	err := j.Hub.Client.Get(ctx, client.ObjectKey{Namespace: id.HubNamespace(), Name: hubv1alpha1.MemberName}, member)
	if err != nil {
		member = nil
	}
	if connection.IsAbsent(err) {
		err = nil
	}
	return member, err
}

// useUpInvitation ends the invitation, when the agent has a token: the hub refuses the token of the invitation when the Secret to which it is
// bound does not exist. Then the hub is read with the agent's token, as the agent may take longer to start than the hub caches the other one.
func (j *command) useUpInvitation(ctx context.Context) error {
	if j.invited == nil || j.usedUp || j.IsDryRun() {
		return nil
	}
	secret := client.ObjectKey{Namespace: j.ID.HubNamespace(), Name: manifests.InvitationName}
	if err := j.Hub.Install.DeleteSecret(ctx, secret); err != nil && !apierrors.IsUnauthorized(err) {
		return fmt.Errorf("the agent has a token, but the invitation can still be used: run this again, or let the hub's administrator run \"kubectl clusterset invite revoke %s\": %w", j.ID, err)
	}
	j.r.Okf("the invitation is used up")
	hub, err := j.connectAsAgent(ctx)
	if err != nil {
		return fmt.Errorf("the hub cannot be read with the agent's token: run this again: %w", err)
	}
	j.Hub = hub
	return nil
}
