// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package definition

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
)

// ownGroups is the end of the groups of the project's kinds.
const ownGroups = ".tombolo-mcs.io"

// HubSuffix is the end of the names of the hub's admission policies.
const HubSuffix = ".hub.tombolo-mcs.io"

// KeepsNewer reports whether the cluster has a newer definition of a kind of members, which stays: to older agents it is the same.
func KeepsNewer(ctx context.Context, c *connection.Cluster, object *unstructured.Unstructured, r *output.Report) (bool, error) {
	ours, err := To(object)
	if err != nil || !strings.HasSuffix(ours.Spec.Group, ownGroups) || strings.HasSuffix(ours.Name, HubSuffix) {
		return false, err
	}
	existing, err := Get(ctx, c, object.GetName())
	if err != nil || existing == nil {
		return false, err
	}
	lost := LostIn(existing, ours)
	if len(lost) > 0 {
		r.Notef("%s stays as it is: it is newer than this command, and has %s", object.GetName(), Listed(lost))
	}
	return len(lost) > 0, nil
}

// LostIn returns what an existing definition has and a newer one would have too: later versions of the kind, and fields and values of the
// same version. Fields are removed only with a version of the kind.
func LostIn(existing, ours *apiextensionsv1.CustomResourceDefinition) []string {
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

// maxListed is the number of items in a message.
const maxListed = 10

// Listed returns items for a message, and of many only the first ones.
func Listed(items []string) string {
	if rest := len(items) - maxListed; rest > 0 {
		return strings.Join(items[:maxListed], ", ") + fmt.Sprintf(", and %d more", rest)
	}
	return strings.Join(items, ", ")
}
