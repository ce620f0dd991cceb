// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/apply"
	hubdata "github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/manifests"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// minHub is the first version of Kubernetes whose admission policies can validate IP addresses and CIDRs.
var minHub = version.MustParseGeneric("1.31")

const aboutInitHub = `Make the current context's cluster the hub of a clusterset.

The command installs the kinds of the records, the admission policies that restrict what a member may write, a level of API
Priority and Fairness for requests of members, and the right to read that all members share. The hub runs no pod for this.
Run the command again to upgrade a hub to this version. A hub of a newer version is changed only with --allow-downgrade.`

func newInitHub(build Build, usual *genericclioptions.ConfigFlags, streams genericiooptions.IOStreams) *cobra.Command {
	var o writeFlags
	policy := refuseDowngrade
	var allowed bool
	cmd := &cobra.Command{
		Use:     "init-hub",
		Short:   "make a cluster the hub",
		Long:    aboutInitHub,
		Example: "  kubectl clusterset init-hub --context hub --dry-run\n  kubectl clusterset init-hub --context hub",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := usual.ToRESTConfig()
			if err != nil {
				return usageError{err}
			}
			hub, err := connect("the hub", "--kubeconfig and --context", config, o)
			if err != nil {
				return err
			}
			if allowed {
				policy = allowDowngrade
			}
			return initHub(cmd.Context(), hub, hubOptions{o, build.Version, policy}, o.report(streams))
		},
	}
	o.addFlags(cmd)
	o.addObjectOutput(cmd)
	cmd.Flags().BoolVar(&allowed, allowDowngradeFlag, false, "bring a hub of a newer version to the version of this command, for a rollback: its kinds lose what this version does not know")
	return cmd
}

// hubOptions are the options of init-hub.
type hubOptions struct {
	writeFlags
	version string
	policy  downgradePolicy
}

func initHub(ctx context.Context, hub *cluster, o hubOptions, r *report) error {
	r.titlef("Checking the hub at %s", hub.config.Host)
	checkHubVersion(ctx, hub, r)
	if err := r.checkError(); err != nil {
		return err
	}
	objects, err := manifests.Hub(findAudiences(ctx, hub, r)...)
	if err != nil {
		return err
	}
	if err := setVersion(objects, o.version); err != nil {
		return err
	}
	if err := checkDefinitions(ctx, hub, objects, r); err != nil {
		return err
	}
	change, err := changeOf(ctx, hub, objects, o.version)
	if err != nil {
		return err
	}
	change.report(o.policy, r)
	if err := r.checkError(); err != nil {
		return err
	}
	obsolete, err := obsoleteHubPolicies(ctx, hub, objects, r)
	if err != nil {
		return err
	}
	reviews, err := reviewAll(ctx, hub, objects, r)
	if err != nil {
		return err
	}
	r.titlef("%s", o.heading("On the hub"))
	if err := writeAll(ctx, hub, reviews, obsolete, r); err != nil {
		return err
	}
	if o.isDryRun() {
		return nil
	}
	if err := awaitPolicies(ctx, hub, objects, r); err != nil {
		return err
	}
	r.titlef("This is a hub now. Next, let clusters join: kubectl clusterset join --context <member> --hub-context <hub> --cluster-id <id>")
	return nil
}

// setVersion sets the version of the hub in its objects.
func setVersion(objects []*unstructured.Unstructured, version string) error {
	for _, object := range objects {
		if isDefinition(object) && object.GetName() == hubdata.VersionObject {
			annotations := object.GetAnnotations()
			annotations[clusterset.AnnotationVersion] = version
			object.SetAnnotations(annotations)
			return nil
		}
	}
	return fmt.Errorf("the manifests have no CustomResourceDefinition %s", hubdata.VersionObject)
}

func checkHubVersion(ctx context.Context, hub *cluster, r *report) {
	if hub.version.LessThan(minHub) {
		r.failf("Kubernetes %s is too old for a hub: the policies that restrict the members need %s. Choose another cluster, or upgrade this one", hub.version, minHub)
		return
	}
	policies := &admissionv1.ValidatingAdmissionPolicyList{}
	if err := hub.client.List(ctx, policies, client.Limit(1)); err != nil {
		r.failf("cannot read the hub's ValidatingAdmissionPolicies, which restrict the members (%v): you need an administrator's rights, and %s served", err, admissionv1.SchemeGroupVersion)
		return
	}
	r.okf("Kubernetes %s serves admission policies", hub.version)
}

// pollTimeout limits the time until a cluster has processed a write, which usually takes seconds.
const pollTimeout = 2 * time.Minute

// awaitPolicies waits until the policies have been type-checked. The API server enforces them a moment later. Importers validate
// the records of members too.
func awaitPolicies(ctx context.Context, hub *cluster, objects []*unstructured.Unstructured, r *report) error {
	for _, object := range objects {
		if object.GetKind() != "ValidatingAdmissionPolicy" {
			continue
		}
		policy := &admissionv1.ValidatingAdmissionPolicy{}
		err := poll(ctx, func(ctx context.Context) (bool, error) {
			err := hub.client.Get(ctx, client.ObjectKeyFromObject(object), policy)
			return err == nil && policy.Status.ObservedGeneration == policy.Generation, ignoreTransient(err)
		})
		if err != nil {
			return fmt.Errorf("%s has not been checked by the hub: does its kube-controller-manager run? %w", nameOf(object), err)
		}
		if checking := policy.Status.TypeChecking; checking != nil && len(checking.ExpressionWarnings) > 0 {
			r.notef("%s: %s", nameOf(object), checking.ExpressionWarnings[0].Warning)
		}
	}
	return nil
}

// poll calls done until it returns true or an error, or until pollTimeout.
func poll(ctx context.Context, done wait.ConditionWithContextFunc) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	return pollUntilEnd(ctx, done)
}

// pollUntilEnd calls done until it returns true or an error, or until the context ends.
func pollUntilEnd(ctx context.Context, done wait.ConditionWithContextFunc) error {
	return wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, done)
}

// ignoreTransient returns nil for errors that may not occur again. An API server that is starting refuses some objects as invalid.
func ignoreTransient(err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) || apply.IsFinal(err) {
		return err
	}
	return nil
}
