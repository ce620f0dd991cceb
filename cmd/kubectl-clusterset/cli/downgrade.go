// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

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
func (c hubChange) report(policy downgradePolicy, r *report) {
	from, taken := cmp.Or(c.from, "unknown"), "takes nothing away from the kinds"
	if len(c.lost) > 0 {
		taken = "takes away " + listed(c.lost)
	}
	switch {
	case !c.isDowngrade() && len(c.lost) > 0:
		r.notef("the version of the hub is %s, and this command brings it to %s, which %s", from, c.to, taken)
	case !c.isDowngrade():
		r.okf("the version of the hub is %s, and that of this command %s: no kind is downgraded", from, c.to)
	case policy == allowDowngrade:
		r.notef("the hub is downgraded from version %s to %s, which %s: what objects have there is lost at their next write", from, c.to, taken)
	default:
		r.failf("this command (%s) is older than the hub (%s): init-hub %s. Use the command of the hub's version or a newer one. For a rollback, first roll back "+
			"all members, and then pass --%s", c.to, from, taken, allowDowngradeFlag)
	}
}

// maxListed is the number of items in a message.
const maxListed = 10

func listed(items []string) string {
	if rest := len(items) - maxListed; rest > 0 {
		return strings.Join(items[:maxListed], ", ") + fmt.Sprintf(", and %d more", rest)
	}
	return strings.Join(items, ", ")
}

// changeOf returns what the objects of a version do to the hub.
func changeOf(ctx context.Context, c *cluster, objects []*unstructured.Unstructured, version string) (hubChange, error) {
	result := hubChange{to: version}
	for _, object := range objects {
		if !isDefinition(object) {
			continue
		}
		existing, err := definition(ctx, c, object.GetName())
		if err != nil {
			return result, err
		}
		if existing == nil {
			continue
		}
		if object.GetName() == hub.VersionObject {
			result.from = existing.Annotations[clusterset.AnnotationVersion]
		}
		ours, err := toDefinition(object)
		if err != nil {
			return result, err
		}
		result.lost = append(result.lost, lostIn(existing, ours)...)
	}
	return result, nil
}

// ownGroups is the end of the groups of the project's kinds.
const ownGroups = ".tombolo-mcs.io"

// keepsNewer reports whether the cluster has a newer definition of a kind of members, which stays: to older agents it is the same.
func keepsNewer(ctx context.Context, c *cluster, object *unstructured.Unstructured, r *report) (bool, error) {
	ours, err := toDefinition(object)
	if err != nil || !strings.HasSuffix(ours.Spec.Group, ownGroups) || strings.HasSuffix(ours.Name, hubPolicies) {
		return false, err
	}
	existing, err := definition(ctx, c, object.GetName())
	if err != nil || existing == nil {
		return false, err
	}
	lost := lostIn(existing, ours)
	if len(lost) > 0 {
		r.notef("%s stays as it is: it is newer than this command, and has %s", object.GetName(), listed(lost))
	}
	return len(lost) > 0, nil
}

// lostIn returns what an existing definition has and a newer one would have too: later versions of the kind, and fields and values of the
// same version. Fields are removed only with a version of the kind.
func lostIn(existing, ours *apiextensionsv1.CustomResourceDefinition) []string {
	var lost []string
	kind := existing.Spec.Names.Kind
	isLatest := func(name string) bool {
		return !slices.ContainsFunc(ours.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
			return compareKindVersions(v.Name, name) >= 0
		})
	}
	for _, version := range existing.Spec.Versions {
		i := slices.IndexFunc(ours.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version.Name })
		switch {
		case i < 0 && isLatest(version.Name):
			lost = append(lost, "version "+version.Name+" of "+kind)
		case i >= 0 && version.Schema != nil && ours.Spec.Versions[i].Schema != nil:
			lost = append(lost, lostFields(kind, version.Schema.OpenAPIV3Schema, ours.Spec.Versions[i].Schema.OpenAPIV3Schema)...)
		}
	}
	slices.Sort(lost)
	return slices.Compact(lost)
}

// compareKindVersions compares versions of a kind by the time of their release: v1alpha1, v1beta1, v1, v2alpha1. Kubernetes' own order is by
// stability.
func compareKindVersions(a, b string) int {
	var order [2][3]int
	for i, name := range []string{a, b} {
		stage := 2 // as v1
		for s, word := range []string{"alpha", "beta"} {
			if before, after, found := strings.Cut(name, word); found {
				name, stage = before, s
				order[i][2], _ = strconv.Atoi(after) // an API server accepts only numbers
			}
		}
		order[i][0], _ = strconv.Atoi(strings.TrimPrefix(name, "v"))
		order[i][1] = stage
	}
	return slices.Compare(order[0][:], order[1][:])
}

// lostFields returns the fields and values below a path that another schema does not have.
func lostFields(path string, schema, other *apiextensionsv1.JSONSchemaProps) []string {
	if schema == nil || other == nil || other.XPreserveUnknownFields != nil && *other.XPreserveUnknownFields {
		return nil
	}
	var lost []string
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		mine, theirs := schema.Properties[name], other.Properties[name]
		if _, has := other.Properties[name]; !has {
			lost = append(lost, path+"."+name)
			continue
		}
		lost = append(lost, lostFields(path+"."+name, &mine, &theirs)...)
	}
	for _, value := range schema.Enum {
		isSame := func(o apiextensionsv1.JSON) bool { return bytes.Equal(o.Raw, value.Raw) }
		if len(other.Enum) > 0 && !slices.ContainsFunc(other.Enum, isSame) {
			lost = append(lost, path+": "+string(value.Raw))
		}
	}
	if schema.Items != nil && other.Items != nil {
		lost = append(lost, lostFields(path+"[]", schema.Items.Schema, other.Items.Schema)...)
	}
	if schema.AdditionalProperties != nil && other.AdditionalProperties != nil {
		lost = append(lost, lostFields(path+".*", schema.AdditionalProperties.Schema, other.AdditionalProperties.Schema)...)
	}
	return lost
}
