// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// maxObjects limits the number of objects of a kind.
const maxObjects = 5000

// ourAnnotations are the annotations that Tombolo writes, without secrets.
var ourAnnotations = []string{clusterset.AnnotationDerivedService, clusterset.AnnotationTokenExpires}

// ourDomains are the domains of labels that are known to hold no secrets.
var ourDomains = []string{"kubernetes.io", "tombolo-mcs.io"}

// metadataFields are the copied fields of an object's metadata, besides labels and annotations.
var metadataFields = []string{"name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "finalizers"}

// fields are the paths that are copied from an object, through lists.
type fields []string

// The fields that are copied from each kind.
var (
	whole       = fields{"spec", "status", "endpoints", "ports", "addressType"}
	exportFacts = fields{"status"}
	nothing     = fields{}
	// gatewayFacts leave out the certificates of authorities, which are long.
	gatewayFacts = fields{"spec.cluster", "spec.addresses", "spec.versions", "spec.refusedRanges", "report"}
	podFacts     = fields{"spec.nodeName", "status.phase", "status.conditions", "status.containerStatuses", "status.startTime"}
	agentFacts   = fields{
		"spec.replicas", "status", "spec.template.spec.containers.name", "spec.template.spec.containers.image",
		"spec.template.spec.containers.args", "spec.template.spec.containers.resources",
	}
	eventFacts = fields{
		"type", "reason", "message", "note", "action", "count", "firstTimestamp", "lastTimestamp", "eventTime", "involvedObject", "regarding", "series",
		"reportingComponent", "source",
	}
	recordFacts = fields{
		"spec.namespace", "spec.service", "spec.exportedAt", "spec.type", "spec.ports", "spec.ipFamilies", "spec.sessionAffinity",
		"spec.sessionAffinityTimeoutSeconds", "spec.internalTrafficPolicy", "spec.trafficDistribution",
	}
)

// cleaned returns the objects of a list with the given fields only.
func cleaned(list client.ObjectList, take fields) ([]map[string]any, error) {
	var result []map[string]any
	err := meta.EachListItem(list, func(object runtime.Object) error {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
		if err != nil {
			return err
		}
		result = append(result, clean(content, take))
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", clusterset.KindOf(list), err)
	}
	return result, nil
}

func clean(content map[string]any, take fields) map[string]any {
	metadata := map[string]any{}
	from, _, _ := unstructured.NestedMap(content, "metadata")
	for _, name := range metadataFields {
		if value, ok := from[name]; ok && value != nil {
			metadata[name] = value
		}
	}
	for kind, keep := range map[string]func(string) bool{"labels": isOurLabel, "annotations": isOurAnnotation} {
		if kept := picked(from[kind], keep); len(kept) > 0 {
			metadata[kind] = kept
		}
	}
	result := map[string]any{"metadata": metadata}
	for _, path := range take {
		copyField(content, result, strings.Split(path, "."))
	}
	return result
}

func picked(from any, keep func(string) bool) map[string]any {
	all, _ := from.(map[string]any)
	result := map[string]any{}
	for key, value := range all {
		if keep(key) {
			result[key] = value
		}
	}
	return result
}

func isOurLabel(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	for _, ours := range ourDomains {
		if ok && (domain == ours || strings.HasSuffix(domain, "."+ours)) {
			return true
		}
	}
	return false
}

func isOurAnnotation(key string) bool {
	for _, ours := range ourAnnotations {
		if key == ours {
			return true
		}
	}
	return false
}

// copyField copies the value at a path. For a list, it copies the field of each item to the item with the same index.
func copyField(from, into map[string]any, path []string) {
	value, ok := from[path[0]]
	if !ok {
		return
	}
	if len(path) == 1 {
		into[path[0]] = value
		return
	}
	switch value := value.(type) {
	case map[string]any:
		inner, ok := into[path[0]].(map[string]any)
		if !ok {
			inner = map[string]any{}
			into[path[0]] = inner
		}
		copyField(value, inner, path[1:])
	case []any:
		items, ok := into[path[0]].([]any)
		if !ok {
			items = make([]any, len(value))
			for i := range items {
				items[i] = map[string]any{}
			}
			into[path[0]] = items
		}
		for i := range value {
			if item, ok := value[i].(map[string]any); ok {
				copyField(item, items[i].(map[string]any), path[1:]) //nolint:forcetypeassert // made above
			}
		}
	}
}
