// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render turns a merged service into the objects that an importing cluster holds for it: the derived Service,
// its mirrored EndpointSlices and the ServiceImport. It is pure.
package render

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/merge"
)

// Site is what an importing cluster adds of its own to what all clusters agree on (spec R7).
type Site struct {
	// IPFamilies are those that this cluster's Services can have.
	IPFamilies []corev1.IPFamily
	// DerivedName is the name of the derived Service, given once (spec D2).
	DerivedName string
	// Established are the IP families of the derived Service as it stands, or as the ServiceImport remembers them; empty
	// for a new import.
	Established []corev1.IPFamily
	// IPs are the addresses that the ServiceImport holds. A derived Service that is missing comes back with them.
	IPs []string
	// Unknown holds the settings that this cluster's API server does not know, as far as that has shown.
	Unknown map[clusterset.Setting]bool
	// MetadataDomains are those whose labels and annotations this cluster admits, in lower case, beside keys without a domain.
	MetadataDomains []string
}

// unnamed is what the port without a name is called where a name is needed (spec R2).
const unnamed = "unnamed"

// Families returns the IP families of a ClusterSetIP import here; nothing where this cluster has none of the exporters'
// and never had (spec I5). The first established family stays first even when no exporter has it any more, because
// a Service cannot change it and the import's address must not.
func Families(m merge.Merged, site Site) []corev1.IPFamily {
	return keepingOrder(intersection(m.IPFamilies, site.IPFamilies), site.Established)
}

// Supported reports whether this cluster can reach any endpoint of the service: it has one of the exporters' families.
func Supported(m merge.Merged, site Site) bool {
	return m.Type == mcsv1beta1.Headless || len(intersection(m.IPFamilies, site.IPFamilies)) > 0
}

// keepingOrder returns the families that are wanted, the established ones in their order first. The first established
// family is kept in any case.
func keepingOrder(wanted, established []corev1.IPFamily) []corev1.IPFamily {
	var result []corev1.IPFamily
	for i, family := range established {
		if i == 0 || slices.Contains(wanted, family) {
			result = append(result, family)
		}
	}
	for _, family := range wanted {
		if !slices.Contains(result, family) {
			result = append(result, family)
		}
	}
	return result
}

func intersection(a, b []corev1.IPFamily) []corev1.IPFamily {
	var result []corev1.IPFamily
	for _, family := range a {
		if slices.Contains(b, family) {
			result = append(result, family)
		}
	}
	return result
}

// servicePortNames returns what each merged port is called in the derived Service, by its merged name. The port
// without a name is called "unnamed", even when it is the only one, so that nothing changes for it when a second
// exporter brings another (spec R2, R6). Of two ports that want one name the older export's gets it: what a port is
// called depends on older ones only.
func servicePortNames(ports []clusterset.Port) map[string]string {
	names := make(map[string]string, len(ports))
	taken := make(map[string]bool, len(ports))
	for _, port := range ports {
		wanted := port.Name
		if wanted == "" {
			wanted = unnamed
		}
		name := wanted
		for n := 2; taken[name]; n++ {
			name = wanted + "-" + strconv.Itoa(n)
		}
		taken[name] = true
		names[port.Name] = name
	}
	return names
}

// slicePortNames returns what each merged port is called in the mirrored slices. Those of headless services keep the
// empty name: kube-proxy does not join on it, and DNS must not invent an SRV name.
func slicePortNames(m merge.Merged) map[string]string {
	if m.Type != mcsv1beta1.Headless {
		return servicePortNames(m.Ports)
	}
	names := make(map[string]string, len(m.Ports))
	for _, port := range m.Ports {
		names[port.Name] = port.Name
	}
	return names
}
