// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// AnnotationImport is an annotation of a Service that makes it an alias: it has the endpoints of the import with this name in its
// namespace (L1).
const AnnotationImport = "tombolo-mcs.io/import"

// LabelAliasOf is a label of the EndpointSlices that an alias has of its import: the name of the import. They have no label with the name
// of an imported service, so that neither DNS servers nor agents take them for mirrored slices.
const LabelAliasOf = "tombolo-mcs.io/alias-of"

// IsAlias reports whether a Service is an alias. Managed Services are none.
func IsAlias(service *corev1.Service) bool {
	_, annotated := service.Annotations[AnnotationImport]
	return annotated && !IsManaged(service.Labels)
}

// AliasImport returns the name of the import whose endpoints an alias has, or why it has none: it can only be an import of the namespace
// of the alias. With an import of another namespace, a user could reach endpoints there without a right in that namespace
// (CVE-2021-25740).
func AliasImport(alias *corev1.Service) (string, error) {
	name := alias.Annotations[AnnotationImport]
	switch {
	case strings.Contains(name, "/"):
		return "", fmt.Errorf("annotation %s: %.70q is refused: a Service can have the endpoints of imports of its own namespace only, so write the name without a namespace",
			AnnotationImport, name)
	case len(validation.IsDNS1123Label(name)) > 0:
		return "", fmt.Errorf("annotation %s: %.70q is not the name of a ServiceImport", AnnotationImport, name)
	case alias.Spec.Type == corev1.ServiceTypeExternalName:
		return "", errors.New("a Service of type ExternalName has no endpoints")
	}
	return name, nil
}

// AliasSliceName returns the name of the EndpointSlice that an alias has for a mirrored slice. The names are unique, because the name of
// a Service contains no dot.
func AliasSliceName(alias, mirrored string) string { return alias + "." + mirrored }

// AliasOf returns the name of the alias, and of the mirrored slice, from the name of an EndpointSlice of an alias, and false if the name
// has another form. It does not read labels, which users can edit.
func AliasOf(slice string) (alias, mirrored string, ok bool) {
	alias, mirrored, _ = strings.Cut(slice, ".")
	return alias, mirrored, strings.HasPrefix(mirrored, derivedPrefix)
}
