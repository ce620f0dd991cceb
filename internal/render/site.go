// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package render computes the objects of an import from the merged service: the derived Service, its mirrored EndpointSlices and the
// ServiceImport. It is pure.
package render

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/merge"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Site contains what rendering needs to know of the local cluster. The merged service is the same in all clusters, the site is not
// (spec R7).
type Site struct {
	// IPFamilies are the IP families that Services of this cluster can have.
	IPFamilies []corev1.IPFamily
	// DerivedName is the name of the derived Service, which never changes (spec D2).
	DerivedName string
	// ExistingFamilies are the IP families of the existing derived Service, otherwise those of the ServiceImport; empty for a new
	// import.
	ExistingFamilies []corev1.IPFamily
	// IPs are the addresses in the existing ServiceImport. If the derived Service was deleted, it is created again with them.
	IPs []string
	// Gateway is set if a gateway of this cluster serves endpoints of another one. Gateways forward between IP families.
	Gateway bool
	// UnknownSettings are the settings that the local API server has refused or dropped.
	UnknownSettings map[clusterset.Setting]bool
	// MetadataDomains are the domains whose labels and annotations this cluster allows, in lower case. Keys without a domain are
	// always allowed.
	MetadataDomains []string
}

// unnamed is the name of the port without a name in objects that require one (spec R2).
const unnamed = "unnamed"

// Families returns the IP families of a ClusterSetIP import in this cluster; empty if the cluster and the exporters have none in
// common, and the import never had one (spec I5). The first existing family always stays first, even if no exporter has it any more:
// a Service cannot change it, and the address of the import must not change.
func Families(m merge.Merged, site Site) []corev1.IPFamily {
	return keepingOrder(reachable(m, site), site.ExistingFamilies)
}

// reachable returns the exporters' IP families that this cluster has, or all of its own if it has none of them and reaches an exporter
// through gateways (G2).
func reachable(m merge.Merged, site Site) []corev1.IPFamily {
	if common := intersection(m.IPFamilies, site.IPFamilies); len(common) > 0 || !site.Gateway {
		return common
	}
	return site.IPFamilies
}

// Supported reports whether this cluster has an IP family of the exporters, so that it can reach endpoints of the service.
func Supported(m merge.Merged, site Site) bool {
	return m.Type == mcsv1beta1.Headless || len(reachable(m, site)) > 0
}

// keepingOrder returns the desired families: first the existing ones in their order, then the others. The first existing family is
// always kept.
func keepingOrder(desired, existing []corev1.IPFamily) []corev1.IPFamily {
	var result []corev1.IPFamily
	for i, family := range existing {
		if i == 0 || slices.Contains(desired, family) {
			result = append(result, family)
		}
	}
	for _, family := range desired {
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

// servicePortNames returns the names of the ports in the derived Service, by their merged names. The port without a name is always
// called "unnamed", even if it is the only one, so that its name does not change if another exporter adds a port (spec R2, R6). If
// two ports have the same name, that of the older export keeps it, so that new exports do not change existing names.
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

// slicePortNames returns the names of the ports in the mirrored slices, by their merged names.
func slicePortNames(m merge.Merged) map[string][]string { return portNames(m.Type, m.Ports) }

// portNames returns the names of an import's ports in the mirrored slices. The first one is that in the derived Service. A port without a name
// is also in the slices without a name, for programs that look for the name of the port in the ServiceImport, such as implementations of the
// Gateway API (decision 8). In slices of headless services, an empty name stays empty: kube-proxy does not use it, and DNS must not serve an
// SRV name for it.
func portNames(kind mcsv1beta1.ServiceImportType, ports []clusterset.Port) map[string][]string {
	derived, names := servicePortNames(ports), make(map[string][]string, len(ports))
	for _, port := range ports {
		names[port.Name] = []string{derived[port.Name]}
		switch {
		case kind == mcsv1beta1.Headless:
			names[port.Name] = []string{port.Name}
		case port.Name == "" && derived[port.Name] != "":
			names[port.Name] = append(names[port.Name], "")
		}
	}
	return names
}
