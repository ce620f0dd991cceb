// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const aboutInvite = `Invite a cluster to join, on the hub, whose context is the current one. An administrator of that cluster can then
join it without rights on the hub: kubectl clusterset join --invite FILE.

The command creates the Member with these settings, its namespace and its account. It writes a file with the URL of the hub,
its certificate authority, and a token that can only be used to join with this cluster ID, until the cluster has joined, you
revoke the invitation, or --ttl ends. Another invitation for the same ID replaces it.

The file is a credential: until it is used, any client that has it can join in place of that cluster.`

const examplesInvite = `  kubectl clusterset invite --context hub --cluster-id east --pod-cidrs 10.1.0.0/16 --ttl 1h -o east.yaml
  kubectl clusterset join --context east --invite east.yaml

  kubectl clusterset invite list --context hub
  kubectl clusterset invite revoke east --context hub`

// The limits of --ttl: what Kubernetes allows, and the lifetime of the token of an agent.
const (
	minInvitation     = 10 * time.Minute
	maxInvitation     = clusterset.TokenLifetime
	defaultInvitation = time.Hour
)

// inviteCommand is the state of the command invite. It is a join without the cluster.
type inviteCommand struct {
	joinCommand
	ttl  time.Duration
	file string
}

func newInvite(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	v := &inviteCommand{}
	cmd := &cobra.Command{
		Use:     "invite",
		Short:   "let a cluster join without rights on the hub",
		Long:    aboutInvite,
		Example: examplesInvite,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := v.parse(cmd); err != nil {
				return usageError{err}
			}
			var err error
			if v.hub, err = connectHub(usual, dryRunFlags{dryRun: install.NoDryRun}); err != nil {
				return err
			}
			v.r = &report{out: streams.Out}
			return v.run(cmd.Context())
		},
	}
	v.addIdentityFlags(cmd.Flags())
	v.addMemberFlags(cmd.Flags())
	cmd.Flags().DurationVar(&v.ttl, "ttl", defaultInvitation, "how long the invitation can be used, from 10m to 72h")
	cmd.Flags().StringVarP(&v.file, "output", "o", "", "write the invitation to this file, which must not exist")
	for name, usage := range map[string]string{ // what differs from join
		"cluster-id":    "the cluster's ID in the clusterset, a DNS label; required",
		"pod-cidrs":     "ranges of the cluster's pods; defaults to the Member's",
		"node-cidrs":    "ranges of the cluster's nodes; defaults to the Member's",
		"service-cidrs": "ranges of the cluster's Services; defaults to the Member's",
		"hub-server":    "the hub's URL for the cluster's pods; defaults to the kubeconfig's",
		"hub-ca":        "file with the certificate authority of that URL; defaults to the kubeconfig's",
	} {
		cmd.Flags().Lookup(name).Usage = usage
	}
	cmd.AddCommand(newInviteList(usual, streams), newInviteRevoke(usual, streams))
	return cmd
}

func (v *inviteCommand) parse(cmd *cobra.Command) error {
	id, err := clusterset.ParseClusterID(v.joinOptions.id)
	if err != nil {
		return fmt.Errorf("--cluster-id: %w", err)
	}
	v.id = id
	switch {
	case v.file == "":
		return errors.New("pass -o with the file for the invitation")
	case v.ttl < minInvitation || v.ttl > maxInvitation:
		return fmt.Errorf("--ttl=%s: must be from %s to %s", v.ttl, minInvitation, maxInvitation)
	}
	return v.joinOptions.parse(cmd.Flags())
}

func (v *inviteCommand) run(ctx context.Context) (err error) {
	v.r.titlef("Checking the hub at %s", v.hub.config.Host)
	if err := v.checkInvited(ctx); err != nil {
		return err
	}
	if err := v.r.checkError(); err != nil {
		return err
	}
	file, err := os.OpenFile(v.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("%w: name another with -o", err)
	}
	v.r.titlef("On the hub")
	err = v.write(ctx, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(v.file))
	}
	v.r.titlef("%s invites %s. Give it to an administrator of that cluster, and to no one else: kubectl clusterset join --invite %s", v.file, v.id, v.file)
	return nil
}

// checkInvited checks what can be checked without the cluster.
func (v *inviteCommand) checkInvited(ctx context.Context) error {
	if !v.checkHub(ctx) {
		return nil
	}
	member := &hubv1alpha1.Member{}
	err := v.hub.client.Get(ctx, client.ObjectKey{Namespace: v.id.HubNamespace(), Name: hubv1alpha1.MemberName}, member)
	if err != nil && !isAbsentKind(err) {
		return fmt.Errorf("get Member of %s on the hub: %w", v.id, err)
	}
	if err == nil {
		v.admitted, v.uid = member, member.Annotations[annotationClusterUID]
		if member.Spec.Suspended {
			v.r.failf("%s", suspendedMember(v.id))
		}
	}
	beat, err := v.heartbeat(ctx)
	if err != nil {
		return err
	}
	if beat != nil {
		v.r.notef("%q is a member already: only the same cluster can use the invitation, to get a new token", v.id)
	}
	v.own = v.given
	if v.admitted != nil {
		known := rangesOf(v.admitted.Spec)
		v.own = ranges{orElse(v.given.pods, known.pods), orElse(v.given.nodes, known.nodes), orElse(v.given.services, known.services)}
	}
	if len(v.own.pods) == 0 {
		v.r.failf("the pod CIDRs of %s are not known: pass --pod-cidrs", v.id)
	}
	if err := v.checkOverlaps(ctx); err != nil {
		return err
	}
	config := rest.CopyConfig(v.hub.config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return fmt.Errorf("the hub's kubeconfig: %w", err)
	}
	address, server, ca := v.chooseHubAddress(hubAddress{server: config.Host, ca: config.CAData}, nil)
	v.useHubAddress(address, server, ca)
	return nil
}

// orElse returns the first value that is not empty.
func orElse[T any](first, second []T) []T {
	if len(first) > 0 {
		return first
	}
	return second
}

// write creates the objects of the member and of the invitation on the hub, and writes the file.
func (v *inviteCommand) write(ctx context.Context, file *os.File) error {
	if err := v.admit(ctx); err != nil {
		return err
	}
	if v.admitted != nil {
		if err := v.limit(ctx); err != nil {
			return err
		}
	}
	objects, err := manifests.Invitation(v.id)
	if err != nil {
		return err
	}
	if err := applyAll(ctx, v.hub, objects, v.r); err != nil {
		return err
	}
	secret := newInvitationSecret(v.id)
	outcome, err := v.hub.install.Delete(ctx, secret) // the end of an earlier invitation
	if err != nil {
		return err
	}
	if outcome == install.Deleted {
		if err := awaitDeleted(ctx, v.hub, secret); err != nil {
			return err
		}
	}
	if err := applyAll(ctx, v.hub, []*unstructured.Unstructured{secret}, v.r); err != nil {
		return err
	}
	bound, account := &corev1.Secret{}, client.ObjectKey{Namespace: v.id.HubNamespace(), Name: manifests.InvitationName}
	if err := v.hub.client.Get(ctx, account, bound); err != nil {
		return fmt.Errorf("get Secret %s: %w", account, err)
	}
	token, err := v.hub.install.IssueBoundToken(ctx, account, bound, v.ttl)
	if err != nil {
		return err
	}
	secret.SetAnnotations(map[string]string{clusterset.AnnotationTokenExpires: token.ExpirationTimestamp.UTC().Format(time.RFC3339)})
	if _, err := v.hub.install.Apply(ctx, secret); err != nil {
		return err
	}
	content, err := (&invitation{
		TypeMeta:  metav1.TypeMeta{APIVersion: survey.StatusVersion, Kind: invitationKind},
		ClusterID: string(v.id), ClusterSet: v.clusterSet, Expires: token.ExpirationTimestamp,
		Hub: invitedHub{Server: v.hubAddress.server, CertificateAuthority: string(v.hubAddress.ca)}, Token: token.Token,
	}).text()
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return err
}

// labelInvitation marks the Secret of an invitation. The Secret has no content: it exists as long as the invitation can be used.
const labelInvitation = "tombolo-mcs.io/invitation"

func newInvitationSecret(id clusterset.ClusterID) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret",
		"metadata": map[string]any{
			"namespace": id.HubNamespace(), "name": manifests.InvitationName,
			"labels": map[string]any{labelPartOf: partOf, labelInvitation: string(id)},
		},
	}}
}
