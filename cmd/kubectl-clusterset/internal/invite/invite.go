// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package invite implements the command invite, and its subcommands list and revoke: they admit a cluster without its own API server.
package invite

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
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/admission"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/credentials"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/identity"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/invitation"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/ranges"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/writing"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const about = `Invite a cluster to join, on the hub, whose context is the current one. An administrator of that cluster can then
join it without rights on the hub: kubectl clusterset join --invite FILE.

The command creates the Member with these settings, its namespace and its account. It writes a file with the URL of the hub,
its certificate authority, and a token that can only be used to join with this cluster ID, until the cluster has joined, you
revoke the invitation, or --ttl ends. Another invitation for the same ID replaces it.

The file is a credential: until it is used, any client that has it can join in place of that cluster.`

const examples = `  kubectl clusterset invite --context hub --cluster-id east --pod-cidrs 10.1.0.0/16 --ttl 1h -o east.yaml
  kubectl clusterset join --context east --invite east.yaml

  kubectl clusterset invite list --context hub
  kubectl clusterset invite revoke east --context hub`

// The limits of --ttl: what Kubernetes allows, and the lifetime of the token of an agent.
const (
	minInvitation     = 10 * time.Minute
	maxInvitation     = clusterset.TokenLifetime
	defaultInvitation = time.Hour
)

// command is the state of the command invite. It admits a candidate as join does, without the cluster.
type command struct {
	admission.Candidate
	ttl  time.Duration
	file string
}

// New returns the command invite.
func New(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	v := &command{}
	cmd := &cobra.Command{
		Use:     "invite",
		Short:   "let a cluster join without rights on the hub",
		Long:    about,
		Example: examples,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := v.parse(cmd); err != nil {
				return output.Usage(err)
			}
			var err error
			if v.Hub, err = connection.OpenHub(usual, connection.WriteFlags{DryRunFlags: output.DryRunFlags{DryRun: install.NoDryRun}}); err != nil {
				return err
			}
			v.Report = &output.Report{Out: streams.Out}
			return v.run(cmd.Context())
		},
	}
	v.AddIdentityFlags(cmd.Flags())
	v.AddMemberFlags(cmd.Flags())
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
	cmd.AddCommand(newList(usual, streams), newRevoke(usual, streams))
	return cmd
}

func (v *command) parse(cmd *cobra.Command) error {
	id, err := clusterset.ParseClusterID(v.ClusterID)
	if err != nil {
		return fmt.Errorf("--cluster-id: %w", err)
	}
	v.ID = id
	switch {
	case v.file == "":
		return errors.New("pass -o with the file for the invitation")
	case v.ttl < minInvitation || v.ttl > maxInvitation:
		return fmt.Errorf("--ttl=%s: must be from %s to %s", v.ttl, minInvitation, maxInvitation)
	}
	if err := errors.Join(v.ParseNetwork(), v.CheckProperties()); err != nil {
		return err
	}
	return v.ParseMember(cmd.Flags())
}

func (v *command) run(ctx context.Context) (err error) {
	v.Report.Titlef("Checking the hub at %s", v.Hub.Config.Host)
	if err := v.checkInvited(ctx); err != nil {
		return err
	}
	if err := v.Report.CheckError(); err != nil {
		return err
	}
	file, err := os.OpenFile(v.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("%w: name another with -o", err)
	}
	v.Report.Titlef("On the hub")
	err = v.write(ctx, file)
	if err = errors.Join(err, file.Close()); err != nil {
		return errors.Join(err, os.Remove(v.file))
	}
	v.Report.Titlef("%s invites %s. Give it to an administrator of that cluster, and to no one else: kubectl clusterset join --invite %s", v.file, v.ID, v.file)
	return nil
}

// checkInvited checks what can be checked without the cluster.
func (v *command) checkInvited(ctx context.Context) error {
	if !v.CheckHub(ctx) {
		return nil
	}
	member := &hubv1alpha1.Member{}
	err := v.Hub.Client.Get(ctx, client.ObjectKey{Namespace: v.ID.HubNamespace(), Name: hubv1alpha1.MemberName}, member)
	if err != nil && !connection.IsAbsent(err) {
		return fmt.Errorf("get Member of %s on the hub: %w", v.ID, err)
	}
	if err == nil {
		v.Admitted, v.UID = member, member.Annotations[identity.AnnotationClusterUID]
		if member.Spec.Suspended {
			v.Report.Failf("%s", admission.SuspendedMember(v.ID))
		}
	}
	beat, err := identity.Heartbeat(ctx, v.Hub, v.ID)
	if err != nil {
		return err
	}
	if beat != nil {
		v.Report.Notef("%q is a member already: only the same cluster can use the invitation, to get a new token", v.ID)
	}
	v.Own = v.Given
	if v.Admitted != nil {
		known := ranges.Of(v.Admitted.Spec)
		v.Own = ranges.Set{Pods: orElse(v.Given.Pods, known.Pods), Nodes: orElse(v.Given.Nodes, known.Nodes), Services: orElse(v.Given.Services, known.Services)}
	}
	if len(v.Own.Pods) == 0 {
		v.Report.Failf("the pod CIDRs of %s are not known: pass --pod-cidrs", v.ID)
	}
	if err := v.CheckOverlaps(ctx); err != nil {
		return err
	}
	config := rest.CopyConfig(v.Hub.Config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return fmt.Errorf("the hub's kubeconfig: %w", err)
	}
	address, server, ca := v.ChooseHubAddress(credentials.Address{Server: config.Host, CA: config.CAData}, admission.FromKubeconfig, nil)
	v.UseHubAddress(address, server, ca)
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
func (v *command) write(ctx context.Context, file *os.File) error {
	if err := v.Admit(ctx); err != nil {
		return err
	}
	if v.Admitted != nil {
		if err := v.Limit(ctx); err != nil {
			return err
		}
	}
	objects, err := manifests.Invitation(v.ID)
	if err != nil {
		return err
	}
	if err := writing.ApplyAll(ctx, v.Hub, objects, v.Report); err != nil {
		return err
	}
	secret := newInvitationSecret(v.ID)
	outcome, err := v.Hub.Install.Delete(ctx, secret) // the end of an earlier invitation
	if err != nil {
		return err
	}
	if outcome == install.Deleted {
		if err := writing.AwaitDeleted(ctx, v.Hub, secret); err != nil {
			return err
		}
	}
	if err := writing.ApplyAll(ctx, v.Hub, []*unstructured.Unstructured{secret}, v.Report); err != nil {
		return err
	}
	bound, account := &corev1.Secret{}, client.ObjectKey{Namespace: v.ID.HubNamespace(), Name: manifests.InvitationName}
	if err := v.Hub.Client.Get(ctx, account, bound); err != nil {
		return fmt.Errorf("get Secret %s: %w", account, err)
	}
	token, err := v.Hub.Install.IssueBoundToken(ctx, account, bound, v.ttl)
	if err != nil {
		return err
	}
	secret.SetAnnotations(map[string]string{clusterset.AnnotationTokenExpires: token.ExpirationTimestamp.UTC().Format(time.RFC3339)})
	if _, err := v.Hub.Install.Apply(ctx, secret); err != nil {
		return err
	}
	content, err := (&invitation.File{
		TypeMeta:  metav1.TypeMeta{APIVersion: assess.StatusVersion, Kind: invitation.Kind},
		ClusterID: string(v.ID), ClusterSet: v.ClusterSet, Expires: token.ExpirationTimestamp,
		Hub: invitation.Hub{Server: v.HubAddress.Server, CertificateAuthority: string(v.HubAddress.CA)}, Token: token.Token,
	}).Text()
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
			"labels": map[string]any{identity.LabelPartOf: identity.PartOf, labelInvitation: string(id)},
		},
	}}
}
