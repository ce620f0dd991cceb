// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package join

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/admission"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/connection"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/invitation"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/output"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/ranges"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/internal/workload"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestAgentArgs: the argument has all ranges, in a form that the agent parses.
func TestAgentArgs(t *testing.T) {
	var services []netip.Prefix
	for i := range 12 {
		services = append(services, netip.MustParsePrefix(fmt.Sprintf("10.%d.0.0/16", 100+i)))
	}
	services = append(services, netip.MustParsePrefix("fd00:100::/108"))
	j := &command{Candidate: admission.Candidate{Own: ranges.Set{Services: services}}}
	args := j.agentArgs()
	if len(args) != 1 {
		t.Fatalf("%d arguments: %q", len(args), args)
	}
	value, found := strings.CutPrefix(args[0], "--service-cidrs=")
	got, err := clusterset.ParsePrefixes(strings.Split(value, ","))
	if !found || err != nil {
		t.Fatalf("%q: %v", args[0], err)
	}
	check.Equal(t, fmt.Sprintf("%q", args[0]), services, got, cmpopts.EquateComparable(netip.Prefix{}))
	j.hasServiceCIDRs = true
	check.Equal(t, "arguments of a cluster that reports its ranges itself", []string{}, j.agentArgs(), cmpopts.EquateEmpty())
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
			j := &command{Candidate: admission.Candidate{Admitted: &hubv1alpha1.Member{Spec: hubv1alpha1.MemberSpec{Properties: test.before}}}}
			check.Must(t, j.parseLine(test.line))
			check.Equal(t, "properties", test.want, j.MemberOptions().Properties)
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
			j := &command{Candidate: admission.Candidate{Others: test.others, Admitted: &hubv1alpha1.Member{Spec: test.before}}}
			check.Must(t, j.parseLine(test.line))
			o := j.MemberOptions()
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
		j := &command{}
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
			j := &command{}
			check.Must(t, j.parseLine(test.line))
			if test.before != "" {
				j.Admitted = &hubv1alpha1.Member{Spec: hubv1alpha1.MemberSpec{ClaimedAges: test.before}}
			}
			check.Equal(t, "the hub receives", test.want, j.MemberOptions().ClaimedAges)
		})
	}
}

// parseLine parses the flags of a join, which set its options.
func (j *command) parseLine(line string) error {
	cmd := &cobra.Command{Use: "join"}
	j.add(cmd)
	return errors.Join(cmd.Flags().Parse(strings.Fields(line)), j.parse(cmd.Flags()))
}

// join says where other members may reach the gateways, and what is missing. spec: G4, W5
func TestCheckGateway(t *testing.T) {
	nodes := []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")}
	balanced := &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 443}}}}
	balanced.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "198.51.100.1"}, {Hostname: "lb.example.com"}}
	without := hubv1alpha1.MemberSpec{}
	const noGateway = "note  clusters of other networks are reached through gateways, and this one has none: pass --gateway\n"
	for name, test := range map[string]struct {
		j    command
		want string
	}{
		"no other network":           {command{Candidate: admission.Candidate{Others: []string{""}}}, ""},
		"another network":            {command{Candidate: admission.Candidate{Others: []string{"cloud"}}}, noGateway},
		"only availability":          {command{Candidate: admission.Candidate{Options: admission.Options{Publish: "Availability"}}}, noGateway},
		"an address without gateway": {command{Candidate: admission.Candidate{Options: admission.Options{GatewayHosts: []string{"gw"}}}}, "FAIL  --gateway-address is the address of gateways: pass --gateway too\n"},
		"no address yet": {
			command{options: options{Options: workload.Options{Gateway: true}}},
			"note  the Service of the gateways has no address yet, so this cluster can import and not export: run this again when \"kubectl -n tombolo-system get service tombolo-gateway\" shows one, or pass --gateway-address\n",
		},
		"load balancer": {
			command{options: options{Options: workload.Options{Gateway: true, GatewayService: balanced}}},
			"ok    gateways may be published at 198.51.100.1/32, lb.example.com\n",
		},
		"nodes": {
			command{Candidate: admission.Candidate{Own: ranges.Set{Nodes: nodes}}, options: options{Options: workload.Options{Gateway: true, GatewayType: corev1.ServiceTypeNodePort}}},
			"ok    gateways may be published at 192.0.2.1/32\n",
		},
		"too many": {
			command{
				Candidate: admission.Candidate{Own: ranges.Set{Nodes: make([]netip.Prefix, maxGatewayRanges+1)}},
				options:   options{Options: workload.Options{Gateway: true, GatewayType: corev1.ServiceTypeNodePort}},
			},
			"FAIL  the gateways have 17 addresses and 0 names, and a member may have 16 of each: pass --gateway-cidrs with the networks that the addresses are in\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			test.j.r, test.j.Admitted = &output.Report{Out: &out}, &hubv1alpha1.Member{Spec: without}
			check.Must(t, test.j.checkGateway(t.Context()))
			check.Equal(t, "output", test.want, strings.TrimPrefix(out.String(), "  "))
		})
	}
}

// The type of the gateways' Service and the argument with their addresses stay unless a flag sets them.
func TestGatewaySettingsAreKept(t *testing.T) {
	agent := &appsv1.Deployment{}
	agent.Annotations = map[string]string{workload.AnnotationArguments: `["--gateway-address=gw.example.com"]`}
	agent.Spec.Template.Spec.Containers = []corev1.Container{{Name: workload.AgentContainer, Args: []string{"--gateway-address=gw.example.com"}}}
	for name, test := range map[string]struct {
		flags   gatewayOptions
		gateway bool
		want    []string
	}{
		"kept":    {gatewayOptions{}, true, []string{"--gateway-address=gw.example.com"}},
		"changed": {gatewayOptions{gatewayAddresses: []string{"198.51.100.1", "gw"}}, true, []string{"--gateway-address=198.51.100.1,gw"}},
		"removed": {gatewayOptions{}, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			j := &command{hasServiceCIDRs: true}
			j.gatewayOptions, j.Gateway = test.flags, test.gateway
			j.Running = map[string]*appsv1.Deployment{manifests.AgentDeployment: agent}
			j.GatewayService = &corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort}}
			j.SetDefaults()
			check.Equal(t, "arguments", test.want, j.agentArgs())
			check.Equal(t, "type", corev1.ServiceTypeNodePort, j.GatewayType)
		})
	}
}

// A join by an invitation compares its version with the hub's, which the invitation itself may not read.
func TestInvitedVersion(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, status := `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`, http.StatusForbidden
		switch r.Header.Get("Authorization") + " " + r.Method + " " + r.URL.Path {
		case "Bearer invitation POST /api/v1/namespaces/member-east/serviceaccounts/tombolo-agent/token":
			answer, status = `{"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "status": {"token": "agent"}}`, http.StatusCreated
		case "Bearer agent GET /apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + hub.VersionObject:
			answer, status = `{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "x", "annotations": {"tombolo-mcs.io/version": "v1.2.0"}}}`, http.StatusOK
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	invited := &invitation.File{ClusterID: "east", Token: "invitation", Hub: invitation.Hub{Server: server.URL, CertificateAuthority: string(ca)}}
	client, err := hub.Client(invited.Config())
	check.Must(t, err)
	for version, want := range map[string]string{
		"v1.2.0": "  ok    the version of the hub is v1.2.0, and the version of this command v1.2.0\n",
		"v1.3.0": "  FAIL  this command is of version v1.3.0 and the hub of version v1.2.0: no member may be newer than its hub, so upgrade the hub first: " +
			"kubectl clusterset init-hub --context HUB, with the command of version v1.3.0\n",
	} {
		var out bytes.Buffer
		j := &command{options: options{invited: invited}, Candidate: admission.Candidate{Hub: &connection.Cluster{Client: client}}, r: &output.Report{Out: &out}}
		j.Build.Version = version
		check.Must(t, j.checkVersion(t.Context()))
		check.Equal(t, "a join of version "+version, want, out.String())
	}
}
