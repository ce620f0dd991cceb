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
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// ManagedBy is the value of the managed-by label of Tombolo's objects. Objects without it are never deleted, and updated only if
// HasLostLabel returns true.
const ManagedBy = "tombolo-mcs.io"

// FieldManager is the name of the agents in the managed fields of objects in their clusters.
const FieldManager = "tombolo-agent"

// Labels and annotations on derived Services, mirrored EndpointSlices and ServiceImports (spec D3, D4, I8).
const (
	// LabelManagedBy is the managed-by label of Services and ServiceImports.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// LabelServiceImported marks a Service that is derived from a ServiceImport.
	LabelServiceImported = "multicluster.kubernetes.io/service-imported"
	// AnnotationDerivedService is an annotation of a ServiceImport with the name of its derived Service.
	AnnotationDerivedService = "multicluster.kubernetes.io/derived-service"
	// AnnotationWithheldPorts is an annotation of a mirrored EndpointSlice whose source is missing on the hub: the withheld ports,
	// as JSON.
	AnnotationWithheldPorts = "tombolo-mcs.io/withheld-ports"
	// LabelGateway is a label of the EndpointSlices that lead to gateways: those whose endpoints are gateways, and the mirrored ones whose
	// endpoints are virtual IPs. Only agents may write it (G2).
	LabelGateway = "tombolo-mcs.io/gateway"
	// LabelVirtualIPOf is a label of the Services of virtual IPs and of their EndpointSlices: the name of the import. They also have
	// LabelHostname, and the label for the source cluster (G9).
	LabelVirtualIPOf = "tombolo-mcs.io/virtual-ip-of"
	LabelHostname    = "tombolo-mcs.io/hostname"
	// AnnotationAvailable is an annotation of these slices if they list more gateways than their source has available endpoints: how many it
	// has. An alias with endpoints of its own lists no more gateways.
	AnnotationAvailable = "tombolo-mcs.io/available-endpoints"
	// AnnotationLocal is an annotation of mirrored slices with this cluster's own endpoints, if none of these has a node, which only own
	// endpoints have.
	AnnotationLocal = "tombolo-mcs.io/local-endpoints"
	// AnnotationGatewayPorts is an annotation of these slices: the listening ports of the gateways, as FormatListen returns them.
	AnnotationGatewayPorts = "tombolo-mcs.io/gateway-ports"
)

// GatewayService is the name of the Service of this cluster's gateways, in the namespace of the agent.
const GatewayService = "tombolo-gateway"

// The Secrets with the identity of this cluster's gateways, in the namespace of the agent, which writes both (G5).
const (
	// GatewayAuthoritySecret has the authorities with their keys under the key GatewayAuthorityKey. Only the agent reads it.
	GatewayAuthoritySecret = "tombolo-gateway-authority"
	GatewayAuthorityKey    = "authorities.json"
	// GatewayCertificateSecret has the certificate of the gateways. Its type is kubernetes.io/tls.
	GatewayCertificateSecret = "tombolo-gateway-certificate"
)

// The Secret with which an agent connects to the hub: a kubeconfig that refers to the two other keys as files in the same folder.
const (
	HubSecretKubeconfig = "kubeconfig"
	HubSecretCA         = "ca.crt"
	HubSecretToken      = "token"
	// AnnotationGrantedOnly is an annotation of a ServiceExport: with any value but "false", the service is exported to no other cluster
	// unless a ServiceExportGrant selects it (A1).
	AnnotationGrantedOnly = "tombolo-mcs.io/granted-only"
	// AnnotationProxyProtocol is an annotation of a ServiceExport: the numbers or names of TCP ports of the Service, separated by commas.
	// Gateways begin the connections to them with a PROXY protocol header, version 2, which has the client's address (G14).
	AnnotationProxyProtocol = "tombolo-mcs.io/proxy-protocol"
	// LabelAutoExport is a label of Services and Namespaces: "true" exports the Service, or all Services of the Namespace, if the agent
	// allows it. On a Service, any other value excludes it (P3).
	LabelAutoExport = "tombolo-mcs.io/auto-export"
	// AnnotationTokenExpires is the time at which the token expires (RFC 3339). If the annotation is missing, the agent renews the
	// token immediately.
	AnnotationTokenExpires = "tombolo-mcs.io/token-expires"
)

// TokenLifetime is the lifetime of a member's token for the hub. The hub's admission policies do not allow a longer one.
const TokenLifetime = 72 * time.Hour

// IsManaged reports whether a Service or ServiceImport with these labels is managed.
func IsManaged(labels map[string]string) bool { return labels[LabelManagedBy] == ManagedBy }

// IsGrantedOnly reports whether a ServiceExport has the annotation AnnotationGrantedOnly (A1).
func IsGrantedOnly(export metav1.Object) bool {
	value, ok := export.GetAnnotations()[AnnotationGrantedOnly]
	return ok && value != "false"
}

// HasProxyProtocol reports whether a ServiceExport has the annotation AnnotationProxyProtocol (G14).
func HasProxyProtocol(export metav1.Object) bool {
	_, ok := export.GetAnnotations()[AnnotationProxyProtocol]
	return ok
}

// IsAutoExported reports whether the labels of a Service and of its Namespace ask for an automatic export (P3).
func IsAutoExported(service, namespace map[string]string) bool {
	if value, ok := service[LabelAutoExport]; ok {
		return value == "true"
	}
	return namespace[LabelAutoExport] == "true"
}

// ManagerOf returns the value of an object's managed-by label, which is ManagedBy for Tombolo; empty if there is none.
func ManagerOf(object metav1.Object) string {
	if _, ok := object.(*discoveryv1.EndpointSlice); ok {
		return object.GetLabels()[discoveryv1.LabelManagedBy]
	}
	return object.GetLabels()[LabelManagedBy]
}

// HasLostLabel reports whether an object is managed but its managed-by label was removed: it has no such label, and its managed
// fields show that an agent has written it. This is not true for an object that another user has created again under the same name.
func HasLostLabel(object metav1.Object) bool {
	return ManagerOf(object) == "" && slices.ContainsFunc(object.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == FieldManager && e.Subresource == ""
	})
}

// IsAutomatic reports whether a ServiceExport is one that the agent has created by a label, and may delete (P3): it has our managed-by
// label, and no other field manager has written it, other than its status. A ServiceExport that a user has applied, edited or labelled
// is the user's.
func IsAutomatic(export *mcsv1beta1.ServiceExport) bool {
	return IsManaged(export.Labels) && OtherWriter(export) == ""
}

// OtherWriter returns the first field manager, other than the agent, that has written an object, other than its status; empty if there is
// none.
func OtherWriter(object metav1.Object) string {
	for _, e := range object.GetManagedFields() {
		if e.Manager != FieldManager && e.Subresource == "" {
			return e.Manager
		}
	}
	return ""
}

// reservedDomains are the label and annotation domains of Kubernetes and Tombolo. No cluster may allow them, because Kubernetes and
// Tombolo identify objects by such labels.
var reservedDomains = []string{"kubernetes.io", "k8s.io", "x-k8s.io", "tombolo-mcs.io"}

// IsReserved reports whether labels or annotations with this key are never exported or imported: its domain, or a parent of it, is
// reserved.
func IsReserved(key string) bool {
	domain := MetadataDomain(key)
	return slices.ContainsFunc(reservedDomains, func(reserved string) bool {
		return domain == reserved || strings.HasSuffix(domain, "."+reserved)
	})
}

// MetadataDomain returns the domain of a label or annotation key in lower case, because annotations may have upper case there; empty
// if the key has none.
func MetadataDomain(key string) string {
	domain, _, prefixed := strings.Cut(key, "/")
	if !prefixed {
		return ""
	}
	return strings.ToLower(domain)
}

// reservedNamespaces are never part of a clusterset: an exporter could take over system services of other clusters. tombolo-system
// is the namespace of the agents.
var reservedNamespaces = []string{"kube-system", "kube-public", "kube-node-lease", "tombolo-system"}

// IsReservedNamespace reports whether services of this namespace are neither exported nor imported. This includes the namespaces of
// members: if a cluster is also the hub, an import must not write there.
func IsReservedNamespace(namespace string) bool {
	return slices.Contains(reservedNamespaces, namespace) || strings.HasPrefix(namespace, hubNamespacePrefix)
}

// CheckReserved returns an error with the reason if a service must not be exported or imported by any cluster, otherwise nil.
func CheckReserved(key ServiceKey) error {
	switch {
	case IsReservedNamespace(key.Namespace):
		return fmt.Errorf("namespace %s is reserved", key.Namespace)
	case key == ServiceKey{Namespace: "default", Name: "kubernetes"}:
		return fmt.Errorf("service %s is reserved: it is each cluster's own API server", key)
	}
	return nil
}
