// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"fmt"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/manifests"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

func (h *hub) testAddresses(t *testing.T) {
	const (
		special  = "address %s is loopback, link-local, multicast, broadcast or unspecified, which no backend has: leave the endpoint out"
		outside  = "address %s is outside the podCIDRs and nodeCIDRs of the Member of cluster %s: leave the endpoint out, or let an administrator of the hub add its range to the Member"
		notPlain = `address "%s" is no IP address in canonical form: write it in its shortest form`
	)
	a, b := h.a, h.b
	for name, tc := range map[string]struct {
		member  *member
		address hubv1alpha1.IPAddress
		want    string // with %s where the address is
	}{
		"pod":                        {a, "10.1.255.255", ""},
		"pod, IPv6":                  {a, "fd00:1::1", ""},
		"node":                       {a, "192.0.2.15", ""},
		"node, IPv6":                 {a, "2001:db8:1::f", ""},
		"beyond pods":                {a, "10.2.0.0", fmt.Sprintf(outside, "%s", "a")},
		"beyond pods, IPv6":          {a, "fd00:2::", fmt.Sprintf(outside, "%s", "a")},
		"beyond nodes":               {a, "192.0.2.16", fmt.Sprintf(outside, "%s", "a")},
		"beyond nodes, IPv6":         {a, "2001:db8:1:1::", fmt.Sprintf(outside, "%s", "a")},
		"a Service's IP":             {a, "10.96.0.1", fmt.Sprintf(outside, "%s", "a")},
		"the metadata server":        {b, "169.254.169.254", special},
		"loopback":                   {b, "127.0.0.1", special},
		"loopback, another":          {b, "127.255.0.1", special},
		"loopback, IPv6":             {b, "::1", special},
		"unspecified":                {b, "0.0.0.0", special},
		"unspecified, IPv6":          {b, "::", special},
		"multicast":                  {b, "224.0.0.1", special},
		"multicast, IPv6":            {b, "ff05::2", special},
		"link-local multicast, IPv6": {b, "ff02::1", special},
		"link-local, IPv6":           {b, "fe80::1", special},
		"broadcast":                  {b, "255.255.255.255", special},
		"IPv4-mapped":                {b, "::ffff:10.1.0.1", notPlain},
		"IPv4-mapped, hexadecimal":   {b, "::ffff:a01:1", notPlain},
		"IPv6 written long":          {b, "fd00:1:0::1", notPlain},
		"IPv6 in capitals":           {b, "FD00:1::1", notPlain},
		"with a zone":                {b, "fe80::1%eth0", notPlain},
		"leading zero":               {b, "10.1.0.01", notPlain},
		"a CIDR":                     {b, "10.1.0.1/32", notPlain},
		"with a port":                {b, "10.1.0.1:80", notPlain},
		"a name":                     {b, "localhost", notPlain},
		"blank":                      {b, "  ", notPlain},
		"in a hostile message":       {b, "10.1.0.1\n", "an address is no IP address in canonical form: write it in its shortest form"},
	} {
		t.Run(name, func(t *testing.T) {
			want := tc.want
			if want != "" && want != "an address is no IP address in canonical form: write it in its shortest form" {
				want = fmt.Sprintf(want, tc.address)
			}
			good := func() *hubv1alpha1.PublishedEndpoints { return tc.member.endpoints() }
			try(t, tc.member, good, addresses(tc.address), want)
		})
		// One among good ones, in a later group, is found as well.
		t.Run(name+", hidden", func(t *testing.T) {
			e := tc.member.endpoints(addresses(tc.address))
			family := e.Spec.AddressType
			others := []hubv1alpha1.IPAddress{"10.1.0.1", "10.1.0.2"}
			if family == "IPv6" {
				others = []hubv1alpha1.IPAddress{"fd00:1::1", "fd00:1::2"}
			}
			e.Spec.Groups = []hubv1alpha1.EndpointGroup{
				{Addresses: others},
				{Addresses: append(others, tc.address), Zone: "z"},
			}
			err := tc.member.Create(t.Context(), e)
			if (err != nil) != (tc.want != "") {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			remove(t, tc.member, e)
		})
		// The importer's address ranges and the hub's agree.
		t.Run(name+", ranges", func(t *testing.T) {
			ranges := clusterset.AddressRanges{Allowed: prefixes("0.0.0.0/0", "::/0")}
			if tc.member == a {
				ranges.Allowed = prefixes("10.1.0.0/16", "fd00:1::/32", "192.0.2.0/28", "2001:db8:1::/64")
			}
			family := discoveryv1.AddressType(tc.member.endpoints(addresses(tc.address)).Spec.AddressType)
			if err := ranges.Check(string(tc.address), family); (err != nil) != (tc.want != "") && tc.address != "255.255.255.255" {
				t.Errorf("clusterset.AddressRanges: %v, the hub: %q", err, tc.want)
			}
		})
	}

	t.Run("wrong family", func(t *testing.T) {
		try(t, a, func() *hubv1alpha1.PublishedEndpoints { return a.endpoints() }, func(e *hubv1alpha1.PublishedEndpoints) {
			e.Spec.AddressType = "IPv6"
		}, "address 10.1.0.1 is no IPv6 address: put it in a record of its own family")
	})
	t.Run("another member's", func(t *testing.T) {
		c := h.join(t, manifests.MemberOptions{ClusterID: "c", PodCIDRs: prefixes("10.3.0.0/16")})
		try(t, c, func() *hubv1alpha1.PublishedEndpoints { return c.endpoints(addresses("10.3.0.1")) }, addresses("10.1.0.1"),
			fmt.Sprintf(outside, "10.1.0.1", "c"))
		checkError(t, a.Create(t.Context(), a.endpoints(addresses("10.3.0.1"))), fmt.Sprintf(outside, "10.3.0.1", "a"))
		tryNew(t, a, a.endpoints(), "")
	})
}
