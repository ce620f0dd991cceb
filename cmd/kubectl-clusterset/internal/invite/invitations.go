// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package invite

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// openInvitation is an invitation that was neither used nor revoked.
type openInvitation struct {
	Cluster clusterset.ClusterID `json:"cluster"`
	Expires string               `json:"expires"`
	State   string               `json:"state"`
}

// invitationList is what the command invite list prints as data.
type invitationList struct {
	metav1.TypeMeta `json:",inline"`
	Invitations     []openInvitation `json:"invitations"`
}

var invitationListType = metav1.TypeMeta{APIVersion: assess.StatusVersion, Kind: "InvitationList"}

func newList(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var as output.Format
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "list the invitations that were not used",
		Long:    "List the invitations that were neither used nor revoked, on the hub, whose context is the current one.",
		Example: "  kubectl clusterset invite list --context hub",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			hub, err := connection.OpenHub(usual, connection.WriteFlags{DryRunFlags: output.DryRunFlags{DryRun: install.NoDryRun}})
			if err != nil {
				return err
			}
			open, err := openInvitations(cmd.Context(), hub, time.Now())
			if err != nil {
				return err
			}
			if as.IsData() {
				return output.PrintData(streams.Out, as, invitationList{invitationListType, open})
			}
			t := &output.Table{Header: []string{"CLUSTER", "EXPIRES", "STATE"}}
			for _, i := range open {
				t.Add(string(i.Cluster), i.Expires, i.State)
			}
			t.Write(streams.Out)
			return nil
		},
	}
	output.AddFormat(cmd, &as, "json or yaml", output.JSON, output.YAML)
	return cmd
}

// openInvitations returns the invitations of a hub, sorted by cluster.
func openInvitations(ctx context.Context, hub *connection.Cluster, now time.Time) ([]openInvitation, error) {
	secrets := &corev1.SecretList{}
	if err := hub.Client.List(ctx, secrets, client.HasLabels{labelInvitation}); err != nil {
		return nil, fmt.Errorf("list the invitations on the hub: %w", err)
	}
	result := []openInvitation{}
	for _, secret := range secrets.Items {
		id, ok := clusterset.ClusterIDOfHubNamespace(secret.Namespace)
		if !ok {
			continue
		}
		i := openInvitation{id, secret.Annotations[clusterset.AnnotationTokenExpires], "open"}
		expires, err := time.Parse(time.RFC3339, i.Expires)
		switch {
		case err != nil:
			i.State = "unfinished" // an invite that was interrupted
		case !now.Before(expires):
			i.State = "expired"
		}
		result = append(result, i)
	}
	slices.SortFunc(result, func(a, b openInvitation) int { return strings.Compare(string(a.Cluster), string(b.Cluster)) })
	return result, nil
}

func newRevoke(usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var o output.DryRunFlags
	cmd := &cobra.Command{
		Use:   "revoke CLUSTERID",
		Short: "end an invitation that was not used",
		Long: "End an invitation, on the hub, whose context is the current one. The hub refuses its token within seconds. The Member stays:\n" +
			"\"kubectl clusterset leave --from hub\" deletes it.",
		Example: "  kubectl clusterset invite revoke east --context hub",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := clusterset.ParseClusterID(args[0])
			if err != nil {
				return output.Usage(err)
			}
			hub, err := connection.OpenHub(usual, connection.WriteFlags{DryRunFlags: o})
			if err != nil {
				return err
			}
			secret := newInvitationSecret(id)
			outcome, err := hub.Install.Delete(cmd.Context(), secret)
			if err != nil {
				return err
			}
			if outcome == install.NotFound {
				return fmt.Errorf("there is no invitation for %s: it was used or revoked, see kubectl clusterset invite list", id)
			}
			o.NewReport(streams).Deleted(outcome, secret, secret.GroupVersionKind().GroupKind())
			return nil
		},
	}
	o.AddFlags(cmd)
	return cmd
}
