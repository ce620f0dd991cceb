// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

func prefixes(t *testing.T, text string) []netip.Prefix {
	t.Helper()
	result, err := clusterset.ParsePrefixes(strings.Fields(text))
	check.Must(t, err)
	return result
}

// TestCheckRange: only a flag extends a member's ranges; other ranges of the cluster are reported.
func TestCheckRange(t *testing.T) {
	member := &hubv1alpha1.Member{Spec: hubv1alpha1.MemberSpec{PodCIDRs: []hubv1alpha1.CIDR{"10.1.0.0/16"}, NodeCIDRs: []hubv1alpha1.CIDR{"192.0.2.1/32"}}}
	byHand := &hubv1alpha1.Member{Spec: hubv1alpha1.MemberSpec{PodCIDRs: []hubv1alpha1.CIDR{"10.1.0.0/16"}}}
	const pods, nodes, services = 0, 1, 2
	for name, test := range map[string]struct {
		admitted           *hubv1alpha1.Member
		kind               int
		given, found, want string
		says               []string
	}{
		"new member":                      {nil, nodes, "", "192.0.2.1/32", "192.0.2.1/32", []string{"ok    node CIDRs 192.0.2.1/32 (there)"}},
		"new member, nothing found":       {nil, pods, "", "", "", []string{"FAIL  the pod CIDRs cannot be found in this cluster: pass --pod-cidrs"}},
		"new member without nodes":        {nil, nodes, "", "", "", []string{"note  no node has an address yet, so pods on the nodes' network cannot be exported: when it has one, pass --node-cidrs"}},
		"given":                           {member, pods, "10.3.0.0/16", "10.2.0.0/16", "10.3.0.0/16", []string{"ok    pod CIDRs 10.3.0.0/16 (--pod-cidrs)"}},
		"known, and found within":         {member, pods, "", "10.1.7.0/24 10.1.8.0/24", "10.1.0.0/16", []string{"ok    pod CIDRs 10.1.0.0/16 (as on the hub already)"}},
		"known, and nothing found":        {member, pods, "", "", "10.1.0.0/16", []string{"ok    pod CIDRs 10.1.0.0/16 (as on the hub already)"}},
		"known, and more found":           {member, pods, "", "10.0.0.0/15", "10.1.0.0/16", []string{"ok    pod CIDRs 10.1.0.0/16 (as", "note  pod CIDRs 10.0.0.0/15 of this cluster are not on the hub, and are not added unasked: pass --pod-cidrs 10.0.0.0/15 to admit them"}},
		"a node has come, another gone":   {member, nodes, "", "192.0.2.2/32", "192.0.2.1/32", []string{"ok    node CIDRs 192.0.2.1/32 (as", "note  node CIDRs 192.0.2.2/32 of this cluster are not on the hub, and are not added unasked: pass --node-cidrs 192.0.2.1/32,192.0.2.2/32 to admit them"}},
		"no node has been admitted":       {byHand, nodes, "", "192.0.2.2/32", "", []string{"note  node CIDRs 192.0.2.2/32 of this cluster are not on the hub, and are not added unasked: pass --node-cidrs 192.0.2.2/32 to admit them"}},
		"no node admitted, none found":    {byHand, nodes, "", "", "", []string{"note  no node has an address yet"}},
		"Services' ranges, on no hub":     {byHand, services, "", "10.96.0.0/16", "10.96.0.0/16", []string{"ok    service CIDRs 10.96.0.0/16 (there)"}},
		"Services' ranges cannot be read": {byHand, services, "", "", "", []string{"FAIL  the service CIDRs cannot be found"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			j := &joinCommand{admitted: test.admitted, r: &report{out: &out}}
			kind := j.rangeKinds()[test.kind]
			kind.given = prefixes(t, test.given)
			kind.find = func(context.Context, *cluster) (finding, error) {
				return finding{prefixes(t, test.found), "there"}, nil
			}
			check.Must(t, j.checkRange(t.Context(), kind))
			check.Equal(t, "ranges", prefixes(t, test.want), *kind.target, cmpopts.EquateEmpty(), cmpopts.EquateComparable(netip.Prefix{}))
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			for i, line := range lines {
				if len(lines) != len(test.says) || !strings.HasPrefix(strings.TrimSpace(line), test.says[i]) {
					t.Fatalf("it says\n%swant %q", out.String(), test.says)
				}
			}
		})
	}
}

// TestCheckRangeFails: a cluster that cannot be read does not count as one without ranges.
func TestCheckRangeFails(t *testing.T) {
	failure := errors.New("no answer")
	j := &joinCommand{r: &report{out: &bytes.Buffer{}}}
	kind := j.rangeKinds()[0]
	kind.find = func(context.Context, *cluster) (finding, error) { return finding{}, failure }
	if err := j.checkRange(t.Context(), kind); !errors.Is(err, failure) {
		t.Errorf("the error is %v", err)
	}
}

// TestChooseHubAddress: the address of the hub is from the flags, else as before, else from the kubeconfig.
func TestChooseHubAddress(t *testing.T) {
	kubeconfig := hubAddress{"https://kubeconfig", []byte("kubeconfig")}
	before := &hubAddress{"https://before", []byte("before")}
	for name, test := range map[string]struct {
		o          joinOptions
		before     *hubAddress
		want       hubAddress
		server, ca hubAddressSource
	}{
		"first time":        {joinOptions{}, nil, kubeconfig, fromKubeconfig, fromKubeconfig},
		"first, with flags": {joinOptions{hubServer: "https://s", hubCA: "f", ca: []byte("c")}, nil, hubAddress{"https://s", []byte("c")}, fromServerFlag, fromCAFlag},
		"again":             {joinOptions{}, before, *before, asBefore, asBefore},
		"another URL":       {joinOptions{hubServer: "https://s"}, before, hubAddress{"https://s", []byte("before")}, fromServerFlag, asBefore},
		"another authority": {joinOptions{hubCA: "f", ca: []byte("c")}, before, hubAddress{"https://before", []byte("c")}, asBefore, fromCAFlag},
		"an empty file":     {joinOptions{hubCA: "/dev/null"}, before, hubAddress{"https://before", nil}, asBefore, fromCAFlag},
	} {
		t.Run(name, func(t *testing.T) {
			address, server, ca := test.o.chooseHubAddress(kubeconfig, test.before)
			check.Equal(t, "address", test.want, address, cmp.AllowUnexported(hubAddress{}))
			if server != test.server || ca != test.ca {
				t.Errorf("the URL is %s, the certificate authority %s", server, ca)
			}
		})
	}
}

// TestHubKubeconfig: the address that join writes into the agent's Secret can be read, and an invalid one is ignored.
func TestHubKubeconfig(t *testing.T) {
	address := hubAddress{"https://192.0.2.1:6443", []byte("PEM")}
	kubeconfig, err := address.kubeconfig()
	check.Must(t, err)
	for name, test := range map[string]struct {
		kubeconfig, ca string
		want           *hubAddress
	}{
		"as join writes it":        {string(kubeconfig), "PEM", &address},
		"no certificate authority": {string(kubeconfig), "", nil},
		"nothing":                  {"", "", nil},
		"no kubeconfig":            {"{", "PEM", nil},
		"no current context":       {strings.Replace(string(kubeconfig), "current-context: hub", "", 1), "PEM", nil},
		"no cluster":               {strings.Replace(string(kubeconfig), "cluster: hub", "cluster: other", 1), "PEM", nil},
	} {
		t.Run(name, func(t *testing.T) {
			secret := &corev1.Secret{Data: map[string][]byte{clusterset.HubSecretKubeconfig: []byte(test.kubeconfig), clusterset.HubSecretCA: []byte(test.ca)}}
			check.Equal(t, "address", test.want, hubAddressIn(secret), cmp.AllowUnexported(hubAddress{}))
		})
	}
}

// Properties without a flag stay as they are.
//
// spec: A5
func TestJoinProperties(t *testing.T) {
	type properties = map[string]hubv1alpha1.PropertyValue
	for name, test := range map[string]struct {
		line         string
		before, want properties
	}{
		"none":        {"", nil, properties{}},
		"new":         {"--property region=eu --property tier=gold", nil, properties{"region": "eu", "tier": "gold"}},
		"not given":   {"", properties{"region": "eu"}, properties{"region": "eu"}},
		"another one": {"--property tier=gold", properties{"region": "eu"}, properties{"region": "eu", "tier": "gold"}},
		"changed":     {"--property region=us", properties{"region": "eu"}, properties{"region": "us"}},
		"removed":     {"--property region=", properties{"region": "eu", "tier": "gold"}, properties{"tier": "gold"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := &joinCommand{admitted: &hubv1alpha1.Member{Spec: hubv1alpha1.MemberSpec{Properties: test.before}}}
			check.Must(t, j.parseLine(test.line))
			check.Equal(t, "properties", test.want, j.memberOptions().Properties)
		})
	}
}

// Settings for networks and gateways without a flag stay as they are. spec: W1, W2
func TestJoinNetwork(t *testing.T) {
	member := func(network string, publish hubv1alpha1.Publish, cidrs ...hubv1alpha1.CIDR) hubv1alpha1.MemberSpec {
		return hubv1alpha1.MemberSpec{Network: network, Publish: publish, GatewayCIDRs: cidrs}
	}
	const addresses, availability = hubv1alpha1.PublishAddresses, hubv1alpha1.PublishAvailability
	named := member("cloud", availability)
	named.GatewayNames = []hubv1alpha1.DNSName{"gw.example.com"}
	for name, test := range map[string]struct {
		line         string
		others       []string
		before, want hubv1alpha1.MemberSpec
	}{
		"new":                          {"", nil, member("", ""), member("", "")},
		"the first of a network":       {"--network cloud", []string{""}, member("", ""), member("cloud", availability)},
		"the second of a network":      {"--network cloud", []string{"", "cloud"}, member("", ""), member("cloud", "")},
		"the default network by name":  {"--network default", nil, member("", ""), member("default", "")},
		"publish is given":             {"--network cloud --publish Addresses", nil, member("", ""), member("cloud", addresses)},
		"not given":                    {"", nil, member("cloud", availability, "198.51.100.0/24"), member("cloud", availability, "198.51.100.0/24")},
		"another range":                {"--gateway-cidrs 203.0.113.0/24", nil, member("cloud", availability, "198.51.100.0/24"), member("cloud", availability, "203.0.113.0/24")},
		"a name":                       {"--gateway-names gw.example.com", nil, member("cloud", availability), named},
		"a name that was given before": {"", nil, named, named},
		"an address of gateways":       {"--gateway --gateway-address 198.51.100.1:8443", nil, member("", "", "203.0.113.0/24"), member("", "", "198.51.100.1/32")},
		"an address that is a name":    {"--gateway --gateway-address gw.example.com", nil, member("cloud", availability), named},
		"an address and its range":     {"--gateway --gateway-address 198.51.100.1 --gateway-cidrs 198.51.100.0/24", nil, member("", ""), member("", "", "198.51.100.0/24")},
		"back in the default network":  {"--network default --publish Addresses", []string{""}, member("cloud", availability), member("default", addresses)},
	} {
		t.Run(name, func(t *testing.T) {
			j := &joinCommand{others: test.others, admitted: &hubv1alpha1.Member{Spec: test.before}}
			check.Must(t, j.parseLine(test.line))
			o := j.memberOptions()
			got := hubv1alpha1.MemberSpec{Network: o.Network, Publish: o.Publish, GatewayCIDRs: o.GatewayCIDRs, GatewayNames: o.GatewayNames}
			check.Equal(t, "spec", test.want, got)
		})
	}
	for line, want := range map[string]string{
		"--publish Nothing":          "--publish=Nothing: must be Addresses or Availability",
		"--gateway-service Other":    "--gateway-service=Other: must be LoadBalancer, NodePort or ClusterIP",
		"--gateway-address host:web": `--gateway-address: "host:web" is no address of a gateway`,
		"--property Region=eu":       `--property: property "Region": its name must be a DNS name`,
		"--gateway-cidrs here":       `--gateway-cidrs: "here" is no CIDR such as 10.0.0.0/16`,
	} {
		j := &joinCommand{}
		if err := j.parseLine(line); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}

// TestClaimedAges: the setting of the Member stays unless the flag is given, and the flag can remove it.
func TestClaimedAges(t *testing.T) {
	const bounded, trusted = hubv1alpha1.ClaimedAgesBounded, hubv1alpha1.ClaimedAgesTrusted
	for name, test := range map[string]struct {
		line         string
		before, want hubv1alpha1.ClaimedAges
	}{
		"new":                      {"", "", ""},
		"new, trusted":             {"--trust-claimed-ages", "", trusted},
		"not given":                {"", trusted, trusted},
		"not given, never trusted": {"", bounded, bounded},
		"trusted from now on":      {"--trust-claimed-ages", bounded, trusted},
		"taken back":               {"--trust-claimed-ages=false", trusted, bounded},
	} {
		t.Run(name, func(t *testing.T) {
			j := &joinCommand{}
			check.Must(t, j.parseLine(test.line))
			if test.before != "" {
				j.admitted = &hubv1alpha1.Member{Spec: hubv1alpha1.MemberSpec{ClaimedAges: test.before}}
			}
			check.Equal(t, "the hub receives", test.want, j.memberOptions().ClaimedAges)
		})
	}
}

// parseLine parses the flags of a join, which set its options.
func (j *joinCommand) parseLine(line string) error {
	cmd := &cobra.Command{Use: "join"}
	j.add(cmd)
	return errors.Join(cmd.Flags().Parse(strings.Fields(line)), j.parse(cmd.Flags()))
}
