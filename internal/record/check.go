// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// Bounds that the schema of the hub also checks, or that only the importer checks.
const (
	maxAffinityTimeout      = 86400
	maxAddressesPerEndpoint = 100
	// maxAnnotations is the limit of Kubernetes for all annotations of an object, less the size of Tombolo's own annotations on the
	// ServiceImport.
	maxAnnotations = apivalidation.TotalAnnotationSizeLimitB - 1024
)

func checkPort(name string, protocol hubv1alpha1.Protocol, number int32, appProtocol string) error {
	switch {
	case name != "" && len(validation.IsDNS1123Label(name)) > 0:
		return fmt.Errorf("port name %q is no DNS label", name)
	case !slices.Contains([]hubv1alpha1.Protocol{"TCP", "UDP", "SCTP"}, protocol):
		return fmt.Errorf("%q is no protocol", protocol)
	case len(validation.IsValidPortNum(int(number))) > 0:
		return fmt.Errorf("%d is no port number", number)
	case appProtocol != "" && len(validation.IsQualifiedName(appProtocol)) > 0:
		return fmt.Errorf("application protocol %q is no qualified name", appProtocol)
	}
	return nil
}

func checkType(spec hubv1alpha1.PublishedServiceSpec) error {
	switch {
	case spec.Type != mcsv1beta1.ClusterSetIP && spec.Type != mcsv1beta1.Headless:
		return fmt.Errorf("%q is no type", spec.Type)
	case spec.Type == mcsv1beta1.ClusterSetIP && len(spec.Ports) == 0:
		return errors.New("it has no port, which only a headless service can be without")
	case !areFamilies(spec.IPFamilies):
		return fmt.Errorf("%v are no IP families of a Service", spec.IPFamilies)
	case !slices.Contains([]corev1.ServiceAffinity{"", corev1.ServiceAffinityNone, corev1.ServiceAffinityClientIP}, spec.SessionAffinity):
		return fmt.Errorf("%q is no session affinity", spec.SessionAffinity)
	case spec.SessionAffinityTimeoutSeconds < 0 || spec.SessionAffinityTimeoutSeconds > maxAffinityTimeout:
		return fmt.Errorf("a session affinity timeout of %d s is out of range", spec.SessionAffinityTimeoutSeconds)
	case !isSetting(spec.InternalTrafficPolicy):
		return fmt.Errorf("%.100q is no internal traffic policy", spec.InternalTrafficPolicy)
	case !isSetting(spec.TrafficDistribution):
		return fmt.Errorf("%.100q is no traffic distribution", spec.TrafficDistribution)
	}
	return nil
}

// checkAvailability returns an error if a port claims more available endpoints than can be published, or if only some ports claim any.
func checkAvailability(ports []hubv1alpha1.PublishedPort) error {
	claims := 0
	for _, port := range ports {
		if port.Available == nil {
			continue
		}
		claims++
		if count := *port.Available; count < 0 || count > clusterset.MaxAvailable {
			return fmt.Errorf("%d available endpoints of port %d are not 0, 1 or 2", count, port.Port)
		}
	}
	if claims != 0 && claims != len(ports) {
		return errors.New("some of its ports have no availability")
	}
	return nil
}

// checkGrantedTo returns an error if agents that do not know grants would use the record, or if it names clusters that cannot exist or
// too many of them.
func checkGrantedTo(spec hubv1alpha1.PublishedServiceSpec) error {
	if spec.GrantedTo == nil {
		return nil
	}
	if !spec.Inactive {
		return errors.New("it is granted to some clusters, but not inactive for the others")
	}
	clusters := spec.GrantedTo.Clusters
	if len(clusters) > hubv1alpha1.MaxGrantedTo {
		return fmt.Errorf("it is granted to %d clusters, more than %d", len(clusters), hubv1alpha1.MaxGrantedTo)
	}
	for _, cluster := range clusters {
		if _, err := clusterset.ParseClusterID(string(cluster)); err != nil {
			return fmt.Errorf("it is granted to %.100q, which is no cluster ID", cluster)
		}
	}
	return nil
}

// isSetting reports whether a value is empty, or is a legal value of a Service's field in some version of Kubernetes. The local API
// server may support fewer values (spec D6).
func isSetting(value hubv1alpha1.Setting) bool {
	return value == "" || len(value) <= hubv1alpha1.MaxSettingLength && len(validation.IsQualifiedName(string(value))) == 0
}

// areFamilies reports whether a Service can have these IP families: one or two different ones.
func areFamilies(families []hubv1alpha1.IPFamily) bool {
	switch len(families) {
	case 1:
		return isFamily(families[0])
	case 2:
		return isFamily(families[0]) && isFamily(families[1]) && families[0] != families[1]
	}
	return false
}

func isFamily(f hubv1alpha1.IPFamily) bool {
	return f == hubv1alpha1.IPFamily(corev1.IPv4Protocol) || f == hubv1alpha1.IPFamily(corev1.IPv6Protocol)
}

// checkMetadata returns an error if labels or annotations have an invalid or reserved key, or are too large. It reports the first
// error in the order of the keys.
func checkMetadata(spec hubv1alpha1.PublishedServiceSpec) error {
	if len(spec.Labels) > hubv1alpha1.MaxMetadataKeys || len(spec.Annotations) > hubv1alpha1.MaxMetadataKeys {
		return fmt.Errorf("it has more than %d labels or annotations", hubv1alpha1.MaxMetadataKeys)
	}
	for _, key := range slices.Sorted(maps.Keys(spec.Labels)) {
		value := string(spec.Labels[key])
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 || clusterset.IsReserved(key) {
			return fmt.Errorf("label %q is illegal or reserved", key)
		}
	}
	size := 0
	for _, key := range slices.Sorted(maps.Keys(spec.Annotations)) {
		value := string(spec.Annotations[key])
		tooLong := utf8.RuneCountInString(value) > hubv1alpha1.MaxMetadataLength
		if len(validation.IsQualifiedName(strings.ToLower(key))) > 0 || tooLong || clusterset.IsReserved(key) {
			return fmt.Errorf("annotation %q is illegal, too long or reserved", key)
		}
		size += len(key) + len(value)
	}
	if size > maxAnnotations {
		return fmt.Errorf("its annotations have %d bytes in all, more than %d", size, maxAnnotations)
	}
	return nil
}

// checkSelector returns an error if a Service cannot have this selector.
func checkSelector(selector map[string]hubv1alpha1.LabelValue) error {
	if len(selector) == 0 || len(selector) > hubv1alpha1.MaxMetadataKeys {
		return fmt.Errorf("its selector has %d labels, not 1 to %d", len(selector), hubv1alpha1.MaxMetadataKeys)
	}
	for _, key := range slices.Sorted(maps.Keys(selector)) {
		if len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(string(selector[key]))) > 0 {
			return fmt.Errorf("%q is no label of a selector", key)
		}
	}
	return nil
}

func checkTargetPort(target intstr.IntOrString) error {
	if target.Type == intstr.Int && len(validation.IsValidPortNum(target.IntValue())) > 0 {
		return fmt.Errorf("%d is no port number", target.IntValue())
	}
	if target.Type == intstr.String && len(validation.IsValidPortName(target.StrVal)) > 0 {
		return fmt.Errorf("%q is no name of a port", target.StrVal)
	}
	return nil
}

func checkEndpoint(e clusterset.Endpoint, family discoveryv1.AddressType, ranges clusterset.AddressRanges) error {
	for _, address := range e.Addresses {
		if err := ranges.Check(address, family); err != nil {
			return err
		}
	}
	if e.Hostname != "" && len(validation.IsDNS1123Label(e.Hostname)) > 0 {
		return fmt.Errorf("hostname %q is no DNS label", e.Hostname)
	}
	return nil
}
