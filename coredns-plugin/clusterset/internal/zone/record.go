// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package zone

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

// ServiceKey is the DNS name of a multi-cluster service: "<name>.<namespace>", in lower case.
type ServiceKey string

// ObjectKey identifies an API object of a kind.
type ObjectKey struct{ Namespace, Name string }

// Record is the part of an API object that DNS needs. It is immutable.
type Record interface {
	metav1.ObjectMetaAccessor
	ID() ObjectKey
	Service() ServiceKey
	Refused() []Refusal
}

// header has the fields of all records.
type header struct {
	object   ObjectKey
	key      ServiceKey
	refusals []Refusal
}

// ID identifies the object.
func (h *header) ID() ObjectKey { return h.object }

// Service returns the service of the object.
func (h *header) Service() ServiceKey { return h.key }

// Refused returns why the object, or a part of it, is not served.
func (h *header) Refused() []Refusal { return h.refusals }

// GetObjectMeta returns the object's name and namespace, which client-go needs while it lists.
func (h *header) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: h.object.Namespace, Name: h.object.Name}
}

// refusef records that a part of the object is not served. It keeps one case of each reason.
func (h *header) refusef(r Reason, format string, args ...any) {
	for _, known := range h.refusals {
		if known.Reason == r {
			return
		}
	}
	h.refusals = append(h.refusals, Refusal{r, fmt.Sprintf(format, args...)})
}

// Refusal is why an object, or a part of it, is not served.
type Refusal struct {
	Reason Reason
	Detail string
}

// Reason is the label value by which refused objects are counted.
type Reason string

// The reasons.
const (
	RefusedName    Reason = "name"    // it cannot be a name in DNS
	RefusedType    Reason = "type"    // neither ClusterSetIP nor Headless
	RefusedCluster Reason = "cluster" // the source cluster's ID is no RFC-1123 label (spec N7)
	RefusedAddress Reason = "address"
	RefusedPort    Reason = "port"
)

// Reasons are all reasons.
var Reasons = []Reason{RefusedName, RefusedType, RefusedCluster, RefusedAddress, RefusedPort}

// Imported is the record of a ServiceImport.
type Imported struct {
	header
	headless bool
	ips      Addresses
	ports    []port
}

// Mirrored is the record of a mirrored EndpointSlice: its ready endpoints.
type Mirrored struct {
	header
	cluster string // empty if the whole object is refused
	ports   []port
	byIP    Addresses       // the endpoints without a hostname
	byName  []namedEndpoint // the endpoints with a hostname, sorted by it
}

// Ignored is the record of an object in a namespace that is not served: the object's name.
type Ignored struct{ header }

// IgnoredOf returns the record of the same object, without what is served.
func IgnoredOf(r Record) *Ignored { return &Ignored{header{object: r.ID()}} }

// namedEndpoint is an address of an endpoint with a hostname.
type namedEndpoint struct {
	hostname string
	address  netip.Addr
}

// size returns the number of addresses.
func (m *Mirrored) size() int { return m.byIP.Size() + len(m.byName) }

// Names has the limit of names below the served zones.
type Names struct {
	Octets int // that a name may have without the longest zone (RFC 1035, section 3.1)
}

const maxNameOctets = 255

// NewNames returns the limits for names below the given zones, which are absolute.
func NewNames(zones []string) Names {
	longest := 0
	for _, zone := range zones {
		longest = max(longest, len(zone)+1) // an octet before each label, and the root's
	}
	return Names{Octets: maxNameOctets - longest}
}

// fit reports whether "<labels>.<service>.<namespace>.svc.<zone>" is a valid name.
func (n Names) fit(key ServiceKey, labels ...string) bool {
	octets := len(key) + len(".svc.") // each label has an additional octet
	for _, label := range labels {
		octets += len(label) + 1
	}
	return octets <= n.Octets
}

func intern(s string) string { return unique.Make(s).Value() }

func lowered(s string) string { return intern(strings.ToLower(s)) }

func newHeader(object metav1.Object, service string) header {
	namespace := intern(object.GetNamespace())
	return header{
		object: ObjectKey{namespace, strings.Clone(object.GetName())},
		key:    ServiceKey(intern(service + "." + namespace)),
	}
}

// ImportOf returns the record of a ServiceImport of version v1beta1.
func (n Names) ImportOf(object *v1beta1.ServiceImport) *Imported {
	r := &Imported{header: newHeader(object, object.Name), headless: object.Spec.Type == v1beta1.Headless}
	if len(validation.IsDNS1123Label(object.Name)) > 0 || !n.fit(r.key) {
		r.refusef(RefusedName, "the name cannot be one in DNS")
		return r
	}
	if !r.headless && object.Spec.Type != v1beta1.ClusterSetIP {
		r.refusef(RefusedType, "type %q is unknown", object.Spec.Type)
		return r
	}
	if r.headless {
		return r // its answers follow from the slices
	}
	for _, ip := range object.Spec.IPs {
		if a, ok := parseAddress(ip); ok {
			r.ips.Add(a)
			continue
		}
		r.refusef(RefusedAddress, "%q is no address that DNS could give out", ip)
	}
	r.ips.Sort()
	for _, p := range object.Spec.Ports {
		n.addPort(&r.header, &r.ports, p.Name, p.Protocol, p.Port)
	}
	r.ports = r.servedPorts(r.ports)
	return r
}

// ImportOfAlpha returns the record of a ServiceImport of version v1alpha1, which has the same fields.
func (n Names) ImportOfAlpha(object *v1alpha1.ServiceImport) *Imported {
	beta := &v1beta1.ServiceImport{ObjectMeta: object.ObjectMeta}
	beta.Spec.Type = v1beta1.ServiceImportType(object.Spec.Type)
	beta.Spec.IPs = object.Spec.IPs
	for _, p := range object.Spec.Ports {
		beta.Spec.Ports = append(beta.Spec.Ports, v1beta1.ServicePort(p))
	}
	return n.ImportOf(beta)
}

// SliceOf returns the record of an EndpointSlice. It uses only the labels that the KEP specifies.
func (n Names) SliceOf(object *discoveryv1.EndpointSlice) *Mirrored {
	service, cluster := object.Labels[v1beta1.LabelServiceName], object.Labels[v1beta1.LabelSourceCluster]
	r := &Mirrored{header: newHeader(object, service)}
	if len(validation.IsDNS1123Label(service)) > 0 || !n.fit(r.key) {
		r.refusef(RefusedName, "label %s: %q cannot be a name in DNS", v1beta1.LabelServiceName, service)
		return r
	}
	if object.AddressType == discoveryv1.AddressTypeFQDN {
		return r // it has no addresses
	}
	if len(validation.IsDNS1123Label(cluster)) > 0 {
		r.refusef(RefusedCluster, "label %s: %q is no RFC-1123 label", v1beta1.LabelSourceCluster, cluster)
		return r
	}
	r.cluster = intern(cluster)
	for _, end := range object.Endpoints {
		if end.Conditions.Ready == nil || *end.Conditions.Ready { // unknown counts as ready (discovery/v1)
			n.addEndpoint(r, end)
		}
	}
	r.byIP.Sort()
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

func (n Names) addEndpoint(r *Mirrored, end discoveryv1.Endpoint) {
	hostname := value(end.Hostname)
	if hostname != "" && len(validation.IsDNS1123Label(hostname)) > 0 {
		r.refusef(RefusedName, "hostname %q is no RFC-1123 label: the endpoint is named by its address", hostname)
		hostname = ""
	}
	for _, text := range end.Addresses {
		a, ok := parseAddress(text)
		if !ok {
			r.refusef(RefusedAddress, "%q is no address that DNS could give out", text)
			continue
		}
		label := hostname
		if label == "" {
			label = addressLabel(a)
		}
		if !n.fit(r.key, label, r.cluster) {
			r.refusef(RefusedName, "the name of endpoint %q would have more than %d octets", label, maxNameOctets)
			continue
		}
		if hostname == "" {
			r.byIP.Add(a)
			continue
		}
		r.byName = append(r.byName, namedEndpoint{intern(hostname), a})
	}
}
