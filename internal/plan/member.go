// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	aboutv1beta1 "github.com/tombolo-mcs/tombolo/pkg/api/about/v1beta1"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Service returns the changes from the existing derived Services of one import to the desired one; desired is nil if there should be
// none. The Service is replaced only if it becomes headless or stops being headless, or if its selector is removed, because
// Kubernetes would keep the endpoints of the selector (spec E1). Otherwise its addresses stay (spec I5). A Service without
// addresses, such as one of type ExternalName, gets the desired addresses. If these are two, it first gets one; the next plan adds
// the second.
func Service(desired *corev1.Service, existing []*corev1.Service) []Change[*corev1.Service] {
	return Services(listOf(desired), existing)
}

// Services returns the changes from existing to desired Services, as Service does for one of them.
func Services(desired, existing []*corev1.Service) []Change[*corev1.Service] {
	changes := compare(desired, existing, overlayService, sameService, replaces)
	for i, change := range changes {
		if hadNone := change.Verb == Create || change.Verb == Update && change.Existing.Spec.ClusterIP == ""; hadNone && len(change.Object.Spec.ClusterIPs) > 1 {
			changes[i].Object = withFirstAddress(change.Object)
		}
	}
	return changes
}

// withFirstAddress returns a copy of a Service with only the first of its addresses. If the API server cannot allocate the second
// address, it refuses the Service, but keeps the first one allocated for a minute (Kubernetes 1.36: allocateCreate does not revert
// what a failed txnAllocClusterIPs has allocated). The addresses of a deleted Service are not released immediately, so this happens
// when the Service is restored.
func withFirstAddress(service *corev1.Service) *corev1.Service {
	result := service.DeepCopy()
	result.Spec.ClusterIPs, result.Spec.IPFamilies = result.Spec.ClusterIPs[:1], result.Spec.IPFamilies[:1]
	result.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
	return result
}

// ServiceStatus returns the change of the Service's status to the desired one; nil if they are equal.
func ServiceStatus(desired corev1.ServiceStatus, existing *corev1.Service) []Change[*corev1.Service] {
	return status(desired, existing, func(o *corev1.Service) *corev1.ServiceStatus { return &o.Status })
}

// ServiceImport returns the changes from the existing to the desired import; either may be nil. ServiceImportStatus changes the
// status.
func ServiceImport(desired, existing *mcsv1beta1.ServiceImport) []Change[*mcsv1beta1.ServiceImport] {
	return compare(listOf(desired), listOf(existing), overlayImport, sameImport, neverReplace)
}

// ServiceImportStatus returns the change of the import's status to the desired one; nil if they are equal.
func ServiceImportStatus(desired mcsv1beta1.ServiceImportStatus, existing *mcsv1beta1.ServiceImport) []Change[*mcsv1beta1.ServiceImport] {
	return status(desired, existing, func(o *mcsv1beta1.ServiceImport) *mcsv1beta1.ServiceImportStatus { return &o.Status })
}

// ServiceExports returns the creations and deletions after which the desired exports exist. An existing one is not changed: its
// fields are the user's.
func ServiceExports(desired, existing []*mcsv1beta1.ServiceExport) []Change[*mcsv1beta1.ServiceExport] {
	unchanged := func(*mcsv1beta1.ServiceExport, *mcsv1beta1.ServiceExport) {}
	return compare(desired, existing, unchanged, equal, neverReplace)
}

// ServiceExportStatus returns the change of the export's status to the desired one; nil if they are equal.
func ServiceExportStatus(desired mcsv1beta1.ServiceExportStatus, existing *mcsv1beta1.ServiceExport) []Change[*mcsv1beta1.ServiceExport] {
	return status(desired, existing, func(o *mcsv1beta1.ServiceExport) *mcsv1beta1.ServiceExportStatus { return &o.Status })
}

// GrantStatus returns the change of the grant's status to the desired one; nil if they are equal.
func GrantStatus(desired policyv1alpha1.AccessStatus, existing *policyv1alpha1.ServiceExportGrant) []Change[*policyv1alpha1.ServiceExportGrant] {
	return status(desired, existing, func(o *policyv1alpha1.ServiceExportGrant) *policyv1alpha1.AccessStatus { return &o.Status })
}

// PolicyStatus returns the change of the policy's status to the desired one; nil if they are equal.
func PolicyStatus(desired policyv1alpha1.AccessStatus, existing *policyv1alpha1.ClusterServiceAccessPolicy) []Change[*policyv1alpha1.ClusterServiceAccessPolicy] {
	return status(desired, existing, func(o *policyv1alpha1.ClusterServiceAccessPolicy) *policyv1alpha1.AccessStatus { return &o.Status })
}

// status returns the change of the status of an object, which of points to; nil if it is the desired one.
func status[P interface{ DeepCopy() P }, S any](desired S, existing P, of func(P) *S) []Change[P] {
	if equality.Semantic.DeepEqual(*of(existing), desired) {
		return nil
	}
	updated := existing.DeepCopy()
	*of(updated) = desired
	return []Change[P]{{Verb: UpdateStatus, Object: updated, Existing: existing}}
}

// RoutingPolicyStatus returns the change of a policy's status to the desired one; nil if they are equal.
func RoutingPolicyStatus(desired policyv1alpha1.ServiceImportRoutingPolicyStatus, existing *policyv1alpha1.ServiceImportRoutingPolicy) []Change[*policyv1alpha1.ServiceImportRoutingPolicy] {
	return status(desired, existing, func(o *policyv1alpha1.ServiceImportRoutingPolicy) *policyv1alpha1.ServiceImportRoutingPolicyStatus {
		return &o.Status
	})
}

// EndpointSlices returns the changes from the existing mirrored slices of one import, or the slices of one alias, to the desired ones. A
// slice with a different address type is replaced, because the address type cannot change. The other deletions, and updates that remove
// ports, are the last ones: a service always has endpoints if they are applied after the first ones. Existing slices may be condensed.
func EndpointSlices(desired, existing []*discoveryv1.EndpointSlice) []Change[*discoveryv1.EndpointSlice] {
	return slices.Concat(AddedThenRemoved(desired, existing))
}

// AddedThenRemoved returns the first and the last ones of EndpointSlices.
func AddedThenRemoved(desired, existing []*discoveryv1.EndpointSlice) (first, last []Change[*discoveryv1.EndpointSlice]) {
	replaced := map[string]bool{}
	for _, d := range desired {
		replaced[d.Name] = true
	}
	for _, change := range compare(desired, existing, overlaySlice, sameSlice, hasOtherFamily) {
		if change.Verb == Delete && !replaced[change.Object.Name] || change.Verb == Update && removesPort(change.Object, change.Existing) {
			last = append(last, change)
		} else {
			first = append(first, change)
		}
	}
	return first, last
}

// removesPort reports whether an existing slice has a port whose name the desired one lacks.
func removesPort(desired, existing *discoveryv1.EndpointSlice) bool {
	return slices.ContainsFunc(existing.Ports, func(e discoveryv1.EndpointPort) bool {
		return !slices.ContainsFunc(desired.Ports, func(d discoveryv1.EndpointPort) bool { return ptr.Deref(d.Name, "") == ptr.Deref(e.Name, "") })
	})
}

// ConfigMap returns the changes from the existing to the desired ConfigMap; existing may be nil.
func ConfigMap(desired, existing *corev1.ConfigMap) []Change[*corev1.ConfigMap] {
	overlay := func(o, d *corev1.ConfigMap) { o.Labels, o.Data = maps.Clone(d.Labels), d.Data }
	return compare(listOf(desired), listOf(existing), overlay, equal, neverReplace)
}

// Secret returns the changes from the existing to the desired Secret; existing may be nil.
func Secret(desired, existing *corev1.Secret) []Change[*corev1.Secret] {
	overlay := func(o, d *corev1.Secret) { o.Labels, o.Data = maps.Clone(d.Labels), d.Data }
	return compare(listOf(desired), listOf(existing), overlay, equal, neverReplace)
}

// RemoteGateways returns the changes from the existing to the desired RemoteGateways.
func RemoteGateways(desired, existing []*gatewayv1alpha1.RemoteGateway) []Change[*gatewayv1alpha1.RemoteGateway] {
	overlay := func(o, d *gatewayv1alpha1.RemoteGateway) { o.Labels, o.Spec = maps.Clone(d.Labels), d.Spec }
	same := func(o, overlaid *gatewayv1alpha1.RemoteGateway) bool { // unset properties are not known, and empty ones are none
		return equal(o, overlaid) && (o.Spec.Properties == nil) == (overlaid.Spec.Properties == nil)
	}
	return compare(desired, existing, overlay, same, neverReplace)
}

// ClusterProperties returns the changes from the existing to the desired ClusterProperties.
func ClusterProperties(desired, existing []*aboutv1beta1.ClusterProperty) []Change[*aboutv1beta1.ClusterProperty] {
	overlay := func(o, d *aboutv1beta1.ClusterProperty) { o.Labels, o.Spec = maps.Clone(d.Labels), d.Spec }
	return compare(desired, existing, overlay, equal, neverReplace)
}

// overlayService keeps what the API server and others have added, in particular the addresses. The address of a removed family is
// released. A new family gets the desired address if the first address is the desired one too; otherwise the API server allocates
// it. A Service without addresses gets the desired ones.
func overlayService(o, d *corev1.Service) {
	spec := d.Spec.DeepCopy()
	if o.Spec.ClusterIP == "" {
		o.Labels, o.Spec = maps.Clone(d.Labels), *spec
		return
	}
	keep := min(len(o.Spec.ClusterIPs), len(spec.IPFamilies))
	addresses := slices.Clone(o.Spec.ClusterIPs[:keep])
	if len(spec.ClusterIPs) > keep && spec.ClusterIP == o.Spec.ClusterIP {
		addresses = append(addresses, spec.ClusterIPs[keep:]...)
	}
	spec.ClusterIP, spec.ClusterIPs = o.Spec.ClusterIP, addresses
	o.Labels, o.Spec = maps.Clone(d.Labels), *spec
}

// sameService compares the fields that overlayService writes.
func sameService(o, overlaid *corev1.Service) bool {
	return maps.Equal(o.Labels, overlaid.Labels) && equality.Semantic.DeepEqual(&o.Spec, &overlaid.Spec)
}

func overlayImport(o, d *mcsv1beta1.ServiceImport) {
	o.Labels, o.Annotations, o.Spec = maps.Clone(d.Labels), maps.Clone(d.Annotations), *d.Spec.DeepCopy()
}

// sameImport compares the fields that overlayImport writes.
func sameImport(o, overlaid *mcsv1beta1.ServiceImport) bool {
	return maps.Equal(o.Labels, overlaid.Labels) && maps.Equal(o.Annotations, overlaid.Annotations) &&
		equality.Semantic.DeepEqual(&o.Spec, &overlaid.Spec)
}

// overlaySlice keeps all annotations except Tombolo's own.
func overlaySlice(o, d *discoveryv1.EndpointSlice) {
	o.Labels, o.Ports, o.Endpoints = maps.Clone(d.Labels), d.Ports, d.Endpoints
	for _, key := range []string{clusterset.AnnotationWithheldPorts, clusterset.AnnotationGatewayPorts, clusterset.AnnotationAvailable, clusterset.AnnotationLocal} {
		value := d.Annotations[key]
		if value == o.Annotations[key] {
			continue
		}
		annotations := map[string]string{key: value}
		for k, v := range o.Annotations {
			if k != key {
				annotations[k] = v
			}
		}
		if o.Annotations = annotations; value == "" {
			delete(o.Annotations, key)
		}
	}
}

// sameSlice compares the fields that overlaySlice writes.
func sameSlice(o, overlaid *discoveryv1.EndpointSlice) bool {
	return maps.Equal(o.Labels, overlaid.Labels) && maps.Equal(o.Annotations, overlaid.Annotations) && equality.Semantic.DeepEqual(o.Ports, overlaid.Ports) &&
		sameEndpoints(o.Endpoints, overlaid.Endpoints)
}

func hasOtherFamily(o, d *discoveryv1.EndpointSlice) bool { return o.AddressType != d.AddressType }

// replaces reports whether the existing Service must be replaced: only one of the two is headless, or only the existing one has a
// selector. If a selector is removed, Kubernetes' controller does not delete the EndpointSlices that it created for it. They are
// deleted with the Service.
func replaces(o, d *corev1.Service) bool {
	return isHeadless(o) != isHeadless(d) || len(o.Spec.Selector) > 0 && len(d.Spec.Selector) == 0
}

func isHeadless(service *corev1.Service) bool { return service.Spec.ClusterIP == corev1.ClusterIPNone }

func neverReplace[T any](_, _ T) bool { return false }

// listOf returns a list with the object; nil if the object is nil.
func listOf[T any](object *T) []*T {
	if object == nil {
		return nil
	}
	return []*T{object}
}
