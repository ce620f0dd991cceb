// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package memberdns

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/apiserver"
	"github.com/tombolo-mcs/tombolo/internal/corefile"
)

// usualCorefiles are the ConfigMaps with the Corefile of the cluster DNS by convention, as usualDNS: of kubeadm and most platforms, RKE2, and
// OpenShift.
var usualCorefiles = []client.ObjectKey{
	{Namespace: metav1.NamespaceSystem, Name: "coredns"},
	{Namespace: metav1.NamespaceSystem, Name: "rke2-coredns-rke2-coredns"},
	{Namespace: metav1.NamespaceSystem, Name: "rke2-coredns"},
	{Namespace: OpenShiftNamespace, Name: "dns-default"},
}

// Further ConfigMaps: with the files that the Corefile of k3s and AKS imports, of kube-dns, and of NodeLocal DNSCache.
var (
	CustomCorefile = client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "coredns-custom"}
	kubeDNSConfig  = client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "kube-dns"}
	nodeLocalDNS   = client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "node-local-dns"}
)

// OpenShiftNamespace is the namespace of the DNS of OpenShift.
const OpenShiftNamespace = "openshift-dns"

const corefileKey = "Corefile"

// IsConfig reports whether Read reads a ConfigMap.
func IsConfig(key client.ObjectKey) bool {
	return slices.Contains(usualCorefiles, key) || key == CustomCorefile || key == kubeDNSConfig || key == nodeLocalDNS
}

// Read reads what the DNS of a cluster does with the names of the clusterset. ranges are those of the cluster's Services;
// empty if they are not known. context is the context of the cluster in what to do; it may be empty.
func Read(ctx context.Context, from client.Reader, ranges []netip.Prefix, context string) Configuration {
	servers := []dnsServer{readClusterDNS(ctx, from)}
	if servers[0].unanswered { // more requests would take as long
		return dnsObjects{context: context, servers: servers}.configuration()
	}
	if cache, ok := readCorefile(ctx, from, nodeLocalDNS); ok {
		servers = append(servers, cache)
	}
	return configurationOf(ctx, from, dnsObjects{context: context, ranges: ranges, servers: servers})
}

// ReadCorefile reads what the Corefile in a ConfigMap does with the names of the clusterset.
func ReadCorefile(ctx context.Context, from client.Reader, key client.ObjectKey, ranges []netip.Prefix) Configuration {
	server, _ := readCorefile(ctx, from, key)
	return configurationOf(ctx, from, dnsObjects{ranges: ranges, servers: []dnsServer{server}})
}

// configurationOf reads the Services, and returns the state of the servers.
func configurationOf(ctx context.Context, from client.Reader, o dnsObjects) Configuration {
	service := &corev1.Service{}
	switch err := from.Get(ctx, serviceKey, service); {
	case err == nil:
		o.service = service
	case !apiserver.IsNotFound(err):
		o.serviceErr = fmt.Errorf("get Service %s: %w", serviceKey, err)
	}
	all := &corev1.ServiceList{}
	isForwarded := func(s dnsServer) bool { return s.resolution.Kind == corefile.Forwarded }
	if slices.ContainsFunc(o.servers, isForwarded) && from.List(ctx, all) == nil {
		o.services = append([]corev1.Service{}, all.Items...)
	}
	return o.configuration()
}

// readClusterDNS reads the configuration of the cluster's DNS.
func readClusterDNS(ctx context.Context, from client.Reader) dnsServer {
	for _, key := range usualCorefiles {
		if found, ok := readCorefile(ctx, from, key); ok {
			return found
		}
	}
	config := &corev1.ConfigMap{}
	result := dnsServer{config: kubeDNSConfig, kind: kubeDNS}
	switch err := from.Get(ctx, kubeDNSConfig, config); {
	case err == nil:
		result.resolution = corefile.ResolutionOfStubs(config.Data["stubDomains"], Zone)
	case apiserver.IsNotFound(err):
		why := fmt.Sprintf("there is no ConfigMap %s with a %s", usualCorefiles[0], corefileKey)
		return dnsServer{kind: clusterCoreDNS, resolution: corefile.Resolution{Kind: corefile.NotKnown, Why: why}}
	default:
		result.notRead(err)
	}
	return result
}

// readCorefile reads a Corefile and what it imports. It returns false if there is none.
func readCorefile(ctx context.Context, from client.Reader, key client.ObjectKey) (dnsServer, bool) {
	result := dnsServer{config: key, kind: clusterCoreDNS}
	if key == nodeLocalDNS {
		result.kind = nodeCache
	}
	config := &corev1.ConfigMap{}
	if err := from.Get(ctx, key, config); err != nil {
		result.notRead(err)
		return result, !apiserver.IsNotFound(err)
	}
	text, found := config.Data[corefileKey]
	var custom corefile.Custom
	imported := &corev1.ConfigMap{}
	if err := from.Get(ctx, CustomCorefile, imported); err == nil || apiserver.IsNotFound(err) {
		custom = corefile.Custom{}
		for name, content := range imported.Data {
			custom[name] = content
		}
	}
	result.resolution = corefile.ResolutionOf(text, Zone, custom)
	return result, found
}

// notRead notes why the ConfigMap could not be read.
func (s *dnsServer) notRead(err error) {
	s.resolution = corefile.Resolution{Kind: corefile.NotKnown, Why: fmt.Sprintf("get ConfigMap %s: %v", s.config, err)}
	s.unanswered = !apiserver.IsNotFound(err) && !apierrors.IsForbidden(err)
}
