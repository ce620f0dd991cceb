// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"fmt"
	"slices"
	"strings"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ManagedBy is the value by which Tombolo marks what it owns. What does not carry it is never deleted, and changed only where
// HasLostMark says that it was taken away.
const ManagedBy = "tombolo-mcs.io"

// FieldManager is the name under which agents write in their clusters. API servers note it in the managed fields of objects.
const FieldManager = "tombolo-agent"

// Labels and annotations on derived Services, mirrored EndpointSlices and ServiceImports (spec D3, D4, I8).
const (
	// LabelManagedBy marks our Services and ServiceImports.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelServiceImported says that a Service is derived from a ServiceImport.
	LabelServiceImported = "multicluster.kubernetes.io/service-imported"
	// AnnotationDerivedService records, on a ServiceImport, the name its derived Service was given.
	AnnotationDerivedService = "multicluster.kubernetes.io/derived-service"
	// AnnotationWithheldPorts holds, on a mirrored EndpointSlice whose source is missing on the hub, the ports at which it does not
	// serve at present, as JSON.
	AnnotationWithheldPorts = "tombolo-mcs.io/withheld-ports"
)

// The Secret from which an agent reads how to reach the hub: a kubeconfig that names the two other keys as files beside it.
const (
	HubSecretKubeconfig = "kubeconfig"
	HubSecretCA         = "ca.crt"
	HubSecretToken      = "token"
	// AnnotationTokenExpires says until when the token in it is good (RFC 3339). Where it is missing, the agent renews the
	// token at once.
	AnnotationTokenExpires = "tombolo-mcs.io/token-expires"
)

// TokenLifetime is how long a member's token for the hub is good. The hub's admission policies let a member ask for no more.
const TokenLifetime = 72 * time.Hour

// IsManaged reports whether an object with these labels is a Service or ServiceImport of ours.
func IsManaged(labels map[string]string) bool { return labels[LabelManagedBy] == ManagedBy }

// MarkOf returns who says of an object to manage it; empty where nobody does. ManagedBy stands for us.
func MarkOf(object metav1.Object) string {
	if _, ok := object.(*discoveryv1.EndpointSlice); ok {
		return object.GetLabels()[discoveryv1.LabelManagedBy]
	}
	return object.GetLabels()[LabelManagedBy]
}

// HasLostMark reports whether an object is one of ours that our mark was taken from: nobody's is in its place, and the API
// server knows that we wrote it. What somebody has made anew under its name we have never written.
func HasLostMark(object metav1.Object) bool {
	return MarkOf(object) == "" && slices.ContainsFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == FieldManager && e.Subresource == ""
	})
}

// reservedDomains are the label and annotation domains of Kubernetes and of ours. With them a member could pass off an object as
// another, so no cluster may admit them.
var reservedDomains = []string{"kubernetes.io", "k8s.io", "x-k8s.io", "tombolo-mcs.io"}

// IsReserved reports whether a label or annotation key never crosses clusters: its domain, or a parent of it, is reserved.
func IsReserved(key string) bool {
	domain := MetadataDomain(key)
	return slices.ContainsFunc(reservedDomains, func(reserved string) bool {
		return domain == reserved || strings.HasSuffix(domain, "."+reserved)
	})
}

// MetadataDomain returns the domain of a label or annotation key, in lower case, as annotations may have upper case there; empty if
// the key has none.
func MetadataDomain(key string) string {
	domain, _, prefixed := strings.Cut(key, "/")
	if !prefixed {
		return ""
	}
	return strings.ToLower(domain)
}

// reservedNamespaces are never part of a clusterset: whoever exported into them could take over what a cluster, or the clusterset,
// runs on. The last is the agents' own.
var reservedNamespaces = []string{"kube-system", "kube-public", "kube-node-lease", "tombolo-system"}

// IsReservedNamespace reports whether services of this namespace are neither exported nor imported. The namespaces of members are
// among these: a cluster may be the hub as well, and must not import into what belongs to a member there.
func IsReservedNamespace(namespace string) bool {
	return slices.Contains(reservedNamespaces, namespace) || strings.HasPrefix(namespace, hubNamespacePrefix)
}

// CheckReserved returns why a service is neither exported nor imported, whoever has it; nil for most.
func CheckReserved(key ServiceKey) error {
	switch {
	case IsReservedNamespace(key.Namespace):
		return fmt.Errorf("namespace %s is reserved", key.Namespace)
	case key == ServiceKey{Namespace: "default", Name: "kubernetes"}:
		return fmt.Errorf("service %s is reserved: it is each cluster's own API server", key)
	}
	return nil
}
