// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/identity"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: G4
func TestCheckGateway(t *testing.T) {
	t.Parallel()
	authority, err := identity.NewAuthority("b", time.Now())
	check.Must(t, err)
	bundle := identity.EncodeBundle([]identity.Authority{authority})
	member := &hubv1alpha1.Member{
		ObjectMeta: metav1.ObjectMeta{Namespace: "member-b"},
		Spec: hubv1alpha1.MemberSpec{
			ClusterID: "b", GatewayCIDRs: []hubv1alpha1.CIDR{"198.51.100.0/24", "10.96.0.0/12", "127.0.0.0/8", "2001:db8::/64"},
			GatewayNames: []hubv1alpha1.DNSName{"gateway.example.com"},
		},
	}
	denied := clusterset.AddressRanges{Denied: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}}
	host := func(host string) func(*hubv1alpha1.PublishedGateway) {
		return func(g *hubv1alpha1.PublishedGateway) { g.Spec.Addresses[0].Host = host }
	}
	for name, test := range map[string]struct {
		change func(*hubv1alpha1.PublishedGateway)
		want   string
	}{
		"good":                    {func(*hubv1alpha1.PublishedGateway) {}, ""},
		"no address":              {func(g *hubv1alpha1.PublishedGateway) { g.Spec.Addresses = nil }, ""},
		"a name":                  {host("gateway.example.com"), ""},
		"IPv6":                    {host("2001:db8::1"), ""},
		"another name":            {host("example.com"), `"example.com" is not one of the gatewayNames`},
		"another address":         {host("203.0.113.1"), "203.0.113.1 is not in the gatewayCIDRs"},
		"loopback":                {host("127.0.0.1"), "127.0.0.1 is loopback"},
		"a Service of ours":       {host("10.96.0.1"), "10.96.0.1 is in a range of the importing cluster's own"},
		"not in canonical form":   {host("2001:db8:0::1"), "not in canonical form"},
		"with a zone":             {host("fe80::1%eth0"), "is not in the gatewayCIDRs"},
		"an IPv4-mapped address":  {host("::ffff:198.51.100.1"), "is not in the gatewayCIDRs"},
		"port 0":                  {func(g *hubv1alpha1.PublishedGateway) { g.Spec.Addresses[0].Port = 0 }, "0 is no port"},
		"a port beyond all":       {func(g *hubv1alpha1.PublishedGateway) { g.Spec.Addresses[0].Port = 65536 }, "65536 is no port"},
		"10,000 addresses":        {func(g *hubv1alpha1.PublishedGateway) { g.Spec.Addresses = make([]hubv1alpha1.GatewayAddress, 10_000) }, "it has 10000 addresses"},
		"another name of its own": {func(g *hubv1alpha1.PublishedGateway) { g.Name = "another" }, "its name is not gateway"},
		"no version":              {func(g *hubv1alpha1.PublishedGateway) { g.Spec.Versions = nil }, "it has 0 versions"},
		"too many versions":       {func(g *hubv1alpha1.PublishedGateway) { g.Spec.Versions = make([]int32, 9) }, "it has 9 versions"},
		"no certificate":          {func(g *hubv1alpha1.PublishedGateway) { g.Spec.Bundle = "hello" }, "the bundle contains more than PEM blocks"},
		"an oversized bundle":     {func(g *hubv1alpha1.PublishedGateway) { g.Spec.Bundle = strings.Repeat(bundle, 40) }, "more than 16384"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			gateway := &hubv1alpha1.PublishedGateway{
				ObjectMeta: metav1.ObjectMeta{Namespace: "member-b", Name: hubv1alpha1.GatewayName},
				Spec: hubv1alpha1.PublishedGatewaySpec{
					Addresses: []hubv1alpha1.GatewayAddress{{Host: "198.51.100.1", Port: 443}, {Host: "198.51.100.2", Port: 443}}, Bundle: bundle, Versions: []int32{1},
				},
			}
			test.change(gateway)
			err := CheckGateway(gateway, member, denied)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}
