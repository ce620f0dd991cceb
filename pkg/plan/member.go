// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Service returns the changes that make the observed derived Services of one import the desired one; desired is nil
// where there is to be none. A change between headless and not replaces the Service; nothing else does, and its
// addresses stay (spec I5), but for a selector that goes: Kubernetes would leave the endpoints that it found there
// (spec E1). A Service that has lost its addresses, as one of type ExternalName has, gets the desired ones. One that is to get two
// given addresses gets the first: the second is the next plan's.
func Service(desired *corev1.Service, observed []*corev1.Service) []Change[*corev1.Service] {
	changes := compare(present(desired), observed, overlayService, equal, replaces)
	for i, change := range changes {
		if hadNone := change.Verb == Create || change.Verb == Update && change.Observed.Spec.ClusterIP == ""; hadNone && len(change.Object.Spec.ClusterIPs) > 1 {
			changes[i].Object = withFirstAddress(change.Object)
		}
	}
	return changes
}

// withFirstAddress returns a Service with the first only of its given addresses. An API server that can give one of two
// addresses and not the other refuses the Service, but keeps the first allocated to nobody for a minute
// (Kubernetes 1.36: allocateCreate does not revert what a failed txnAllocClusterIPs has allocated). Addresses are not free
// in the moment when the Service that had them is deleted, so this is what restoring it runs into.
func withFirstAddress(service *corev1.Service) *corev1.Service {
	result := service.DeepCopy()
	result.Spec.ClusterIPs, result.Spec.IPFamilies = result.Spec.ClusterIPs[:1], result.Spec.IPFamilies[:1]
	result.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
	return result
}

// ServiceImport returns the changes that make the observed import the desired one; either may be nil. Statuses are
// left to ServiceImportStatus.
func ServiceImport(desired, observed *mcsv1beta1.ServiceImport) []Change[*mcsv1beta1.ServiceImport] {
	return compare(present(desired), present(observed), overlayImport, equal, never)
}

// ServiceImportStatus returns the write that gives the observed import the desired status, or nothing where it has it.
func ServiceImportStatus(desired mcsv1beta1.ServiceImportStatus, observed *mcsv1beta1.ServiceImport) []Change[*mcsv1beta1.ServiceImport] {
	if equality.Semantic.DeepEqual(observed.Status, desired) {
		return nil
	}
	updated := observed.DeepCopy()
	updated.Status = desired
	return []Change[*mcsv1beta1.ServiceImport]{{Verb: UpdateStatus, Object: updated, Observed: observed}}
}

// ServiceExportStatus returns the write that gives the observed export the desired status, or nothing where it has it.
func ServiceExportStatus(desired mcsv1beta1.ServiceExportStatus, observed *mcsv1beta1.ServiceExport) []Change[*mcsv1beta1.ServiceExport] {
	if equality.Semantic.DeepEqual(observed.Status, desired) {
		return nil
	}
	updated := observed.DeepCopy()
	updated.Status = desired
	return []Change[*mcsv1beta1.ServiceExport]{{Verb: UpdateStatus, Object: updated, Observed: observed}}
}

// EndpointSlices returns the changes that make the observed mirrored slices of one import the desired ones. A slice's
// address type cannot change, so a slice that needs another is replaced. The observed ones may be condensed.
func EndpointSlices(desired, observed []*discoveryv1.EndpointSlice) []Change[*discoveryv1.EndpointSlice] {
	return compare(desired, observed, overlaySlice, sameSlice, hasOtherFamily)
}

// overlayService keeps what the API server and others added, the addresses first of all. An address of a family that
// the Service no longer has is let go; one of a new family is the desired one where the first address is the desired
// one too, and is left for the API server to choose otherwise. One that has no address gets the desired ones.
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

func overlayImport(o, d *mcsv1beta1.ServiceImport) {
	o.Labels, o.Annotations, o.Spec = maps.Clone(d.Labels), maps.Clone(d.Annotations), *d.Spec.DeepCopy()
}

// overlaySlice leaves annotations alone, but for our own one.
func overlaySlice(o, d *discoveryv1.EndpointSlice) {
	o.Labels, o.Ports, o.Endpoints = maps.Clone(d.Labels), d.Ports, d.Endpoints
	if withheld := d.Annotations[clusterset.AnnotationWithheldPorts]; withheld != o.Annotations[clusterset.AnnotationWithheldPorts] {
		o.Annotations = maps.Clone(o.Annotations)
		if withheld == "" {
			delete(o.Annotations, clusterset.AnnotationWithheldPorts)
			return
		}
		if o.Annotations == nil {
			o.Annotations = map[string]string{}
		}
		o.Annotations[clusterset.AnnotationWithheldPorts] = withheld
	}
}

// sameSlice compares what overlaySlice writes.
func sameSlice(o, overlaid *discoveryv1.EndpointSlice) bool {
	return maps.Equal(o.Labels, overlaid.Labels) && maps.Equal(o.Annotations, overlaid.Annotations) && equality.Semantic.DeepEqual(o.Ports, overlaid.Ports) &&
		sameEndpoints(o.Endpoints, overlaid.Endpoints)
}

func hasOtherFamily(o, d *discoveryv1.EndpointSlice) bool { return o.AddressType != d.AddressType }

// replaces reports whether an observed Service cannot become the desired one: only one of them is headless, or only the
// observed one has a selector. Kubernetes' own controller does not remove the EndpointSlices that it made for a selector
// when that is taken away; they go with the Service.
func replaces(o, d *corev1.Service) bool {
	return isHeadless(o) != isHeadless(d) || len(o.Spec.Selector) > 0 && len(d.Spec.Selector) == 0
}

func isHeadless(service *corev1.Service) bool { return service.Spec.ClusterIP == corev1.ClusterIPNone }

func never[T any](_, _ T) bool { return false }

// present returns a list of the object, or of nothing where it is nil.
func present[T any](object *T) []*T {
	if object == nil {
		return nil
	}
	return []*T{object}
}
