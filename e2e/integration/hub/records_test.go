// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

type (
	serviceChange   func(*hubv1alpha1.PublishedService)
	endpointsChange func(*hubv1alpha1.PublishedEndpoints)
)

// service returns a good record of the service shop/web, after the changes.
func (m *member) service(changes ...func(*hubv1alpha1.PublishedService)) *hubv1alpha1.PublishedService {
	s, _ := world.Records(string(m.id), world.Key{Namespace: "shop", Name: "web"})
	s.Spec.ExportedAt = metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	s.Spec.Ports[0].AppProtocol = "kubernetes.io/h2c"
	for _, change := range changes {
		change(s)
	}
	return s
}

// endpoints returns a good record of a slice of shop/web that member a may publish, after the changes.
func (m *member) endpoints(changes ...func(*hubv1alpha1.PublishedEndpoints)) *hubv1alpha1.PublishedEndpoints {
	_, e := world.Records(string(m.id), world.Key{Namespace: "shop", Name: "web"}, "10.1.0.1", "10.1.0.2")
	e.Spec.Groups[0].Zone = "z1"
	for _, change := range changes {
		change(e)
	}
	return e
}

// inNamespace makes a record one of the service web in another namespace.
func inNamespace(namespace string) serviceChange {
	return func(s *hubv1alpha1.PublishedService) {
		s.Name, s.Spec.Namespace = namespace+".web", hubv1alpha1.NamespaceName(namespace)
	}
}

// addresses makes a record hold one group of these addresses, of the family of the first.
func addresses(all ...hubv1alpha1.IPAddress) endpointsChange {
	return func(e *hubv1alpha1.PublishedEndpoints) {
		if strings.Contains(string(all[0]), ":") {
			e.Spec.AddressType = "IPv6"
		}
		e.Spec.Groups = []hubv1alpha1.EndpointGroup{{Addresses: all}}
	}
}

func selecting(key, value, target string) serviceChange {
	return func(s *hubv1alpha1.PublishedService) {
		s.Spec.Selection = &hubv1alpha1.PublishedSelection{
			Labels:      map[string]hubv1alpha1.LabelValue{key: hubv1alpha1.LabelValue(value)},
			TargetPorts: []hubv1alpha1.TargetPort{hubv1alpha1.TargetPort(target)},
		}
	}
}

func granted(clusters ...hubv1alpha1.GrantedCluster) serviceChange {
	return func(s *hubv1alpha1.PublishedService) {
		s.Spec.Inactive, s.Spec.GrantedTo = true, &hubv1alpha1.GrantedTo{Clusters: append([]hubv1alpha1.GrantedCluster{}, clusters...)}
	}
}

func (h *hub) testServices(t *testing.T) {
	ports := func(ports ...hubv1alpha1.PublishedPort) serviceChange {
		return func(s *hubv1alpha1.PublishedService) { s.Spec.Ports = ports }
	}
	label := func(key, value string) serviceChange {
		return func(s *hubv1alpha1.PublishedService) {
			s.Spec.Labels = map[string]hubv1alpha1.LabelValue{key: hubv1alpha1.LabelValue(value)}
		}
	}
	annotation := func(key, value string) serviceChange {
		return func(s *hubv1alpha1.PublishedService) {
			s.Spec.Annotations = map[string]hubv1alpha1.AnnotationValue{key: hubv1alpha1.AnnotationValue(value)}
		}
	}
	distribution := func(name string) serviceChange {
		return func(s *hubv1alpha1.PublishedService) { s.Spec.TrafficDistribution = hubv1alpha1.Setting(name) }
	}
	const (
		illegalKey = "a label, annotation or selector key is no qualified name such as app or example.com/app: correct or remove it"
		reserved   = " is reserved, as it could act in other clusters: remove it from exportedLabels and exportedAnnotations"
		unnamed    = "each port needs a name of its own: only a single port may go without"
		tooLarge   = "the annotations have more than 256 KiB in all: export fewer"
	)
	for name, tc := range map[string]struct {
		change serviceChange
		want   string
	}{
		"as it is":                    {func(*hubv1alpha1.PublishedService) {}, ""},
		"everything set":              {everything, ""},
		"name of another service":     {func(s *hubv1alpha1.PublishedService) { s.Name = "shop.other" }, "the name must be <namespace>.<service>"},
		"name of another namespace":   {func(s *hubv1alpha1.PublishedService) { s.Name = "other.web" }, "the name must be <namespace>.<service>"},
		"claims another service":      {func(s *hubv1alpha1.PublishedService) { s.Spec.Service = "other" }, "the name must be <namespace>.<service>"},
		"claims another namespace":    {func(s *hubv1alpha1.PublishedService) { s.Spec.Namespace = "other" }, "the name must be <namespace>.<service>"},
		"service with a dot":          {func(s *hubv1alpha1.PublishedService) { s.Spec.Service = "web.x"; s.Name = "shop.web.x" }, "spec.service: Invalid value"},
		"service begins with a digit": {func(s *hubv1alpha1.PublishedService) { s.Spec.Service = "1web"; s.Name = "shop.1web" }, ""},
		"type ExternalName":           {func(s *hubv1alpha1.PublishedService) { s.Spec.Type = "ExternalName" }, `Unsupported value: "ExternalName"`},
		"no family":                   {func(s *hubv1alpha1.PublishedService) { s.Spec.IPFamilies = nil }, "spec.ipFamilies"},
		"a family twice":              {func(s *hubv1alpha1.PublishedService) { s.Spec.IPFamilies = []hubv1alpha1.IPFamily{"IPv4", "IPv4"} }, "an IP family is named twice: leave one out"},
		"no ports":                    {ports(), "a ClusterSetIP service needs a port: only a headless one may have none"},
		"headless without ports":      {func(s *hubv1alpha1.PublishedService) { s.Spec.Ports, s.Spec.Type = nil, mcsv1beta1.Headless }, ""},
		"one port without a name":     {ports(hubv1alpha1.PublishedPort{Protocol: "TCP", Port: 80}), ""},
		"two ports, one without name": {ports(hubv1alpha1.PublishedPort{Protocol: "TCP", Port: 80}, hubv1alpha1.PublishedPort{Name: "b", Protocol: "TCP", Port: 81}), unnamed},
		"two ports of one name":       {ports(hubv1alpha1.PublishedPort{Name: "a", Protocol: "TCP", Port: 80}, hubv1alpha1.PublishedPort{Name: "a", Protocol: "TCP", Port: 81}), unnamed},
		"a port twice":                {ports(hubv1alpha1.PublishedPort{Name: "a", Protocol: "TCP", Port: 80}, hubv1alpha1.PublishedPort{Name: "b", Protocol: "TCP", Port: 80}), "two ports have the same protocol and number: leave one out"},
		"a number with two protocols": {ports(hubv1alpha1.PublishedPort{Name: "a", Protocol: "TCP", Port: 53}, hubv1alpha1.PublishedPort{Name: "b", Protocol: "UDP", Port: 53}), ""},
		"port name in capitals":       {ports(hubv1alpha1.PublishedPort{Name: "HTTP", Protocol: "TCP", Port: 80}), "spec.ports[0].name: Invalid value"},
		"port 0":                      {ports(hubv1alpha1.PublishedPort{Protocol: "TCP"}), "spec.ports[0].port: Invalid value"},
		"appProtocol is no name":      {ports(hubv1alpha1.PublishedPort{Protocol: "TCP", Port: 80, AppProtocol: "a b"}), "spec.ports[0].appProtocol: Invalid value"},
		"101 ports":                   {ports(manyPorts(101)...), "spec.ports: Too many: 101: must have at most 100 items"},
		"100 ports":                   {ports(manyPorts(100)...), ""},
		"label":                       {label("example.com/app.kubernetes.io", "web"), ""},
		"label of Kubernetes":         {label("kubernetes.io/x", ""), "label or annotation kubernetes.io/x" + reserved},
		"label below Kubernetes":      {label("service.kubernetes.io/headless", ""), "label or annotation service.kubernetes.io/headless" + reserved},
		"label like Kubernetes":       {label("mykubernetes.io/x", ""), ""},
		"label of ours":               {label("hub.tombolo-mcs.io/x", "x"), "label or annotation hub.tombolo-mcs.io/x" + reserved},
		"label of Argo CD":            {label("argocd.argoproj.io/instance", "x"), ""},
		"label value":                 {label("app", "a b"), "spec.labels.app: Invalid value"},
		"label key with a space":      {label("a b", ""), illegalKey},
		"label key that is empty":     {label("", ""), illegalKey},
		"label key of two slashes":    {label("a/b/c", ""), illegalKey},
		"label key in a bad domain":   {label("a_b/c", ""), illegalKey},
		"label key in a capital domain": {
			label("Example.com/c", ""), illegalKey,
		},
		"label key at its longest":   {label(longDomain(253)+"/"+strings.Repeat("n", 63), ""), ""},
		"label key of a long domain": {label(longDomain(254)+"/n", ""), illegalKey},
		"label key of a long name":   {label(strings.Repeat("n", 64), ""), illegalKey},
		"selection":                  {selecting("app.kubernetes.io/name", "web", "http"), ""},
		"selection, illegal key":     {selecting("a b", "web", "http"), illegalKey},
		"selection, illegal value":   {selecting("app", "a b", "http"), "spec.selection.labels.app: Invalid value"},
		"selection, illegal port":    {selecting("app", "web", "HTTP"), "spec.selection.targetPorts[0]: Invalid value"},
		"selection by 65 labels": {func(s *hubv1alpha1.PublishedService) {
			s.Spec.Selection = &hubv1alpha1.PublishedSelection{Labels: map[string]hubv1alpha1.LabelValue{}, TargetPorts: []hubv1alpha1.TargetPort{"http"}}
			for i := range 65 {
				s.Spec.Selection.Labels["key-"+strconv.Itoa(i)] = ""
			}
		}, "spec.selection.labels: Too many: 65"},
		"selection of nothing": {func(s *hubv1alpha1.PublishedService) {
			s.Spec.Selection = &hubv1alpha1.PublishedSelection{Labels: map[string]hubv1alpha1.LabelValue{}}
		}, "spec.selection.labels: Invalid value"},
		"annotation":                                  {annotation("Example.com/note", "any: \u2014 \x01 thing\n"), ""},
		"annotation of a load balancer":               {annotation("service.beta.kubernetes.io/aws-load-balancer-type", "x"), "label or annotation service.beta.kubernetes.io/aws-load-balancer-type" + reserved},
		"annotation in capitals":                      {annotation("K8s.IO/x", "x"), "label or annotation K8s.IO/x" + reserved},
		"annotation of Flux":                          {annotation("kustomize.toolkit.fluxcd.io/x", "x"), ""},
		"annotation key":                              {annotation("-", ""), illegalKey},
		"annotation key, very long":                   {annotation(strings.Repeat("n", 100_000), ""), illegalKey},
		"annotation of 4097 characters":               {annotation("a", strings.Repeat("x", 4097)), "spec.annotations.a: Too long"},
		"annotations of 257 KiB":                      {annotations(64, strings.Repeat("x", 4096)), tooLarge},
		"annotations of 257 KiB in 2-byte characters": {annotations(33, strings.Repeat("\u00e4", 4096)), tooLarge},
		"annotations of 255 KiB":                      {annotations(63, strings.Repeat("x", 4096)), ""},
		"65 annotations":                              {annotations(65, ""), "spec.annotations: Too many: 65: must have at most 64 items"},
		"a traffic policy and a distribution to come": {func(s *hubv1alpha1.PublishedService) {
			s.Spec.InternalTrafficPolicy, s.Spec.TrafficDistribution = "PreferLocal", "example.com/PreferSomethingNew"
		}, ""},
		"a traffic policy that is no name":       {func(s *hubv1alpha1.PublishedService) { s.Spec.InternalTrafficPolicy = "a b" }, "spec.internalTrafficPolicy: Invalid value"},
		"a traffic distribution that is no name": {distribution("-a"), "spec.trafficDistribution: Invalid value"},
		"a traffic distribution at its longest":  {distribution("a/" + strings.Repeat("n", 62)), ""},
		"a longer one":                           {distribution("a/" + strings.Repeat("n", 63)), "spec.trafficDistribution: Too long"},
		"affinity":                               {func(s *hubv1alpha1.PublishedService) { s.Spec.SessionAffinity = "Cookie" }, `Unsupported value: "Cookie"`},
		"affinity of more than a day":            {func(s *hubv1alpha1.PublishedService) { s.Spec.SessionAffinityTimeoutSeconds = 86401 }, "spec.sessionAffinityTimeoutSeconds: Invalid value: 86401"},
		"affinity of less than no time":          {func(s *hubv1alpha1.PublishedService) { s.Spec.SessionAffinityTimeoutSeconds = -1 }, "spec.sessionAffinityTimeoutSeconds: Invalid value: -1"},
		"granted to some":                        {granted("b", "c"), ""},
		"granted to none":                        {granted(), ""},
		"granted to one twice":                   {granted("b", "b"), ""},
		"granted to no cluster ID":               {granted("B"), "spec.grantedTo.clusters[0]: Invalid value"},
		"granted to 257 clusters":                {granted(slices.Repeat([]hubv1alpha1.GrantedCluster{"b"}, 257)...), "spec.grantedTo.clusters: Too many: 257: must have at most 256 items"},
		"granted to some, and active":            {func(s *hubv1alpha1.PublishedService) { granted("b")(s); s.Spec.Inactive = false }, "a record with grantedTo must be inactive"},
	} {
		t.Run(name, func(t *testing.T) {
			try(t, h.a, func() *hubv1alpha1.PublishedService { return h.a.service() }, tc.change, tc.want)
		})
	}
}

func (h *hub) testEndpoints(t *testing.T) {
	ports := func(names ...string) endpointsChange {
		return func(e *hubv1alpha1.PublishedEndpoints) {
			e.Spec.Ports = nil
			for _, name := range names {
				e.Spec.Ports = append(e.Spec.Ports, hubv1alpha1.PublishedEndpointPort{Name: name, Protocol: "TCP", Port: 80})
			}
		}
	}
	group := func(perEndpoint int32, hostnames []hubv1alpha1.Hostname, all ...hubv1alpha1.IPAddress) endpointsChange {
		return func(e *hubv1alpha1.PublishedEndpoints) {
			e.Spec.Groups = []hubv1alpha1.EndpointGroup{{AddressesPerEndpoint: perEndpoint, Hostnames: hostnames, Addresses: all}}
		}
	}
	zone := func(name string) endpointsChange {
		return func(e *hubv1alpha1.PublishedEndpoints) { e.Spec.Groups[0].Zone = name }
	}
	const notAnID = "the slice in the name must be an ID as agents give them, of 10 hexadecimal digits"
	const hostnames = "hostnames must have one entry for each endpoint, or be absent"
	for name, tc := range map[string]struct {
		change endpointsChange
		want   string
	}{
		"as it is":                  {func(*hubv1alpha1.PublishedEndpoints) {}, ""},
		"no endpoints, no ports":    {func(e *hubv1alpha1.PublishedEndpoints) { e.Spec.Groups, e.Spec.Ports = nil, nil }, ""},
		"a group without addresses": {group(0, nil), "spec.groups[0].addresses"},
		"name of the service only":  {func(e *hubv1alpha1.PublishedEndpoints) { e.Name = "shop.web" }, "the name must be <namespace>.<service>.<slice>"},
		"name of another service":   {func(e *hubv1alpha1.PublishedEndpoints) { e.Name = "shop.web2.x" }, "the name must be <namespace>.<service>.<slice>"},
		"slice with a hyphen":       {func(e *hubv1alpha1.PublishedEndpoints) { e.Name = "shop.web.eu-0123456789" }, notAnID},
		"slice with a dot":          {func(e *hubv1alpha1.PublishedEndpoints) { e.Name = "shop.web.eu.0123456789" }, notAnID},
		"slice of a short name":     {func(e *hubv1alpha1.PublishedEndpoints) { e.Name = "shop.web.012345678" }, notAnID},
		"slice of a long name":      {func(e *hubv1alpha1.PublishedEndpoints) { e.Name = "shop.web.0123456789a" }, notAnID},
		"slice of other letters":    {func(e *hubv1alpha1.PublishedEndpoints) { e.Name = "shop.web.g123456789" }, notAnID},
		"slice of all digits":       {func(e *hubv1alpha1.PublishedEndpoints) { e.Name = "shop.web.abcdef6789" }, ""},
		"claims another service":    {func(e *hubv1alpha1.PublishedEndpoints) { e.Spec.Service = "we" }, "the name must be <namespace>.<service>.<slice>"},
		"FQDN":                      {func(e *hubv1alpha1.PublishedEndpoints) { e.Spec.AddressType = "FQDN" }, `Unsupported value: "FQDN"`},
		"ports of other names":      {ports("a", "b", ""), ""},
		"ports of one name":         {ports("a", "a"), "two ports have the same name: leave one out"},
		"101 ports":                 {ports(make([]string, 101)...), "spec.ports: Too many: 101"},
		"101 addresses an endpoint": {func(e *hubv1alpha1.PublishedEndpoints) { e.Spec.Groups[0].AddressesPerEndpoint = 101 }, "spec.groups[0].addressesPerEndpoint: Invalid value: 101"},
		"ports without names":       {ports("", ""), "two ports have the same name: leave one out"},
		"port name":                 {ports("a_b"), "spec.ports[0].name: Invalid value"},
		"hostnames":                 {group(0, []hubv1alpha1.Hostname{"db-0", ""}, "10.1.0.1", "10.1.0.2"), ""},
		"too few hostnames":         {group(0, []hubv1alpha1.Hostname{"db-0"}, "10.1.0.1", "10.1.0.2"), hostnames},
		"hostname per endpoint":     {group(2, []hubv1alpha1.Hostname{"db-0"}, "10.1.0.1", "10.1.0.2"), ""},
		"hostname per address":      {group(2, []hubv1alpha1.Hostname{"db-0", "db-1"}, "10.1.0.1", "10.1.0.2"), hostnames},
		"zone":                      {zone("EU_1.a"), ""},
		"no zone":                   {zone("eu/1a"), "spec.groups[0].zone: Invalid value"},
		"zone that ends in a dot":   {zone("eu."), "spec.groups[0].zone: Invalid value"},
		"zone of 64 characters":     {zone(strings.Repeat("z", 64)), "spec.groups[0].zone: Too long"},
		"hostname with a dot":       {group(0, []hubv1alpha1.Hostname{"db.0"}, "10.1.0.1"), "spec.groups[0].hostnames[0]: Invalid value"},
		"odd number of addresses":   {group(2, nil, "10.1.0.1", "10.1.0.2", "10.1.0.3"), "the addresses are no multiple of addressesPerEndpoint: each endpoint needs that many"},
	} {
		t.Run(name, func(t *testing.T) {
			try(t, h.a, func() *hubv1alpha1.PublishedEndpoints { return h.a.endpoints() }, tc.change, tc.want)
		})
	}
}

func everything(s *hubv1alpha1.PublishedService) {
	s.Spec.IPFamilies = []hubv1alpha1.IPFamily{"IPv6", "IPv4"}
	s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
	s.Spec.SessionAffinityTimeoutSeconds = 86400
	s.Spec.InternalTrafficPolicy = hubv1alpha1.Setting(corev1.ServiceInternalTrafficPolicyLocal)
	s.Spec.TrafficDistribution = corev1.ServiceTrafficDistributionPreferClose
	s.Spec.Labels = map[string]hubv1alpha1.LabelValue{"app": "web", "example.com/tier": ""}
	annotations(10, "x")(s)
}

func manyPorts(n int) []hubv1alpha1.PublishedPort {
	var out []hubv1alpha1.PublishedPort
	for i := range n {
		out = append(out, hubv1alpha1.PublishedPort{Name: "p" + strconv.Itoa(i), Protocol: "TCP", Port: int32(i + 1)})
	}
	return out
}

func annotations(n int, value string) serviceChange {
	return func(s *hubv1alpha1.PublishedService) {
		s.Spec.Annotations = map[string]hubv1alpha1.AnnotationValue{}
		for i := range n {
			s.Spec.Annotations["example.com/"+strconv.Itoa(i)] = hubv1alpha1.AnnotationValue(value)
		}
	}
}

// longDomain returns a DNS subdomain of n characters.
func longDomain(n int) string {
	return strings.Repeat(strings.Repeat("d", 49)+".", n/50) + strings.Repeat("d", n%50)
}
