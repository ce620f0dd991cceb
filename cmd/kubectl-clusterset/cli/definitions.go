// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/mcs-api/config/crd"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/install"
	"github.com/tombolo-mcs/tombolo/manifests"
)

func nameOf(object *unstructured.Unstructured) string { return install.NameOf(object) }

func isDefinition(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}
}

func toDefinition(object *unstructured.Unstructured) (*apiextensionsv1.CustomResourceDefinition, error) {
	result := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, result); err != nil {
		return nil, fmt.Errorf("%s: %w", nameOf(object), err)
	}
	return result, nil
}

// awaitServed returns when a kind that has been defined is served.
func awaitServed(ctx context.Context, c *cluster, object *unstructured.Unstructured) error {
	definition, err := toDefinition(object)
	if err != nil || c.install.IsDryRun() {
		return err
	}
	served := schema.GroupKind{Group: definition.Spec.Group, Kind: definition.Spec.Names.Kind}
	var last error
	err = poll(ctx, func(ctx context.Context) (bool, error) {
		for _, v := range definition.Spec.Versions {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(served.WithVersion(v.Name))
			if last = c.client.List(ctx, list, client.Limit(1)); last != nil {
				return false, ignoreTransient(last)
			}
		}
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("%s is not served by %s (%w): %w", served.Kind, c.what, last, err)
	}
	return nil
}

// checkDefinitions fails where the cluster has objects stored in a version that the definitions to be applied lack: to
// replace them would lose the objects. They come from a newer release than this.
func checkDefinitions(ctx context.Context, c *cluster, objects []*unstructured.Unstructured, r *report) error {
	before := r.failed
	for _, object := range objects {
		if !isDefinition(object) {
			continue
		}
		ours, err := toDefinition(object)
		if err != nil {
			return err
		}
		there, err := definition(ctx, c, object.GetName())
		if err != nil {
			return err
		}
		if there == nil {
			continue
		}
		if lost := lostVersions(there, ours); len(lost) > 0 {
			r.failf("%s has %s stored in version %v, which this command does not know: use a newer one", c.what, object.GetName(), lost)
		}
	}
	if r.failed == before {
		r.okf("no kind of %s would be downgraded", c.what)
	}
	return nil
}

// lostVersions returns the versions in which objects are stored, and which the other definition lacks.
func lostVersions(there, other *apiextensionsv1.CustomResourceDefinition) []string {
	return slices.DeleteFunc(slices.Clone(there.Status.StoredVersions), func(stored string) bool {
		return slices.ContainsFunc(other.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored })
	})
}

// definition returns a CustomResourceDefinition of the cluster, nil where there is none.
func definition(ctx context.Context, c *cluster, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	result := &apiextensionsv1.CustomResourceDefinition{}
	err := c.client.Get(ctx, client.ObjectKey{Name: name}, result)
	switch {
	case isAbsentKind(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get the CustomResourceDefinition %s of %s: %w", name, c.what, err)
	}
	return result, nil
}

// definitionPolicy says what may become of kinds that a member has already.
type definitionPolicy string

const (
	// keep leaves them alone.
	keep definitionPolicy = "keep"
	// renew brings older ones up to this release's. Nothing is ever downgraded.
	renew definitionPolicy = "renew"
)

// checkMemberDefinitions returns the definitions that the member needs: those that it lacks, and older ones where they
// are to be renewed. It fails where what is there cannot be used.
func checkMemberDefinitions(ctx context.Context, c *cluster, policy definitionPolicy, r *report) ([]*unstructured.Unstructured, error) {
	definitions, err := manifests.MemberDefinitions()
	if err != nil {
		return nil, err
	}
	var needed []*unstructured.Unstructured
	for _, object := range definitions {
		there, err := definition(ctx, c, object.GetName())
		if err != nil {
			return nil, err
		}
		ours, err := toDefinition(object)
		if err != nil {
			return nil, err
		}
		isMCS := ours.Spec.Group == mcsv1beta1.GroupVersion.Group
		switch {
		case there == nil:
			r.okf("%s is not there yet and will be installed", object.GetName())
			needed = append(needed, object)
		case isMCS && policy == renew && older(there, ours) && len(lostVersions(there, ours)) == 0:
			r.okf("%s is %s and will be brought to %s", object.GetName(), releaseOf(there), releaseOf(ours))
			needed = append(needed, object)
		case !serves(there, "v1beta1"):
			r.failf("%s (%s) does not serve v1beta1, which Tombolo needs: kubectl clusterset upgrade brings it to %s, if no other program needs it as it is", object.GetName(), releaseOf(there), releaseOf(ours))
		case isMCS && older(there, ours):
			r.notef("%s is %s and stays as it is; kubectl clusterset upgrade would bring it to %s", object.GetName(), releaseOf(there), releaseOf(ours))
		case isMCS:
			r.okf("%s is there (%s) and stays as it is", object.GetName(), releaseOf(there))
		default:
			r.okf("%s is there and stays as it is", object.GetName())
		}
	}
	return needed, nil
}

func serves(d *apiextensionsv1.CustomResourceDefinition, name string) bool {
	return slices.ContainsFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name && v.Served })
}

// releaseOf returns what a definition's labels say, for people.
func releaseOf(d *apiextensionsv1.CustomResourceDefinition) string {
	if release := d.Labels[crd.ReleaseVersionLabel]; release != "" {
		return release
	}
	return "of an unknown release"
}

// older reports whether a definition is of an earlier release of the Multi-Cluster Services API than another, by the labels
// that are there for this. One without labels is older than they are.
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
			return -1 // none: before there were any
		}
		return n
	}
	return revision(d) < revision(other)
}

// isAbsentKind reports whether an object or its whole kind does not exist.
func isAbsentKind(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }
