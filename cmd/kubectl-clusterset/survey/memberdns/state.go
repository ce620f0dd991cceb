// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package memberdns reads the DNS of a member: what it does with the names of the clusterset, by its configuration, and what its pods answer.
package memberdns

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/phrase"
	"github.com/tombolo-mcs/tombolo/internal/corefile"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// State says what the DNS of a member does with the names of the clusterset, by its configuration.
type State string

// Values of State.
const (
	// Forwarded: it forwards them to Tombolo's DNS.
	Forwarded State = "Forwarded"
	// Served: it serves them itself.
	Served State = "Served"
	// Stale: it forwards them to an address that Tombolo's DNS does not have.
	Stale State = "Stale"
	// NotSet: it does nothing with them.
	NotSet State = "NotSet"
	// NotKnown: the configuration could not be read, or does not show it.
	NotKnown State = "NotKnown"
)

// Configuration is what the DNS of a member does with the names of the clusterset, by its configuration.
type Configuration struct {
	State State
	// Message says what is configured, and Next what to do; empty if there is nothing to do.
	Message, Next string
	// In is the file of ConfigMap coredns-custom that forwards them; empty if the Corefile does, or if nothing does.
	In string
	// OfCache is true if NodeLocal DNSCache has this state, which pods query before the cluster's DNS.
	OfCache bool
}

// serviceKey is the name of the Service of Tombolo's DNS.
var serviceKey = client.ObjectKey{Namespace: manifests.AgentNamespace, Name: manifests.DNSService}

// dnsServer is a DNS server of a cluster, and the ConfigMap with its configuration.
type dnsServer struct {
	resolution corefile.Resolution
	// config is the ConfigMap; empty if none was found.
	config client.ObjectKey
	// kind is the kind of the server.
	kind dnsServerKind
	// unanswered is true if the API server has not answered.
	unanswered bool
}

type dnsServerKind string

const (
	clusterCoreDNS dnsServerKind = "CoreDNS"
	kubeDNS        dnsServerKind = "kube-dns"
	nodeCache      dnsServerKind = "NodeLocal DNSCache"
)

// dnsObjects are the objects on which a Configuration depends.
type dnsObjects struct {
	context string
	// servers are the cluster's DNS and, if it exists, NodeLocal DNSCache, which pods query first.
	servers []dnsServer
	// service is the Service of Tombolo's DNS; nil if there is none. serviceErr is why it could not be read.
	service    *corev1.Service
	serviceErr error
	// services are all Services; nil if they could not be read. ranges are those of their addresses; empty if they are not known.
	services []corev1.Service
	ranges   []netip.Prefix
}

// severityOfDNS are the states in the order in which they hide others.
var severityOfDNS = []State{Stale, NotSet, NotKnown, Forwarded, Served}

// configuration returns the most severe state of the servers.
func (o dnsObjects) configuration() Configuration {
	var result Configuration
	for _, s := range o.servers {
		state, message, next := o.judge(s)
		c := Configuration{state, message, next, s.resolution.In, s.kind == nodeCache}
		switch {
		case result.State == "", slices.Index(severityOfDNS, c.State) < slices.Index(severityOfDNS, result.State):
			result = c
		case c.State == result.State && c.Next != "":
			result.Message, result.Next, result.OfCache = result.Message+"; "+c.Message, result.Next+"; then: "+c.Next, c.OfCache
		}
	}
	return result
}

// judge returns the state of one server, what is configured, and what to do.
func (o dnsObjects) judge(s dnsServer) (state State, message, next string) {
	where := s.String()
	switch s.resolution.Kind {
	case corefile.Served:
		return Served, fmt.Sprintf("%s serves %s itself", where, Zone), ""
	case corefile.Forwarded:
		return o.judgeForward(s, fmt.Sprintf("%s forwards %s to %s", where, Zone, addressList(s.resolution.To)))
	case corefile.Unserved:
		if s.kind == nodeCache { // a platform may configure its pods or its cache in another manner
			return NotKnown, fmt.Sprintf("pods query %s first, and %s has no block for %s", s.kind, where, Zone),
				"add the block for " + Zone + " there too: manifests/dns/corefile/README.md"
		}
		return NotSet, fmt.Sprintf("%s has nothing for %s", where, Zone), o.command(s)
	case corefile.NotKnown:
	}
	return NotKnown, fmt.Sprintf("what %s does with %s is not known: %s", where, Zone, s.resolution.Why),
		"check that it resolves a name of an import in a pod, such as NAME.NAMESPACE.svc." + Zone
}

// String returns the name of the configuration.
func (s dnsServer) String() string {
	switch {
	case s.config.Name == "":
		return "the cluster's DNS"
	case s.kind == kubeDNS:
		return fmt.Sprintf("kube-dns (ConfigMap %s)", s.config)
	}
	return fmt.Sprintf("the Corefile in ConfigMap %s", s.config)
}

// judgeForward compares the addresses of a forward with the Service of Tombolo's DNS. does says what the server does.
func (o dnsObjects) judgeForward(s dnsServer, does string) (state State, message, next string) {
	if o.serviceErr != nil {
		return NotKnown, fmt.Sprintf("%s; whether that is Tombolo's DNS is not known: %v", does, o.serviceErr), ""
	}
	isStale := false
	for _, to := range s.resolution.To {
		owner, found := o.ownerOf(to)
		switch {
		case found && o.isTombolo(owner):
		case found:
			return NotKnown, fmt.Sprintf("%s; %s is Service %s, and whether that serves %s is not known",
				does, to, client.ObjectKeyFromObject(owner), Zone), o.command(s)
		case o.services == nil:
			return NotKnown, does + "; whether that is a Service is not known, because Services could not be listed", o.command(s)
		case o.isServiceAddress(to):
			isStale = true
		default:
			return NotKnown, fmt.Sprintf("%s; %s is the address of no Service, and whether that serves %s is not known", does, to, Zone), o.command(s)
		}
	}
	switch {
	case !isStale:
		return Forwarded, does, ""
	case o.service == nil:
		next = "install it (kubectl clusterset join, without --profile agent), then: " + o.command(s)
		if s.kind != nodeCache && o.hasCommand(s) {
			next += "; or have CoreDNS serve the names: " + o.command(s) + " --by kubernetes"
		}
		return Stale, fmt.Sprintf("%s, but there is no Service %s", does, serviceKey), next
	}
	return Stale, fmt.Sprintf("%s, but Service %s has the address %s",
		does, serviceKey, strings.Join(o.service.Spec.ClusterIPs, ", ")), o.command(s)
}

// ownerOf returns the Service with an address.
func (o dnsObjects) ownerOf(to netip.Addr) (*corev1.Service, bool) {
	if o.service != nil && hasAddress(o.service, to) {
		return o.service, true
	}
	for i := range o.services {
		if hasAddress(&o.services[i], to) {
			return &o.services[i], true
		}
	}
	return nil, false
}

func hasAddress(service *corev1.Service, to netip.Addr) bool {
	all := slices.Concat(service.Spec.ClusterIPs, []string{service.Spec.ClusterIP}, service.Spec.ExternalIPs)
	for _, ingress := range service.Status.LoadBalancer.Ingress {
		all = append(all, ingress.IP)
	}
	return slices.ContainsFunc(all, func(ip string) bool {
		parsed, err := netip.ParseAddr(ip)
		return err == nil && parsed.Unmap() == to
	})
}

// isTombolo reports whether a Service leads to the pods of Tombolo's DNS: an administrator may have added another one.
func (o dnsObjects) isTombolo(service *corev1.Service) bool {
	if client.ObjectKeyFromObject(service) == serviceKey {
		return true
	}
	pods := labels.Set{"app.kubernetes.io/name": manifests.DNSDeployment, "app.kubernetes.io/part-of": "tombolo"}
	return service.Namespace == manifests.AgentNamespace && len(service.Spec.Selector) > 0 && labels.SelectorFromSet(service.Spec.Selector).Matches(pods)
}

// isServiceAddress reports whether only a Service can have an address, as is assumed if the ranges are not known.
func (o dnsObjects) isServiceAddress(to netip.Addr) bool {
	return len(o.ranges) == 0 || slices.ContainsFunc(o.ranges, func(p netip.Prefix) bool { return p.Contains(to) })
}

// hasCommand reports whether the command dns can configure a server.
func (o dnsObjects) hasCommand(s dnsServer) bool {
	return s.config.Namespace != OpenShiftNamespace && s.kind != kubeDNS && s.resolution.In == ""
}

// command returns how to configure a server.
func (o dnsObjects) command(s dnsServer) string {
	address := "the address of Service " + serviceKey.String()
	if o.service != nil {
		address = strings.Join(o.service.Spec.ClusterIPs, " ")
	}
	edit := "kubectl" + phrase.ContextFlag(o.context) + " -n " + s.config.Namespace + " edit configmap "
	switch {
	case s.config.Namespace == OpenShiftNamespace:
		return "kubectl" + phrase.ContextFlag(o.context) + " edit dnses.operator.openshift.io/default: in spec.servers, forward " + Zone + " to " + address
	case s.kind == kubeDNS:
		return edit + s.config.Name + ": set the stub domain " + Zone + " to " + address
	case s.resolution.In != "":
		return edit + CustomCorefile.Name + ": in " + s.resolution.In + ", forward " + Zone + " to " + address
	}
	command := "kubectl clusterset dns" + phrase.ContextFlag(o.context)
	if s.config != usualCorefiles[0] {
		command += " --configmap " + s.config.String()
	}
	return command
}

func addressList(addresses []netip.Addr) string {
	words := make([]string, 0, len(addresses))
	for _, a := range addresses {
		words = append(words, a.String())
	}
	return strings.Join(words, ", ")
}
