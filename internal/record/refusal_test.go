// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// selecting returns a function that sets the selection of a record.
func selecting(labels map[string]hubv1alpha1.LabelValue, targets ...hubv1alpha1.TargetPort) func(*hubv1alpha1.PublishedService) {
	return func(r *hubv1alpha1.PublishedService) {
		r.Spec.Selection = &hubv1alpha1.PublishedSelection{Labels: labels, TargetPorts: targets}
	}
}

// granting returns a function that grants a record to some clusters only.
func granting(clusters ...hubv1alpha1.GrantedCluster) func(*hubv1alpha1.PublishedService) {
	return func(r *hubv1alpha1.PublishedService) {
		r.Spec.Inactive, r.Spec.GrantedTo = true, &hubv1alpha1.GrantedTo{Clusters: clusters}
	}
}

func manyClusters(n int) []hubv1alpha1.GrantedCluster {
	var result []hubv1alpha1.GrantedCluster
	for i := range n {
		result = append(result, hubv1alpha1.GrantedCluster(fmt.Sprintf("c%d", i)))
	}
	return result
}

// spec: R1, R5, D3, D8, A1
func TestServiceRefusals(t *testing.T) {
	t.Parallel()
	type record = hubv1alpha1.PublishedService
	renamed := func(r *record, namespace, service string) {
		r.Name = namespace + "." + service
		r.Spec.Namespace, r.Spec.Service = hubv1alpha1.NamespaceName(namespace), hubv1alpha1.ServiceName(service)
	}
	portsOf := func(n int) []hubv1alpha1.PublishedPort {
		var ports []hubv1alpha1.PublishedPort
		for i := range n {
			ports = append(ports, hubv1alpha1.PublishedPort{Name: fmt.Sprintf("p%d", i), Protocol: "TCP", Port: int32(i + 1)})
		}
		return ports
	}
	long := strings.Repeat("x", 64)
	for name, tc := range map[string]struct {
		change func(*record)
		want   string // empty: accepted
	}{
		"nothing wrong":               {func(*record) {}, ""},
		"a digit first":               {func(r *record) { renamed(r, "0shop", "1web") }, ""},
		"another name":                {func(r *record) { r.Name = "shop.api" }, "its name does not say that it is service shop/web"},
		"a name with more behind it":  {func(r *record) { r.Name = "shop.web.2" }, "its name does not say that it is service shop/web"},
		"another namespace":           {func(r *record) { r.Spec.Namespace = "bank" }, "its name does not say that it is service bank/web"},
		"an illegal namespace":        {func(r *record) { renamed(r, "Shop", "web") }, `"Shop/web" is no legal namespace and service name`},
		"an illegal service":          {func(r *record) { renamed(r, "shop", "web_1") }, `"shop/web_1" is no legal namespace and service name`},
		"a dot in the service's name": {func(r *record) { renamed(r, "shop", "web.x") }, `"shop/web.x" is no legal namespace and service name`},
		"no service":                  {func(r *record) { renamed(r, "shop", "") }, `"shop/" is no legal namespace and service name`},
		"a service's name too long":   {func(r *record) { renamed(r, "shop", long) }, `"shop/` + long + `" is no legal namespace and service name`},
		"a reserved namespace":        {func(r *record) { renamed(r, "kube-system", "web") }, "namespace kube-system is reserved"},
		"a namespace that is not its": {func(r *record) { renamed(r, "bank", "web") }, "the member may not publish services of namespace bank"},
		"no type":                     {func(r *record) { r.Spec.Type = "" }, `"" is no type`},
		"an unknown type":             {func(r *record) { r.Spec.Type = "ExternalName" }, `"ExternalName" is no type`},
		"no ports":                    {func(r *record) { r.Spec.Ports = nil }, "it has no port, which only a headless service can be without"},
		"no ports, headless":          {func(r *record) { r.Spec.Ports, r.Spec.Type = nil, mcsv1beta1.Headless }, ""},
		"as many ports as can be":     {func(r *record) { r.Spec.Ports = portsOf(100) }, ""},
		"too many ports":              {func(r *record) { r.Spec.Ports = portsOf(101) }, "it has 101 ports, more than 100"},
		"a port's name twice":         {func(r *record) { r.Spec.Ports = append(portsOf(1), portsOf(1)...); r.Spec.Ports[1].Port = 2 }, "port p0:2/TCP is there twice"},
		"a port's number twice":       {func(r *record) { r.Spec.Ports = portsOf(2); r.Spec.Ports[1].Port = 1 }, "port p1:1/TCP is there twice"},
		"a number with two protocols": {func(r *record) { r.Spec.Ports = portsOf(2); r.Spec.Ports[1].Port, r.Spec.Ports[1].Protocol = 1, "UDP" }, ""},
		"an illegal port name":        {func(r *record) { r.Spec.Ports[0].Name = "HTTP" }, `port name "HTTP" is no DNS label`},
		"no port name":                {func(r *record) { r.Spec.Ports[0].Name = "" }, ""},
		"no protocol":                 {func(r *record) { r.Spec.Ports[0].Protocol = "" }, `"" is no protocol`},
		"an unknown protocol":         {func(r *record) { r.Spec.Ports[0].Protocol = "ICMP" }, `"ICMP" is no protocol`},
		"SCTP":                        {func(r *record) { r.Spec.Ports[0].Protocol = "SCTP" }, ""},
		"port 0":                      {func(r *record) { r.Spec.Ports[0].Port = 0 }, "0 is no port number"},
		"a port number too large":     {func(r *record) { r.Spec.Ports[0].Port = 65536 }, "65536 is no port number"},
		"an illegal appProtocol":      {func(r *record) { r.Spec.Ports[0].AppProtocol = "a/b/c" }, `application protocol "a/b/c" is no qualified name`},
		"2 available":                 {func(r *record) { r.Spec.Ports[0].Available = new(int32(2)) }, ""},
		"more than 2 available":       {func(r *record) { r.Spec.Ports[0].Available = new(int32(3)) }, "3 available endpoints of port 80 are not 0, 1 or 2"},
		"fewer than 0 available":      {func(r *record) { r.Spec.Ports[0].Available = new(int32(-1)) }, "-1 available endpoints of port 80 are not 0, 1 or 2"},
		"availability of one of two":  {func(r *record) { r.Spec.Ports = portsOf(2); r.Spec.Ports[1].Available = new(int32(0)) }, "some of its ports have no availability"},
		"no families":                 {func(r *record) { r.Spec.IPFamilies = nil }, "[] are no IP families of a Service"},
		"a family twice":              {func(r *record) { r.Spec.IPFamilies = []hubv1alpha1.IPFamily{"IPv4", "IPv4"} }, "[IPv4 IPv4] are no IP families of a Service"},
		"both families":               {func(r *record) { r.Spec.IPFamilies = []hubv1alpha1.IPFamily{"IPv6", "IPv4"} }, ""},
		"three families":              {func(r *record) { r.Spec.IPFamilies = []hubv1alpha1.IPFamily{"IPv4", "IPv6", "IPv4"} }, "[IPv4 IPv6 IPv4] are no IP families of a Service"},
		"an unknown family":           {func(r *record) { r.Spec.IPFamilies = []hubv1alpha1.IPFamily{"IPX"} }, "[IPX] are no IP families of a Service"},
		"an unknown first family":     {func(r *record) { r.Spec.IPFamilies = []hubv1alpha1.IPFamily{"IPX", "IPv4"} }, "[IPX IPv4] are no IP families of a Service"},
		"an unknown second family":    {func(r *record) { r.Spec.IPFamilies = []hubv1alpha1.IPFamily{"IPv4", "IPX"} }, "[IPv4 IPX] are no IP families of a Service"},
		"an unknown affinity":         {func(r *record) { r.Spec.SessionAffinity = "Cookie" }, `"Cookie" is no session affinity`},
		"no affinity":                 {func(r *record) { r.Spec.SessionAffinity = "" }, ""},
		"the longest affinity":        {func(r *record) { r.Spec.SessionAffinityTimeoutSeconds = 86400 }, ""},
		"an affinity too long":        {func(r *record) { r.Spec.SessionAffinityTimeoutSeconds = 86401 }, "a session affinity timeout of 86401 s is out of range"},
		"a negative affinity":         {func(r *record) { r.Spec.SessionAffinityTimeoutSeconds = -1 }, "a session affinity timeout of -1 s is out of range"},
		"a traffic policy to come":    {func(r *record) { r.Spec.InternalTrafficPolicy = "Global" }, ""},
		"no traffic policy at all":    {func(r *record) { r.Spec.InternalTrafficPolicy = "a b" }, `"a b" is no internal traffic policy`},
		"Local":                       {func(r *record) { r.Spec.InternalTrafficPolicy = "Local" }, ""},
		"no traffic distribution":     {func(r *record) { r.Spec.TrafficDistribution = "" }, ""},
		"a traffic distribution at its longest": {
			func(r *record) { r.Spec.TrafficDistribution = hubv1alpha1.Setting("a/" + long[:62]) }, "",
		},
		"a longer one": {
			func(r *record) { r.Spec.TrafficDistribution = hubv1alpha1.Setting("a/" + long[:63]) },
			`"a/` + long[:63] + `" is no traffic distribution`,
		},
		"a traffic distribution that is reported in part": {
			func(r *record) { r.Spec.TrafficDistribution = hubv1alpha1.Setting(strings.Repeat("\n", 5000)) },
			`"` + strings.Repeat(`\n`, 100) + `" is no traffic distribution`,
		},
		"granted to some":              {granting("a", "b"), ""},
		"granted to none":              {granting(), ""},
		"granted to as many as can be": {granting(manyClusters(256)...), ""},
		"granted to too many":          {granting(manyClusters(257)...), "it is granted to 257 clusters, more than 256"},
		"granted to one twice":         {granting("a", "a"), ""},
		"granted to no cluster ID":     {granting("A"), `it is granted to "A", which is no cluster ID`},
		"granted to some, and active": {
			func(r *record) { granting("a")(r); r.Spec.Inactive = false }, "it is granted to some clusters, but not inactive for the others",
		},
		"an illegal label":              {func(r *record) { r.Spec.Labels = map[string]hubv1alpha1.LabelValue{"-": "", "0": "", "!": ""} }, `label "!" is illegal or reserved`},
		"an illegal label value":        {func(r *record) { r.Spec.Labels = map[string]hubv1alpha1.LabelValue{"team": "a b"} }, `label "team" is illegal or reserved`},
		"a reserved label":              {func(r *record) { r.Spec.Labels = map[string]hubv1alpha1.LabelValue{"k8s.io/x": ""} }, `label "k8s.io/x" is illegal or reserved`},
		"an illegal annotation":         {func(r *record) { r.Spec.Annotations = map[string]hubv1alpha1.AnnotationValue{"~": "", "?": ""} }, `annotation "?" is illegal, too long or reserved`},
		"a reserved annotation":         {func(r *record) { r.Spec.Annotations = map[string]hubv1alpha1.AnnotationValue{"K8s.io/x": ""} }, `annotation "K8s.io/x" is illegal, too long or reserved`},
		"an annotation in upper case":   {func(r *record) { r.Spec.Annotations = map[string]hubv1alpha1.AnnotationValue{"Example.com/X": ""} }, ""},
		"as many labels as can be":      {func(r *record) { r.Spec.Labels = manyKeys[hubv1alpha1.LabelValue](64, "") }, ""},
		"too many labels":               {func(r *record) { r.Spec.Labels = manyKeys[hubv1alpha1.LabelValue](65, "") }, "it has more than 64 labels or annotations"},
		"as many annotations as can be": {func(r *record) { r.Spec.Annotations = manyKeys[hubv1alpha1.AnnotationValue](64, "") }, ""},
		"too many annotations":          {func(r *record) { r.Spec.Annotations = manyKeys[hubv1alpha1.AnnotationValue](65, "") }, "it has more than 64 labels or annotations"},
		"the longest annotation": {
			func(r *record) {
				r.Spec.Annotations = manyKeys(1, hubv1alpha1.AnnotationValue(strings.Repeat("ü", 4096)))
			}, "",
		},
		"an annotation too long": {
			func(r *record) {
				r.Spec.Annotations = manyKeys(1, hubv1alpha1.AnnotationValue(strings.Repeat("x", 4097)))
			},
			`annotation "key-000" is illegal, too long or reserved`,
		},
		"a selection": {selecting(map[string]hubv1alpha1.LabelValue{"app.kubernetes.io/name": "web"}, "http"), ""},
		"a selection of no labels": {
			selecting(nil, "http"), "its selector has 0 labels, not 1 to 64",
		},
		"as many labels to select by as can be": {selecting(manyKeys[hubv1alpha1.LabelValue](64, ""), "http"), ""},
		"too many labels to select by": {
			selecting(manyKeys[hubv1alpha1.LabelValue](65, ""), "http"), "its selector has 65 labels, not 1 to 64",
		},
		"an illegal label to select by": {
			selecting(map[string]hubv1alpha1.LabelValue{"-": "", "!": ""}, "http"), `"!" is no label of a selector`,
		},
		"an illegal value to select by": {
			selecting(map[string]hubv1alpha1.LabelValue{"app": "a b"}, "http"), `"app" is no label of a selector`,
		},
		"no target port": {
			selecting(map[string]hubv1alpha1.LabelValue{"app": "web"}), "it has 0 target ports for 1 ports",
		},
		"a target port too many": {
			selecting(map[string]hubv1alpha1.LabelValue{"app": "web"}, "http", "https"), "it has 2 target ports for 1 ports",
		},
		"target port 0": {
			selecting(map[string]hubv1alpha1.LabelValue{"app": "web"}, "0"), "0 is no port number",
		},
		"a target port of an illegal name": {
			selecting(map[string]hubv1alpha1.LabelValue{"app": "web"}, "a--b"), `"a--b" is no name of a port`,
		},
		"annotations that just fit an object": {func(r *record) { r.Spec.Annotations = filling(0) }, ""},
		"annotations that just do not":        {func(r *record) { r.Spec.Annotations = filling(1) }, "its annotations have 261121 bytes in all, more than 261120"},
		"the most annotations of the longest": {
			func(r *record) {
				r.Spec.Annotations = manyKeys(64, hubv1alpha1.AnnotationValue(strings.Repeat("x", 4096)))
			},
			"its annotations have 262592 bytes in all, more than 261120",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := EncodeService(clusterset.Export{
				Cluster: "berlin", Key: testKey, Age: epoch, Type: mcsv1beta1.ClusterSetIP, IPFamilies: []corev1.IPFamily{"IPv4"},
				Ports: []clusterset.Port{{Name: "http", Protocol: "TCP", Port: 80}}, Affinity: clusterset.Affinity{Mode: "ClientIP", TimeoutSeconds: 60},
			})
			tc.change(r)
			p := berlin()
			p.Namespaces = []hubv1alpha1.NamespaceName{"shop", "Shop", "0shop", "kube-system"}
			export, err := DecodeService(r, p)
			check.Equal(t, "error", tc.want, check.Message(err))
			if err != nil {
				check.Equal(t, "an export beside the error", clusterset.Export{}, export)
				return
			}
			checkExport(t, export, r, p)
		})
	}
}

// filling returns annotations of the maximum total size, plus some bytes.
func filling(more int) map[string]hubv1alpha1.AnnotationValue {
	result := manyKeys(63, hubv1alpha1.AnnotationValue(strings.Repeat("x", hubv1alpha1.MaxMetadataLength)))
	size := 63 * (len("key-000") + hubv1alpha1.MaxMetadataLength)
	result["z"] = hubv1alpha1.AnnotationValue(strings.Repeat("x", maxAnnotations+more-size-len("z")))
	return result
}

// The session affinity of a headless export is ignored.
// spec: R3
func TestHeadlessHasNoAffinity(t *testing.T) {
	t.Parallel()
	r := EncodeService(clusterset.Export{
		Cluster: "berlin", Key: testKey, Age: epoch, Type: mcsv1beta1.Headless, IPFamilies: []corev1.IPFamily{"IPv4"},
		Affinity: clusterset.Affinity{Mode: "ClientIP", TimeoutSeconds: 60},
	})
	if got, err := DecodeService(r, berlin()); err != nil || got.Affinity != (clusterset.Affinity{}) {
		t.Errorf("affinity %v, error %v", got.Affinity, err)
	}
}

// spec: D5, D6
func TestEndpointRefusals(t *testing.T) {
	t.Parallel()
	type record = hubv1alpha1.PublishedEndpoints
	const outside = "10.2.0.1 is outside the cluster's pod and node CIDRs"
	addresses := func(n int) []hubv1alpha1.IPAddress {
		var result []hubv1alpha1.IPAddress
		for i := range n {
			result = append(result, hubv1alpha1.IPAddress(fmt.Sprintf("10.1.%d.%d", i/250, i%250)))
		}
		return result
	}
	portsOf := func(n int) []hubv1alpha1.PublishedEndpointPort {
		var ports []hubv1alpha1.PublishedEndpointPort
		for i := range n {
			ports = append(ports, hubv1alpha1.PublishedEndpointPort{Name: fmt.Sprintf("p%d", i), Protocol: "TCP", Port: 80})
		}
		return ports
	}
	group := func(r *record) *hubv1alpha1.EndpointGroup { return &r.Spec.Groups[0] }
	groupsOf := func(n int) []hubv1alpha1.EndpointGroup {
		return slices.Repeat([]hubv1alpha1.EndpointGroup{{Addresses: addresses(1)}}, n)
	}
	noSlice := func(id string) string {
		return fmt.Sprintf("its name ends in %q, which is no slice's ID: 10 hexadecimal digits", id)
	}
	for name, tc := range map[string]struct {
		change func(*record)
		// kept is the number of endpoints that remain; -1 if there is no slice.
		kept int
		want []string
	}{
		"nothing wrong":           {func(*record) {}, 2, nil},
		"no endpoints":            {func(r *record) { r.Spec.Groups = nil }, 0, nil},
		"another service":         {func(r *record) { r.Spec.Service = "api" }, -1, []string{"its name does not say that it is service shop/api"}},
		"nothing that was read":   {func(r *record) { r.Spec = hubv1alpha1.PublishedEndpointsSpec{} }, -1, []string{"it cannot be read: it has no form that this version knows"}},
		"no slice in the name":    {func(r *record) { r.Name = "shop.web" }, -1, []string{"its name does not say that it is service shop/web"}},
		"an empty one":            {func(r *record) { r.Name = "shop.web." }, -1, []string{noSlice("")}},
		"a name without dots":     {func(r *record) { r.Name = "shop" }, -1, []string{"its name does not say that it is service shop/web"}},
		"more than a slice":       {func(r *record) { r.Name = "shop.web.1.2" }, -1, []string{"its name does not say that it is service shop/web"}},
		"an illegal slice":        {func(r *record) { r.Name = "shop.web.A" }, -1, []string{noSlice("A")}},
		"a slice with a hyphen":   {func(r *record) { r.Name = "shop.web.eu-0123456789" }, -1, []string{noSlice("eu-0123456789")}},
		"a hyphen for a digit":    {func(r *record) { r.Name = "shop.web.eu-0123456" }, -1, []string{noSlice("eu-0123456")}},
		"a slice's ID, too short": {func(r *record) { r.Name = "shop.web.012345678" }, -1, []string{noSlice("012345678")}},
		"a slice's ID, too long":  {func(r *record) { r.Name = "shop.web.0123456789a" }, -1, []string{noSlice("0123456789a")}},
		"an ID in upper case":     {func(r *record) { r.Name = "shop.web.ABCDEF0123" }, -1, []string{noSlice("ABCDEF0123")}},
		"an ID of other letters":  {func(r *record) { r.Name = "shop.web.g123456789" }, -1, []string{noSlice("g123456789")}},
		"FQDN":                    {func(r *record) { r.Spec.AddressType = "FQDN" }, -1, []string{`"shop.web.0123456789" is no slice of family IPv4 or IPv6`}},
		"a namespace not its own": {func(r *record) { r.Spec.Namespace, r.Name = "bank", "bank.web.0123456789" }, -1, []string{"the member may not publish services of namespace bank"}},
		"as many ports as can be": {func(r *record) { r.Spec.Ports = portsOf(100) }, 2, nil},
		"too many ports":          {func(r *record) { r.Spec.Ports = portsOf(101) }, -1, []string{"it has 101 ports, more than 100"}},
		"a port's name twice":     {func(r *record) { r.Spec.Ports = append(portsOf(1), portsOf(1)...) }, -1, []string{`port name "p0" is there twice`}},
		"a port left open":        {func(r *record) { r.Spec.Ports[0].Port = 0 }, 2, nil},
		"a negative port":         {func(r *record) { r.Spec.Ports[0].Port = -1 }, -1, []string{"-1 is no port number"}},
		"an unknown protocol":     {func(r *record) { r.Spec.Ports[0].Protocol = "tcp" }, -1, []string{`"tcp" is no protocol`}},
		"as many endpoints as can be": {
			func(r *record) {
				r.Spec.Groups = []hubv1alpha1.EndpointGroup{{Addresses: addresses(999)}, {Addresses: addresses(1)}}
			}, 1000, nil,
		},
		"too many endpoints": {
			func(r *record) {
				r.Spec.Groups = []hubv1alpha1.EndpointGroup{{Addresses: addresses(1000)}, {Addresses: addresses(1)}}
			}, -1, []string{"it has more than 1000 addresses"},
		},
		"another network": {func(r *record) { r.Spec.Groups, r.Spec.InNetwork = nil, inNetwork("cloud") }, -1, []string{
			`its endpoints are of network "cloud", and the Member is in network "default": the agent of cluster berlin has to publish them again`,
		}},
		"the default network as another": {func(r *record) { r.Spec.Groups, r.Spec.InNetwork = nil, inNetwork("default") }, -1, []string{twoPlaces}},
		"a network without a name":       {func(r *record) { r.Spec.Groups, r.Spec.InNetwork = nil, inNetwork("") }, -1, []string{twoPlaces}},
		"two networks":                   {func(r *record) { r.Spec.InNetwork = inNetwork("cloud") }, -1, []string{twoPlaces}},
		"as many groups as can be":       {func(r *record) { r.Spec.Groups = groupsOf(100) }, 100, nil},
		"too many groups":                {func(r *record) { r.Spec.Groups = groupsOf(101) }, -1, []string{"it has 101 groups, more than 100"}},
		"one address outside":            {func(r *record) { group(r).Addresses[1] = "10.2.0.1" }, 1, []string{outside}},
		"all outside":                    {func(r *record) { group(r).Addresses = []hubv1alpha1.IPAddress{"10.2.0.1", "10.2.0.1"} }, 0, []string{outside, outside}},
		"one in a denied range":          {func(r *record) { group(r).Addresses[0] = "10.1.255.1" }, 1, []string{"10.1.255.1 is in a range of the importing cluster's own"}},
		"one of the other family":        {func(r *record) { group(r).Addresses[0] = "fd01::1" }, 1, []string{"fd01::1 is no IPv4 address"}},
		"an address outside takes its endpoint along": {
			func(r *record) {
				group(r).AddressesPerEndpoint, group(r).Hostnames = 2, nil
				group(r).Addresses = []hubv1alpha1.IPAddress{"10.1.0.1", "10.2.0.1", "10.1.0.2", "10.1.0.3"}
			}, 1, []string{outside},
		},
		"an illegal hostname": {func(r *record) { group(r).Hostnames[1] = "a.b" }, 1, []string{`hostname "a.b" is no DNS label`}},
		"no hostname":         {func(r *record) { group(r).Hostnames[1] = "" }, 2, nil},
		"a hostname too few":  {func(r *record) { group(r).Hostnames = group(r).Hostnames[:1] }, 0, []string{"1 hostnames for 2 endpoints"}},
		"an illegal zone":     {func(r *record) { group(r).Zone = "a/b" }, 0, []string{`"a/b" is no zone`}},
		"addresses left over": {func(r *record) { group(r).AddressesPerEndpoint = 3 }, 0, []string{"2 addresses do not make endpoints of 3 each"}},
		"a negative number":   {func(r *record) { group(r).AddressesPerEndpoint = -1 }, 2, nil},
		"100 addresses each": {func(r *record) {
			*group(r) = hubv1alpha1.EndpointGroup{Addresses: addresses(100), AddressesPerEndpoint: 100}
		}, 1, nil},
		"more than 100 each": {func(r *record) {
			*group(r) = hubv1alpha1.EndpointGroup{Addresses: addresses(101), AddressesPerEndpoint: 101}
		}, 0, []string{"endpoints of 101 addresses each have more than 100"}},
		"one group is refused, the other stays": {
			func(r *record) {
				r.Spec.Groups = append([]hubv1alpha1.EndpointGroup{{Zone: "a/b", Addresses: addresses(1)}}, r.Spec.Groups...)
			}, 2, []string{`"a/b" is no zone`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := EncodeEndpoints(testKey, clusterset.Slice{
				Cluster: "berlin", ID: "0123456789", AddressType: discoveryv1.AddressTypeIPv4,
				Ports: []clusterset.EndpointPort{{Name: "http", Protocol: "TCP", Port: 80}},
				Endpoints: []clusterset.Endpoint{
					{Addresses: []string{"10.1.0.1"}, Hostname: "web-0"}, {Addresses: []string{"10.1.0.2"}, Hostname: "web-1"},
				},
			})
			tc.change(r)
			p := berlin()
			p.Namespaces = []hubv1alpha1.NamespaceName{"shop"}
			slice, refused := DecodeEndpoints(r, p)
			kept := -1
			if slice != nil {
				kept = len(slice.Endpoints)
				checkSlice(t, slice, r, p)
			}
			check.Equal(t, "number of endpoints", tc.kept, kept)
			check.Equal(t, "refused", tc.want, check.Messages(refused))
		})
	}
}

func TestKeyOfRecord(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		service, endpoints bool
	}{
		"shop.web":     {service: true},
		"shop.web.1":   {endpoints: true},
		"shop":         {},
		"shop.web.1.2": {},
		"":             {},
	} {
		if got, ok := KeyOfService(name); ok != tc.service || ok && got != testKey {
			t.Errorf("%q as the name of a service's record: %v, %t", name, got, ok)
		}
		if got, ok := KeyOfEndpoints(name); ok != tc.endpoints || ok && got != testKey {
			t.Errorf("%q as the name of a slice's record: %v, %t", name, got, ok)
		}
	}
}

func web() clusterset.Export {
	return clusterset.Export{
		Cluster: "own", Key: testKey, Age: epoch, Type: mcsv1beta1.ClusterSetIP,
		Ports: []clusterset.Port{{Name: "http", Protocol: "TCP", Port: 80}}, IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
	}
}

// spec: C7, R7
func TestCheck(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for i := range hubv1alpha1.MaxMetadataKeys + 1 {
		many[fmt.Sprint("key-", i)] = ""
	}
	tests := map[string]struct {
		labels, annotations map[string]string
		want                string
	}{
		"legal":              {labels: map[string]string{"team": "red"}, annotations: map[string]string{"any": "te\nxt"}},
		"no label":           {labels: map[string]string{"not a label!": ""}, want: `label "not a label!" is illegal or reserved`},
		"no value":           {labels: map[string]string{"team": "-red"}, want: `label "team" is illegal or reserved`},
		"no annotation":      {annotations: map[string]string{"!": ""}, want: `annotation "!" is illegal, too long or reserved`},
		"too many of either": {annotations: many, want: "it has more than 64 labels or annotations"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			export := web()
			export.Labels, export.Annotations = test.labels, test.annotations
			check.Equal(t, "it is refused because", test.want, check.Message(Check(export)))
		})
	}
}

const twoPlaces = "endpoints of network default are in groups, and those of any other network only in inNetwork"

func inNetwork(network string) *hubv1alpha1.NetworkEndpoints {
	return &hubv1alpha1.NetworkEndpoints{Network: network, Groups: []hubv1alpha1.EndpointGroup{{Addresses: []hubv1alpha1.IPAddress{"10.1.0.1"}}}}
}
