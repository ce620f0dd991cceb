// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// PropertiesOf returns the valid properties of a member, at most as many as the hub allows. The result is not nil.
func PropertiesOf(member *hubv1alpha1.Member) map[string]string {
	result := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(member.Spec.Properties)) {
		value := string(member.Spec.Properties[name])
		if CheckProperty(name, value) == nil && len(result) < hubv1alpha1.MaxProperties {
			result[name] = value
		}
	}
	return result
}

// CheckProperty returns the reason why a cluster cannot have a property; nil if it can. The name must be that of a ClusterProperty
// (KEP-2149), but not one that says who the cluster is.
func CheckProperty(name, value string) error {
	switch {
	case len(validation.IsDNS1123Subdomain(name)) > 0:
		return fmt.Errorf("property %.100q: its name must be a DNS name, such as region or region.example.com", name)
	case name == aboutv1beta1.ClusterSetProperty || strings.HasSuffix(name, "."+aboutv1beta1.ClusterSetProperty):
		return fmt.Errorf("property %s: names of %s are reserved", name, aboutv1beta1.ClusterSetProperty)
	case value == "" || utf8.RuneCountInString(value) > hubv1alpha1.MaxPropertyValueLength:
		return fmt.Errorf("property %s: its value must have 1 to %d characters", name, hubv1alpha1.MaxPropertyValueLength)
	}
	return nil
}
