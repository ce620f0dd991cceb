// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inithub implements the command init-hub: it installs what a hub needs, or upgrades it.
package inithub

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/definition"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/workload"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/writing"
	hubdata "github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// minHub is the first version of Kubernetes whose admission policies can validate IP addresses and CIDRs.
var minHub = version.MustParseGeneric("1.31")

const about = `Make the current context's cluster the hub of a clusterset.

The command installs the kinds of the records, the admission policies that restrict what a member may write, a level of API
Priority and Fairness for requests of members, and the right to read that all members share. The hub runs no pod for this.
Run the command again to upgrade a hub to this version. A hub of a newer version is changed only with --allow-downgrade.`

// New returns the command init-hub.
func New(build workload.Build, usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var o connection.WriteFlags
	policy := refuseDowngrade
	var allowed bool
	cmd := &cobra.Command{
		Use:     "init-hub",
		Short:   "make a cluster the hub",
		Long:    about,
		Example: "  kubectl clusterset init-hub --context hub --dry-run\n  kubectl clusterset init-hub --context hub",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			hub, err := connection.OpenHub(usual, o)
			if err != nil {
				return err
			}
			if allowed {
				policy = allowDowngrade
			}
			return initHub(cmd.Context(), hub, hubOptions{o, build.Version, policy}, o.NewReport(streams))
		},
	}
	o.AddFlags(cmd)
	o.AddObjectOutput(cmd)
	cmd.Flags().BoolVar(&allowed, allowDowngradeFlag, false, "bring a hub of a newer version to the version of this command, for a rollback: its kinds lose what this version does not know")
	return cmd
}

// hubOptions are the options of init-hub.
type hubOptions struct {
	connection.WriteFlags
	version string
	policy  downgradePolicy
}

func initHub(ctx context.Context, hub *connection.Cluster, o hubOptions, r *output.Report) error {
	r.Titlef("Checking the hub at %s", hub.Config.Host)
	checkHubVersion(ctx, hub, r)
	if err := r.CheckError(); err != nil {
		return err
	}
	objects, err := manifests.Hub(findAudiences(ctx, hub, r)...)
	if err != nil {
		return err
	}
	if err := setVersion(objects, o.version); err != nil {
		return err
	}
	if err := definition.Check(ctx, hub, objects, r); err != nil {
		return err
	}
	change, err := changeOf(ctx, hub, objects, o.version)
	if err != nil {
		return err
	}
	change.report(o.policy, r)
	if err := r.CheckError(); err != nil {
		return err
	}
	obsolete, err := writing.ObsoletePolicies(ctx, hub, objects, r)
	if err != nil {
		return err
	}
	reviews, err := writing.ReviewAll(ctx, hub, objects, r)
	if err != nil {
		return err
	}
	r.Titlef("%s", o.Heading("On the hub"))
	if err := writing.WriteAll(ctx, hub, reviews, obsolete, r); err != nil {
		return err
	}
	if o.IsDryRun() {
		return nil
	}
	if err := awaitPolicies(ctx, hub, objects, r); err != nil {
		return err
	}
	r.Titlef("This is a hub now. Next, let clusters join: kubectl clusterset join --context <member> --hub-context <hub> --cluster-id <id>")
	return nil
}

// setVersion sets the version of the hub in its objects.
func setVersion(objects []*unstructured.Unstructured, version string) error {
	for _, object := range objects {
		if definition.Is(object) && object.GetName() == hubdata.VersionObject {
			annotations := object.GetAnnotations()
			annotations[clusterset.AnnotationVersion] = version
			object.SetAnnotations(annotations)
			return nil
		}
	}
	return fmt.Errorf("the manifests have no CustomResourceDefinition %s", hubdata.VersionObject)
}

func checkHubVersion(ctx context.Context, hub *connection.Cluster, r *output.Report) {
	if hub.Version.LessThan(minHub) {
		r.Failf("Kubernetes %s is too old for a hub: the policies that restrict the members need %s. Choose another cluster, or upgrade this one", hub.Version, minHub)
		return
	}
	policies := &admissionv1.ValidatingAdmissionPolicyList{}
	if err := hub.Client.List(ctx, policies, client.Limit(1)); err != nil {
		r.Failf("cannot read the hub's ValidatingAdmissionPolicies, which restrict the members (%v): you need an administrator's rights, and %s served", err, admissionv1.SchemeGroupVersion)
		return
	}
	r.Okf("Kubernetes %s serves admission policies", hub.Version)
}

// awaitPolicies waits until the policies have been type-checked. The API server enforces them a moment later. Importers validate
// the records of members too.
func awaitPolicies(ctx context.Context, hub *connection.Cluster, objects []*unstructured.Unstructured, r *output.Report) error {
	for _, object := range objects {
		if object.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		policy := &admissionv1.ValidatingAdmissionPolicy{}
		err := connection.Poll(ctx, func(ctx context.Context) (bool, error) {
			err := hub.Client.Get(ctx, client.ObjectKeyFromObject(object), policy)
			return err == nil && policy.Status.ObservedGeneration == policy.Generation, connection.IgnoreTransient(err)
		})
		if err != nil {
			return fmt.Errorf("%s has not been checked by the hub: does its kube-controller-manager run? %w", install.NameOf(object), err)
		}
		if checking := policy.Status.TypeChecking; checking != nil && len(checking.ExpressionWarnings) > 0 {
			r.Notef("%s: %s", install.NameOf(object), checking.ExpressionWarnings[0].Warning)
		}
	}
	return nil
}

// serviceAccountTimeout is the time to wait for the first ServiceAccount of a cluster that has just started.
const serviceAccountTimeout = 10 * time.Second

// findAudiences returns the audiences of the hub's API server. The tokens of members are restricted to them. If they cannot be
// found, it reports that and returns none.
func findAudiences(ctx context.Context, hub *connection.Cluster, r *output.Report) []string {
	var audiences []string
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, serviceAccountTimeout, true, func(ctx context.Context) (_ bool, err error) {
		audiences, err = hub.Install.TokenAudiences(ctx)
		return len(audiences) > 0, connection.IgnoreTransient(err)
	})
	if err != nil {
		r.Notef("The audiences of the hub's tokens cannot be found (%v), so members may have tokens issued for any audience. "+
			"Run init-hub again when the hub has ServiceAccounts.", err)
		return nil
	}
	r.Okf("tokens of members are for the audience %s", strings.Join(audiences, ", "))
	return audiences
}

// allowDowngradeFlag of init-hub applies older definitions.
const allowDowngradeFlag = "allow-downgrade"

// downgradePolicy states whether init-hub replaces newer definitions.
type downgradePolicy string

const (
	refuseDowngrade downgradePolicy = "refuse"
	allowDowngrade  downgradePolicy = "allow"
)

// hubChange is what init-hub does to the version of a hub.
type hubChange struct {
	// from and to are versions; from is empty if the hub does not have it.
	from, to string
	// lost are fields, values and versions of kinds that the definitions of the command do not have.
	lost []string
}

// isDowngrade reports whether the command is older than the hub: by the versions, or, if these cannot be compared, because its definitions lack
// something.
func (c hubChange) isDowngrade() bool {
	switch clusterset.CompareVersions(c.to, c.from) {
	case clusterset.Older:
		return true
	case clusterset.Newer:
		return false
	case clusterset.Same, clusterset.UnknownAge:
	}
	return len(c.lost) > 0
}

// report reports the change, and fails if it is a downgrade that is not allowed.
func (c hubChange) report(policy downgradePolicy, r *output.Report) {
	from, taken := cmp.Or(c.from, "unknown"), "takes nothing away from the kinds"
	if len(c.lost) > 0 {
		taken = "takes away " + definition.Listed(c.lost)
	}
	switch {
	case !c.isDowngrade() && len(c.lost) > 0:
		r.Notef("the version of the hub is %s, and this command brings it to %s, which %s", from, c.to, taken)
	case !c.isDowngrade():
		r.Okf("the version of the hub is %s, and the version of this command %s: no kind is downgraded", from, c.to)
	case policy == allowDowngrade:
		r.Notef("the hub is downgraded from version %s to %s, which %s: what objects have there is lost at their next write", from, c.to, taken)
	default:
		r.Failf("this command (%s) is older than the hub (%s): init-hub %s. Use the command of the hub's version or a newer one. For a rollback, first roll back "+
			"all members, and then pass --%s", c.to, from, taken, allowDowngradeFlag)
	}
}

// changeOf returns what the objects of a version do to the hub.
func changeOf(ctx context.Context, c *connection.Cluster, objects []*unstructured.Unstructured, version string) (hubChange, error) {
	result := hubChange{to: version}
	for _, object := range objects {
		if !definition.Is(object) {
			continue
		}
		existing, err := definition.Get(ctx, c, object.GetName())
		if err != nil {
			return result, err
		}
		if existing == nil {
			continue
		}
		if object.GetName() == hubdata.VersionObject {
			result.from = existing.Annotations[clusterset.AnnotationVersion]
		}
		ours, err := definition.To(object)
		if err != nil {
			return result, err
		}
		result.lost = append(result.lost, definition.LostIn(existing, ours)...)
	}
	return result, nil
}
