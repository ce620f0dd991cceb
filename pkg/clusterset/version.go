// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import "k8s.io/apimachinery/pkg/util/version"

// AnnotationVersion on the CustomResourceDefinition of Members is the version of a hub.
const AnnotationVersion = "tombolo-mcs.io/version"

// Age is how a version is related to another.
type Age string

// The values of Age.
const (
	Older Age = "older"
	Same  Age = "same"
	Newer Age = "newer"
	// UnknownAge is the age of versions that are not semantic, such as that of a development build.
	UnknownAge Age = "unknown"
)

// CompareVersions returns the age of a version, compared with another.
func CompareVersions(a, b string) Age {
	if a == b && a != "" {
		return Same
	}
	first, errFirst := version.ParseSemantic(a)
	second, errSecond := version.ParseSemantic(b)
	switch {
	case errFirst != nil || errSecond != nil:
		return UnknownAge
	case first.LessThan(second):
		return Older
	case second.LessThan(first):
		return Newer
	}
	return Same
}
