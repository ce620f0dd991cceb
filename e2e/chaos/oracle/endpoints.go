// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// serving is one endpoint at one port, as traffic finds it.
type serving struct {
	portServed

	source   string
	silent   bool
	family   discoveryv1.AddressType
	endpoint discoveryv1.Endpoint
}

// compareEndpoints compares what is mirrored with what may serve, without regard to how slices are cut (spec D4-D6).
func (l *list) compareEndpoints(w World, c Cluster, exports []export, derived corev1.Service) {
	var is, must []string
	for _, s := range c.mirrored(l.key) {
		l.compareLabels(s, derived)
		for _, name := range portTexts(s.Ports) {
			for _, e := range s.Endpoints {
				is = append(is, line(s.Labels[labelSourceCluster], s.AddressType, name, e))
			}
		}
	}
	for _, s := range withHints(w.serving(c, l.key, exports, derived.Spec.IPFamilies), exports[0]) {
		must = append(must, line(s.source, s.family, s.text, s.endpoint))
	}
	slices.Sort(is)
	slices.Sort(must)
	for _, s := range is {
		if !slices.Contains(must, s) {
			l.addf(Endpoints, "there is %s, and must not be", s)
		}
	}
	for _, s := range must {
		if !slices.Contains(is, s) {
			l.addf(Endpoints, "%s is missing", s)
		}
	}
	if len(is) != len(slices.Compact(slices.Clone(is))) && len(must) == len(slices.Compact(slices.Clone(must))) {
		l.addf(Endpoints, "an endpoint is there twice, of %d", len(is))
	}
}

func (l *list) compareLabels(s discoveryv1.EndpointSlice, derived corev1.Service) {
	want := map[string]string{
		labelSliceService: derived.Name, labelSliceManagedBy: ours,
		labelServiceName: l.key.Name, labelSourceCluster: s.Labels[labelSourceCluster],
	}
	if derived.Spec.ClusterIP == corev1.ClusterIPNone {
		want[labelHeadless] = ""
	}
	l.same(Endpoints, "labels of "+s.Name, s.Labels, want)
	if prefix := derived.Name + "-" + s.Labels[labelSourceCluster] + "-"; !strings.HasPrefix(s.Name, prefix) {
		l.addf(Endpoints, "a slice is called %s, must begin with %s", s.Name, prefix)
	}
}

// serving returns what may serve in cluster c: the slices of each exporter, in the families that the import has, at the
// ports that the exporter's Service really has (spec R2). Endpoints of silent members leave the ports and families of a
// shared address for which living ones have ready endpoints (spec D9).
func (w World) serving(c Cluster, key Key, exports []export, families []corev1.IPFamily) []serving {
	var all []serving
	for _, e := range exports {
		source := w.cluster(e.cluster)
		for _, s := range source.sources(key) {
			if !slices.Contains(families, corev1.IPFamily(s.AddressType)) {
				continue
			}
			for _, p := range w.portsServed(e, exports, s) {
				for _, endpoint := range s.Endpoints {
					if crossed, ok := w.cross(c, e.cluster, s.AddressType, endpoint); ok {
						all = append(all, serving{p, e.cluster, e.silent, s.AddressType, crossed})
					}
				}
			}
		}
	}
	if exports[0].headless() {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(s serving) bool {
		return s.silent && slices.ContainsFunc(all, func(o serving) bool {
			return !o.silent && isReady(o.endpoint) && o.portName == s.portName && o.family == s.family
		})
	})
}

// portServed is a port of a mirrored slice.
type portServed struct {
	text             string // name, number, protocol; "" for a slice without ports
	portName         string // its name
	number, protocol string
}

// portsServed returns the ports of a source slice that take part, under the names they have in the importing clusters.
func (w World) portsServed(e export, exports []export, s discoveryv1.EndpointSlice) []portServed {
	headless := exports[0].headless()
	if len(s.Ports) == 0 && headless {
		return []portServed{{}}
	}
	var result []portServed
	for _, p := range s.Ports {
		for _, own := range e.ports() {
			for _, agreed := range union(exports) {
				if own.name != text(p.Name) || own.protocol != agreed.protocol || own.number != agreed.number {
					continue
				}
				name := portNames(union(exports))[agreed.name]
				if headless {
					name = agreed.name
				}
				number, protocol := numberText(p)
				result = append(result, portServed{portText(name, p), name, number, protocol})
				if agreed.name == "" && name != "" { // also for programs that look for the name in the ServiceImport
					result = append(result, portServed{portText("", p), "", number, protocol})
				}
			}
		}
	}
	return result
}

// cross returns an endpoint as another cluster sees it, and false if none of its addresses may cross. A cluster's own
// endpoints do not cross.
func (w World) cross(c Cluster, source string, family discoveryv1.AddressType, e discoveryv1.Endpoint) (discoveryv1.Endpoint, bool) {
	result := *e.DeepCopy()
	result.Hints, result.TargetRef = nil, nil
	if source == c.ID {
		return result, true
	}
	result.NodeName = nil
	result.Addresses = slices.DeleteFunc(result.Addresses, func(a string) bool {
		ip, err := netip.ParseAddr(a)
		legal := err == nil && ip.IsGlobalUnicast() && !ip.Is4In6() && ip.Is4() == (family == discoveryv1.AddressTypeIPv4)
		member := w.member(source)
		return !legal || !within(ip, slices.Concat(member.Spec.PodCIDRs, member.Spec.NodeCIDRs)) ||
			slices.ContainsFunc(c.ServiceCIDRs, func(p netip.Prefix) bool { return p.Contains(ip) })
	})
	return result, len(result.Addresses) > 0
}

// withHints gives endpoints the zone that they are for, where the oldest wants traffic to stay in its zone, in the
// families in which every ready endpoint has one (spec D6).
func withHints(all []serving, oldest export) []serving {
	wanted := text(oldest.service.Spec.TrafficDistribution)
	if oldest.headless() || wanted != "PreferClose" && wanted != "PreferSameZone" && wanted != "PreferSameNode" {
		return all
	}
	result := slices.Clone(all)
	for i, s := range result {
		spoilt := slices.ContainsFunc(all, func(o serving) bool { return o.family == s.family && isReady(o.endpoint) && o.endpoint.Zone == nil })
		if s.endpoint.Zone != nil && !spoilt {
			result[i].endpoint.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: *s.endpoint.Zone}}}
		}
	}
	return result
}

func (w World) cluster(id string) Cluster {
	for _, c := range w.Clusters {
		if c.ID == id {
			return c
		}
	}
	return Cluster{}
}

func within(ip netip.Addr, cidrs []hubv1alpha1.CIDR) bool {
	return slices.ContainsFunc(cidrs, func(cidr hubv1alpha1.CIDR) bool {
		prefix, err := netip.ParsePrefix(string(cidr))
		return err == nil && prefix.Contains(ip)
	})
}

func isReady(e discoveryv1.Endpoint) bool { return e.Conditions.Ready == nil || *e.Conditions.Ready }

// portTexts returns a word for each port of a slice; an empty one where it has none.
func portTexts(ports []discoveryv1.EndpointPort) []string {
	if len(ports) == 0 {
		return []string{""}
	}
	var result []string
	for _, p := range ports {
		result = append(result, portText(text(p.Name), p))
	}
	return result
}

func numberText(p discoveryv1.EndpointPort) (number, protocol string) {
	number, protocol = "any", "TCP"
	if p.Port != nil {
		number = strconv.Itoa(int(*p.Port))
	}
	if p.Protocol != nil {
		protocol = string(*p.Protocol)
	}
	return number, protocol
}

func portText(name string, p discoveryv1.EndpointPort) string {
	number, protocol := numberText(p)
	return fmt.Sprintf("%s:%s/%s(%s)", name, number, protocol, text(p.AppProtocol))
}

// line returns all that matters of an endpoint at a port.
func line(source string, family discoveryv1.AddressType, port string, e discoveryv1.Endpoint) string {
	zone := ""
	if e.Hints != nil && len(e.Hints.ForZones) == 1 {
		zone = e.Hints.ForZones[0].Name
	}
	return fmt.Sprintf("%s %s %v at %s host=%s zone=%s node=%s for=%s ready=%s serving=%s terminating=%s", source, family, e.Addresses, port,
		text(e.Hostname), text(e.Zone), text(e.NodeName), zone,
		formatBool(e.Conditions.Ready), formatBool(e.Conditions.Serving), formatBool(e.Conditions.Terminating))
}

func formatBool(b *bool) string {
	if b == nil {
		return "unset"
	}
	return strconv.FormatBool(*b)
}

// checkWithheld finds ports at which an endpoint of a silent member has come back.
func (h *History) checkWithheld(p place, source string, slice *discoveryv1.EndpointSlice, before metav1.Object) {
	if !h.silent[source] || h.touched(p.key) || h.anySilence() {
		return
	}
	was := map[string]bool{}
	if old, ok := before.(*discoveryv1.EndpointSlice); ok {
		was = served(old)
	}
	for _, text := range slices.Sorted(maps.Keys(served(slice))) {
		if !was[text] && !h.servedElsewhere(origin{p, source}, slice, text) {
			h.reportf(Withheld, p, "endpoint %s of %s is back, and %s is silent", text, source, source)
		}
	}
}

// servedElsewhere reports whether a cluster has an endpoint at a port in another slice of the same exporter.
func (h *History) servedElsewhere(o origin, besides *discoveryv1.EndpointSlice, text string) bool {
	return slices.ContainsFunc(h.slicesOf(o), func(s *discoveryv1.EndpointSlice) bool { return s.Name != besides.Name && served(s)[text] })
}

// anySilence reports whether any agent has stopped or come back.
func (h *History) anySilence() bool {
	for act := range h.acts {
		if act.What == Silence {
			return true
		}
	}
	return false
}
