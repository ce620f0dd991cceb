// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// database returns the record of a headless service with hostnames db-0, db-1 and none.
func database() *hubv1alpha1.PublishedService {
	record := EncodeService(clusterset.Export{
		Cluster: "berlin", Key: testKey, Age: epoch, Type: mcsv1beta1.Headless, IPFamilies: []corev1.IPFamily{"IPv4"},
		Ports: []clusterset.Port{{Name: "client", Protocol: "TCP", Port: 2379}, {Name: "dns", Protocol: "UDP", Port: 53}, {Name: "peer", Protocol: "TCP", Port: 2380}},
	})
	return WithHostnames(record, clusterset.Hostnames{"db-10": {2379: 2379, 2380: 2380}, "db-2": {2379: 2379, 2380: 2380}, "": {2379: 79}}, 3)
}

// spec: G9
func TestEncodeHostnames(t *testing.T) {
	t.Parallel()
	want := &hubv1alpha1.PublishedHeadless{
		PortGroups: []hubv1alpha1.PublishedPortGroup{{TargetPorts: []int32{2379, 0, 2380}}, {TargetPorts: []int32{79, 0, 0}}},
		Hostnames:  []hubv1alpha1.PublishedHostname{{PortGroup: 1}, {Hostname: "db-2"}, {Hostname: "db-10"}},
		LeftOut:    3,
	}
	check.Equal(t, "hostnames", want, database().Spec.Headless)
	published := WithHostnames(database(), clusterset.Hostnames{}, 0).Spec.Headless
	check.Equal(t, "a service without available endpoints differs from one of an agent that publishes no hostnames", true, published != nil)
	check.Equal(t, "hostnames that are left", (*hubv1alpha1.PublishedHeadless)(nil), WithoutAvailability(database()).Spec.Headless)
}

// spec: G9
func TestHostnameRefusals(t *testing.T) {
	t.Parallel()
	type headless = hubv1alpha1.PublishedHeadless
	many := func(n int, name func(int) string) func(*headless) {
		return func(h *headless) {
			h.Hostnames = nil
			for i := range n {
				h.Hostnames = append(h.Hostnames, hubv1alpha1.PublishedHostname{Hostname: name(i)})
			}
		}
	}
	numbered := func(i int) string { return fmt.Sprint("db-", i) }
	named := func(name string) func(*headless) { return many(1, func(int) string { return name }) }
	for name, test := range map[string]struct {
		change func(*headless)
		want   string // empty: accepted
	}{
		"nothing wrong":               {func(*headless) {}, ""},
		"the most":                    {many(100, numbered), ""},
		"one more":                    {many(101, numbered), "it has 101 hostnames, more than 100"},
		"10,000":                      {many(10_000, numbered), "it has 10000 hostnames, more than 100"},
		"twice":                       {many(2, func(int) string { return "db" }), `hostname "db" is there twice`},
		"none twice":                  {many(2, func(int) string { return "" }), `hostname "" is there twice`},
		"a dot":                       {named("db.0"), `hostname "db.0" is no DNS label`},
		"upper case":                  {named("DB"), `hostname "DB" is no DNS label`},
		"a wildcard":                  {named("*"), `hostname "*" is no DNS label`},
		"too long":                    {named(strings.Repeat("x", 64)), `hostname "` + strings.Repeat("x", 64) + `" is no DNS label`},
		"no such group":               {func(h *headless) { h.Hostnames[0].PortGroup = 2 }, `hostname "" has port group 2, and there are 2`},
		"a negative group":            {func(h *headless) { h.Hostnames[0].PortGroup = -1 }, `hostname "" has port group -1, and there are 2`},
		"a group that no one uses":    {func(h *headless) { h.Hostnames = nil }, ""},
		"too few ports":               {func(h *headless) { h.PortGroups[1].TargetPorts = []int32{1} }, "a port group has 1 target ports for 3 ports"},
		"no ports":                    {func(h *headless) { h.PortGroups[1].TargetPorts = nil }, "a port group has 0 target ports for 3 ports"},
		"a port number too large":     {func(h *headless) { h.PortGroups[1].TargetPorts[0] = 65536 }, "65536 is no port number"},
		"a negative port":             {func(h *headless) { h.PortGroups[1].TargetPorts[0] = -1 }, "-1 is no port number"},
		"too many groups":             {func(h *headless) { h.PortGroups = make([]hubv1alpha1.PublishedPortGroup, 101) }, "it has 101 port groups, more than 100"},
		"fewer than none is left out": {func(h *headless) { h.LeftOut = -1 }, "-1 hostnames that are left out are less than none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := database()
			test.change(r.Spec.Headless)
			export, err := DecodeService(r, berlin())
			check.Equal(t, "error", test.want, check.Message(err))
			if err == nil {
				checkExport(t, export, r, berlin())
			}
		})
	}
	r := database()
	r.Spec.Type = mcsv1beta1.ClusterSetIP
	_, err := DecodeService(r, berlin())
	check.Equal(t, "a service with a cluster IP", "it has hostnames, which only a headless service has", check.Message(err))
}

// A hostname without a TCP port is left out, and a target port of a UDP port has no effect.
// spec: G9, G10
func TestHostnamesWithoutTCP(t *testing.T) {
	t.Parallel()
	r := database()
	r.Spec.Headless.PortGroups[1].TargetPorts = []int32{0, 53, 0}
	export, err := DecodeService(r, berlin())
	check.Must(t, err)
	want := clusterset.Hostnames{"db-2": {2379: 2379, 2380: 2380}, "db-10": {2379: 2379, 2380: 2380}}
	check.Equal(t, "hostnames", want, export.Hostnames)
}
