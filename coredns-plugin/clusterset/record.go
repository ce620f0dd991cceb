// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unique"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/mcs-api/pkg/apis/v1alpha1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// serviceKey is the DNS name of a multi-cluster service: "<name>.<namespace>", in lower case.
type serviceKey string

// objectKey identifies an API object of a kind.
type objectKey struct{ namespace, name string }

// record is the part of an API object that DNS needs. It is immutable.
type record interface {
	metav1.ObjectMetaAccessor
	id() objectKey
	service() serviceKey
	refused() []refusal
}

// header has the fields of all records.
type header struct {
	object   objectKey
	key      serviceKey
	refusals []refusal
}

func (h *header) id() objectKey       { return h.object }
func (h *header) service() serviceKey { return h.key }
func (h *header) refused() []refusal  { return h.refusals }

// GetObjectMeta returns the object's name and namespace, which client-go needs while it lists.
func (h *header) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: h.object.namespace, Name: h.object.name}
}

// refusef records that a part of the object is not served. It keeps one case of each reason.
func (h *header) refusef(r reason, format string, args ...any) {
	for _, known := range h.refusals {
		if known.reason == r {
			return
		}
	}
	h.refusals = append(h.refusals, refusal{r, fmt.Sprintf(format, args...)})
}

// refusal is why an object, or a part of it, is not served.
type refusal struct {
	reason reason
	detail string
}

// reason is the label value by which refused objects are counted.
type reason string

const (
	refusedName    reason = "name"    // it cannot be a name in DNS
	refusedType    reason = "type"    // neither ClusterSetIP nor Headless
	refusedCluster reason = "cluster" // the source cluster's ID is no RFC-1123 label (spec N7)
	refusedAddress reason = "address"
	refusedPort    reason = "port"
)

var reasons = []reason{refusedName, refusedType, refusedCluster, refusedAddress, refusedPort}

// imported is the record of a ServiceImport.
type imported struct {
	header
	headless bool
	ips      addresses
	ports    []port
}

// mirrored is the record of a mirrored EndpointSlice: its ready endpoints.
type mirrored struct {
	header
	cluster string // empty if the whole object is refused
	ports   []port
	byIP    addresses       // the endpoints without a hostname
	byName  []namedEndpoint // the endpoints with a hostname, sorted by it
}

// namedEndpoint is an address of an endpoint with a hostname.
type namedEndpoint struct {
	hostname string
	address  netip.Addr
}

// size returns the number of addresses.
func (m *mirrored) size() int { return m.byIP.size() + len(m.byName) }

// names has the limit of names below the served zones.
type names struct {
	octets int // that a name may have without the longest zone (RFC 1035, section 3.1)
}

const maxNameOctets = 255

// newNames returns the limits for names below the given zones, which are absolute.
func newNames(zones []string) names {
	longest := 0
	for _, zone := range zones {
		longest = max(longest, len(zone)+1) // an octet before each label, and the root's
	}
	return names{octets: maxNameOctets - longest}
}

// fit reports whether "<labels>.<service>.<namespace>.svc.<zone>" is a valid name.
func (n names) fit(key serviceKey, labels ...string) bool {
	octets := len(key) + len(".svc.") // each label has an additional octet
	for _, label := range labels {
		octets += len(label) + 1
	}
	return octets <= n.octets
}

func intern(s string) string { return unique.Make(s).Value() }

func lowered(s string) string { return intern(strings.ToLower(s)) }

func newHeader(object metav1.Object, service string) header {
	namespace := intern(object.GetNamespace())
	return header{
		object: objectKey{namespace, strings.Clone(object.GetName())},
		key:    serviceKey(intern(service + "." + namespace)),
	}
}

// importOf returns the record of a ServiceImport of version v1beta1.
func (n names) importOf(object *v1beta1.ServiceImport) *imported {
	r := &imported{header: newHeader(object, object.Name), headless: object.Spec.Type == v1beta1.Headless}
	if len(validation.IsDNS1123Label(object.Name)) > 0 || !n.fit(r.key) {
		r.refusef(refusedName, "the name cannot be one in DNS")
		return r
	}
	if !r.headless && object.Spec.Type != v1beta1.ClusterSetIP {
		r.refusef(refusedType, "type %q is unknown", object.Spec.Type)
		return r
	}
	if r.headless {
		return r // its answers follow from the slices
	}
	for _, ip := range object.Spec.IPs {
		if a, ok := parseAddress(ip); ok {
			r.ips.add(a)
			continue
		}
		r.refusef(refusedAddress, "%q is no address that DNS could give out", ip)
	}
	r.ips.sort()
	for _, p := range object.Spec.Ports {
		n.addPort(&r.header, &r.ports, p.Name, p.Protocol, p.Port)
	}
	r.ports = r.servedPorts(r.ports)
	return r
}

// importOfAlpha returns the record of a ServiceImport of version v1alpha1, which has the same fields.
func (n names) importOfAlpha(object *v1alpha1.ServiceImport) *imported {
	beta := &v1beta1.ServiceImport{ObjectMeta: object.ObjectMeta}
	beta.Spec.Type = v1beta1.ServiceImportType(object.Spec.Type)
	beta.Spec.IPs = object.Spec.IPs
	for _, p := range object.Spec.Ports {
		beta.Spec.Ports = append(beta.Spec.Ports, v1beta1.ServicePort(p))
	}
	return n.importOf(beta)
}

// sliceOf returns the record of an EndpointSlice. It uses only the labels that the KEP specifies.
func (n names) sliceOf(object *discoveryv1.EndpointSlice) *mirrored {
	service, cluster := object.Labels[v1beta1.LabelServiceName], object.Labels[v1beta1.LabelSourceCluster]
	r := &mirrored{header: newHeader(object, service)}
	if len(validation.IsDNS1123Label(service)) > 0 || !n.fit(r.key) {
		r.refusef(refusedName, "label %s: %q cannot be a name in DNS", v1beta1.LabelServiceName, service)
		return r
	}
	if object.AddressType == discoveryv1.AddressTypeFQDN {
		return r // it has no addresses
	}
	if len(validation.IsDNS1123Label(cluster)) > 0 {
		r.refusef(refusedCluster, "label %s: %q is no RFC-1123 label", v1beta1.LabelSourceCluster, cluster)
		return r
	}
	r.cluster = intern(cluster)
	for _, end := range object.Endpoints {
		if end.Conditions.Ready == nil || *end.Conditions.Ready { // unknown counts as ready (discovery/v1)
			n.addEndpoint(r, end)
		}
	}
	r.byIP.sort()
	slices.SortFunc(r.byName, compareNamed)
	r.byName = clipped(slices.Compact(r.byName))
	for _, p := range object.Ports {
		if p.Port == nil {
			continue // "all ports" cannot be in an SRV record
		}
		n.addPort(&r.header, &r.ports, value(p.Name), value(p.Protocol), *p.Port)
	}
	r.ports = r.servedPorts(r.ports)
	return r
}

func compareNamed(a, b namedEndpoint) int {
	return cmp.Or(strings.Compare(a.hostname, b.hostname), a.address.Compare(b.address))
}

func value[V any](p *V) V {
	if p == nil {
		return *new(V)
	}
	return *p
}

func (n names) addEndpoint(r *mirrored, end discoveryv1.Endpoint) {
	hostname := value(end.Hostname)
	if hostname != "" && len(validation.IsDNS1123Label(hostname)) > 0 {
		r.refusef(refusedName, "hostname %q is no RFC-1123 label: the endpoint is named by its address", hostname)
		hostname = ""
	}
	for _, text := range end.Addresses {
		a, ok := parseAddress(text)
		if !ok {
			r.refusef(refusedAddress, "%q is no address that DNS could give out", text)
			continue
		}
		label := hostname
		if label == "" {
			label = addressLabel(a)
		}
		if !n.fit(r.key, label, r.cluster) {
			r.refusef(refusedName, "the name of endpoint %q would have more than %d octets", label, maxNameOctets)
			continue
		}
		if hostname == "" {
			r.byIP.add(a)
			continue
		}
		r.byName = append(r.byName, namedEndpoint{intern(hostname), a})
	}
}
