// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/spf13/pflag"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/apply"
	hubdata "github.com/tombolo-mcs/tombolo/internal/hub"
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
func (o *joinOptions) connect(ctx context.Context, usual *genericclioptions.ConfigFlags) (hub, member *cluster, err error) {
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
		hub, err = o.connectAsAgent(ctx, member)
	}
	return hub, member, err
}

// annotationInvitation on the agent's Secret identifies the invitation by which join has written it.
const annotationInvitation = "tombolo-mcs.io/invitation"

// fingerprint identifies the invitation, and does not reveal its token.
func (i *invitation) fingerprint() string {
	digest := sha256.Sum256([]byte(i.Token))
	return hex.EncodeToString(digest[:8])
}

// connectAsAgent connects to the hub with the agent's token, if the same invitation was used up to get it: by this run, or by an earlier one that
// was interrupted or refused afterwards.
func (o *joinOptions) connectAsAgent(ctx context.Context, member *cluster) (*cluster, error) {
	secret, err := hubSecret(ctx, member)
	if err != nil {
		return nil, err
	}
	if secret == nil || secret.Annotations[annotationInvitation] != o.invited.fingerprint() {
		return nil, errInvitationUsed
	}
	address := hubAddressIn(secret)
	if address == nil || string(address.ca) != o.invited.Hub.CertificateAuthority { // the token must not get to another server
		return nil, errInvitationUsed
	}
	config := o.invited.config()
	config.BearerToken = string(secret.Data[clusterset.HubSecretToken])
	hub, err := connect("the hub", "that it is reached from here", config, o.writeFlags)
	if apierrors.IsUnauthorized(err) {
		return nil, errInvitationUsed
	}
	o.usedUp = true
	return hub, err
}

// checkInvitation checks that the hub accepts the invitation, for its cluster ID.
func (j *joinCommand) checkInvitation(ctx context.Context) bool {
	id := clusterset.ClusterID(j.invited.ClusterID)
	member, err := j.memberOnHub(ctx, id)
	switch {
	case apierrors.IsUnauthorized(err):
		j.r.failf("%v", errInvitationUsed)
	case err != nil:
		j.r.failf("the invitation has no right to join as %q (%v): let the hub's administrator run \"kubectl clusterset invite\" again", id, err)
	case member == nil:
		j.r.failf("the hub has no Member for %q any more: let its administrator run \"kubectl clusterset invite\" again", id)
	case j.usedUp:
		j.r.okf("an earlier run has used up the invitation for %q, and the hub at %s accepts the agent's token", id, j.hub.config.Host)
	default:
		j.r.okf("the hub at %s accepts the invitation for %q, until %s", j.hub.config.Host, id, j.invited.Expires.UTC().Format(timeFormat))
	}
	return member != nil
}

// hubVersion returns the version of the hub, and why it is not known. An invitation has no right to read the version, but may issue a token of the
// agent, which has the right.
func (j *joinCommand) hubVersion(ctx context.Context) (string, error) {
	if j.invited == nil || j.usedUp {
		return versionOf(ctx, j.hub.client)
	}
	token, err := j.issueToken(ctx, clusterset.ClusterID(j.invited.ClusterID), shortestToken)
	if err != nil {
		return "", err
	}
	config := j.invited.config()
	config.BearerToken, config.Timeout, config.UserAgent = token.Token, identifyTimeout, "kubectl-clusterset"
	agent, err := hubdata.Client(config)
	if err != nil {
		return "", err
	}
	return versionOf(ctx, agent)
}

// shortestToken is the shortest lifetime that API servers accept.
const shortestToken = 10 * time.Minute

// issueToken returns a token of a member's agent for the hub.
func (j *joinCommand) issueToken(ctx context.Context, id clusterset.ClusterID, lifetime time.Duration) (authenticationv1.TokenRequestStatus, error) {
	account := client.ObjectKey{Namespace: id.HubNamespace(), Name: manifests.MemberServiceAccount}
	token, err := apply.ToHub(j.hub.client, account.Namespace).IssueToken(ctx, account, lifetime)
	if err != nil {
		return token, fmt.Errorf("on the hub: %w", err)
	}
	return token, nil
}

// memberOnHub returns a Member on the hub, nil if there is none. An agent may list Members, and not get one.
func (j *joinCommand) memberOnHub(ctx context.Context, id clusterset.ClusterID) (*hubv1alpha1.Member, error) {
	if j.usedUp {
		list := &hubv1alpha1.MemberList{}
		if err := j.hub.client.List(ctx, list, client.InNamespace(id.HubNamespace())); err != nil || len(list.Items) == 0 {
			return nil, err
		}
		return &list.Items[0], nil
	}
	member := &hubv1alpha1.Member{}
	err := j.hub.client.Get(ctx, client.ObjectKey{Namespace: id.HubNamespace(), Name: hubv1alpha1.MemberName}, member)
	if err != nil {
		member = nil
	}
	if isAbsentKind(err) {
		err = nil
	}
	return member, err
}

// useUpInvitation ends the invitation, when the agent has a token: the hub refuses the token of the invitation when the Secret to which it is
// bound does not exist. Then the hub is read with the agent's token, as the agent may take longer to start than the hub caches the other one.
func (j *joinCommand) useUpInvitation(ctx context.Context) error {
	if j.invited == nil || j.usedUp || j.isDryRun() {
		return nil
	}
	secret := client.ObjectKey{Namespace: j.id.HubNamespace(), Name: manifests.InvitationName}
	if err := j.hub.install.DeleteSecret(ctx, secret); err != nil && !apierrors.IsUnauthorized(err) {
		return fmt.Errorf("the agent has a token, but the invitation can still be used: run this again, or let the hub's administrator run \"kubectl clusterset invite revoke %s\": %w", j.id, err)
	}
	j.r.okf("the invitation is used up")
	hub, err := j.connectAsAgent(ctx, j.member)
	if err != nil {
		return fmt.Errorf("the hub cannot be read with the agent's token: run this again: %w", err)
	}
	j.hub = hub
	return nil
}
