// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package definition compares the CustomResourceDefinitions of a cluster with those of this version, and decides which are applied.
package definition

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/config/crd"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// Is reports whether an object is a CustomResourceDefinition.
func Is(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}
}

// To converts an object to a CustomResourceDefinition.
func To(object *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	result := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, result); err != nil {
		return nil, fmt.Errorf("%s: %w", install.NameOf(object), err)
	}
	return result, nil
}

// AwaitServed waits until a defined kind is served.
func AwaitServed(ctx context.Context, c *connection.Cluster, object *unstructured.Unstructured) error {
	ours, err := To(object)
	if err != nil || c.Install.IsDryRun() {
		return err
	}
	served := schema.GroupKind{Group: ours.Spec.Group, Kind: ours.Spec.Names.Kind}
	var last error
	err = connection.Poll(ctx, func(ctx context.Context) (bool, error) {
		for _, v := range ours.Spec.Versions {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(served.WithVersion(v.Name))
			if last = c.Client.List(ctx, list, client.Limit(1)); last != nil {
				return false, connection.IgnoreTransient(last)
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("%s is not served by %s (%w): %w", served.Kind, c.What, last, err)
	}
	return nil
}

// Check fails if the cluster stores objects in a version that the new definitions lack, because applying these would
// lose the objects. The existing definitions are those of a newer release then.
func Check(ctx context.Context, c *connection.Cluster, objects []*unstructured.Unstructured, r *output.Report) error {
	for _, object := range objects {
		if !Is(object) {
			continue
		}
		ours, err := To(object)
		if err != nil {
			return err
		}
		existing, err := Get(ctx, c, object.GetName())
		if err != nil {
			return err
		}
		if existing == nil {
			continue
		}
		if lost := missingVersions(existing, ours); len(lost) > 0 {
			r.Failf("%s has %s stored in version %v, which this command does not know: use a newer one", c.What, object.GetName(), lost)
		}
	}
	return nil
}

// missingVersions returns the stored versions that the other definition lacks.
func missingVersions(existing, other *apiextensionsv1.CustomResourceDefinition) []string {
	return slices.DeleteFunc(slices.Clone(existing.Status.StoredVersions), func(stored string) bool {
		return slices.ContainsFunc(other.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored })
	})
}

// Get returns a CustomResourceDefinition of the cluster, nil if there is none.
func Get(ctx context.Context, c *connection.Cluster, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	result := &apiextensionsv1.CustomResourceDefinition{}
	err := c.Client.Get(ctx, client.ObjectKey{Name: name}, result)
	switch {
	case connection.IsAbsent(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get the CustomResourceDefinition %s of %s: %w", name, c.What, err)
	}
	return result, nil
}

// Policy states how existing definitions of a member are treated.
type Policy string

const (
	// Keep keeps existing definitions.
	Keep Policy = "keep"
	// Upgrade replaces older definitions. It never downgrades one.
	Upgrade Policy = "renew"
)

// CheckMember returns the definitions to apply: missing ones, and older ones if the policy is to upgrade. It fails if
// an existing one cannot be used.
func CheckMember(ctx context.Context, c *connection.Cluster, policy Policy, r *output.Report) ([]*unstructured.Unstructured, error) {
	definitions, err := manifests.MemberDefinitions()
	if err != nil {
		return nil, err
	}
	var needed []*unstructured.Unstructured
	for _, object := range definitions {
		existing, err := Get(ctx, c, object.GetName())
		if err != nil {
			return nil, err
		}
		ours, err := To(object)
		if err != nil {
			return nil, err
		}
		isMCS := ours.Spec.Group == mcsv1beta1.GroupVersion.Group
		switch {
		case existing == nil:
			r.Okf("%s is not there yet and will be installed", object.GetName())
			needed = append(needed, object)
		case isMCS && policy == Upgrade && older(existing, ours) && len(missingVersions(existing, ours)) == 0:
			r.Okf("%s is %s and will be brought to %s", object.GetName(), releaseOf(existing), releaseOf(ours))
			needed = append(needed, object)
		case !serves(existing, "v1beta1"):
			r.Failf("%s (%s) does not serve v1beta1, which Tombolo needs: kubectl clusterset upgrade brings it to %s, if no other program needs it as it is", object.GetName(), releaseOf(existing), releaseOf(ours))
		case isMCS && older(existing, ours):
			r.Notef("%s is %s and stays as it is; kubectl clusterset upgrade would bring it to %s", object.GetName(), releaseOf(existing), releaseOf(ours))
		case isMCS:
			r.Okf("%s is there (%s) and stays as it is", object.GetName(), releaseOf(existing))
		default:
			r.Okf("%s is there and stays as it is", object.GetName())
		}
	}
	return needed, nil
}

func serves(d *apiextensionsv1.CustomResourceDefinition, name string) bool {
	return slices.ContainsFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name && v.Served })
}

// releaseOf returns the release in the labels of a definition.
func releaseOf(d *apiextensionsv1.CustomResourceDefinition) string {
	if release := d.Labels[crd.ReleaseVersionLabel]; release != "" {
		return release
	}
	return "of an unknown release"
}

// older reports whether a definition is of an earlier release of the Multi-Cluster Services API than another, by their labels.
// Definitions without labels are older than those with them.
func older(d, other *apiextensionsv1.CustomResourceDefinition) bool {
	a, errA := version.ParseSemantic(d.Labels[crd.ReleaseVersionLabel])
	b, errB := version.ParseSemantic(other.Labels[crd.ReleaseVersionLabel])
	if errA != nil || errB != nil {
		return errA != nil && errB == nil
	}
	if !a.EqualTo(b) {
		return a.LessThan(b)
	}
	revision := func(d *apiextensionsv1.CustomResourceDefinition) int {
		n, err := strconv.Atoi(d.Labels[crd.CustomResourceDefinitionSchemaRevisionLabel])
		if err != nil {
			return -1 // older releases have no revision
		}
		return n
	}
	return revision(d) < revision(other)
}
