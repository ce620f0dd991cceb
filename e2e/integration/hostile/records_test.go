// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

type (
	published = hubv1alpha1.PublishedService
	endpoints = hubv1alpha1.PublishedEndpoints
)

// othersContinue checks that other records of the hostile member are read.
func othersContinue(t *testing.T, w *env, _ key) { t.Helper(); w.witness(t) }

func isImported(t *testing.T, w *env, k key) { t.Helper(); w.c.Imported(t, k) }

// isServed checks that the service is imported with its good address alone.
func isServed(t *testing.T, w *env, k key) {
	t.Helper()
	w.c.Imported(t, k)
	w.c.serves(t, k, "10.66.0.1")
}

// isGone waits until nothing of the service is left.
func isGone(t *testing.T, w *env, k key) {
	t.Helper()
	w.witness(t)
	w.c.Gone(t, k)
}

// ofReserved is a service of a namespace that is never part of a clusterset.
func ofReserved(name string, k key) act {
	const why = "no importer reads records of that namespace; `kubectl clusterset status` shows it"
	return publishing(name, k, byPolicy("records", "namespace "+k.Namespace+" is never part of a clusterset")).
		otherwise(why, func(t *testing.T, w *env, k key) {
			t.Helper()
			w.witness(t)
			w.c.absent(t, k)
			w.reports(t, k, "namespace "+k.Namespace+" is reserved")
		})
}

// ofOthers are services that are not the member's to publish.
func ofOthers() []act {
	notAllowed := []refusal{
		byPolicy("records", "the Member of cluster mallory does not allow namespace honest"),
		byImporter("the member may not publish services of namespace honest"),
	}
	return []act{
		ofReserved("a service of kube-system", key{Namespace: metav1.NamespaceSystem, Name: "kube-dns"}),
		ofReserved("a service of a member's namespace, as the hub has it", key{Namespace: "member-b", Name: "web"}),
		publishing("another API server", key{Namespace: metav1.NamespaceDefault, Name: "kubernetes"},
			byPolicy("records", "service default/kubernetes is each cluster's own API server"),
			byImporter("service default/kubernetes is reserved")),
		publishing("a service of a namespace that is not listed", key{Namespace: "honest", Name: "new"}, notAllowed...),
		{
			name: "a part in another's service, with internalTrafficPolicy Local", service: web,
			try: writeService(func(s *published) {
				s.Spec.Type, s.Spec.InternalTrafficPolicy = mcsv1beta1.Headless, "Local"
				s.Spec.ExportedAt = metav1.Unix(0, 0)
			}),
			refused: notAllowed,
		},
		refused("a record that claims another's service",
			writeService(func(s *published) { s.Spec.Namespace, s.Spec.Service = "honest", "web" }),
			byPolicy("records", "the name must be <namespace>.<service>, here honest.web"),
			byImporter("its name does not say that it is service honest/web")),
		refusedPart("endpoints that claim another's service",
			writeEndpoints(func(e *endpoints) { e.Spec.Namespace, e.Spec.Service = "honest", "web" }),
			byPolicy("records", "the name must be <namespace>.<service>.<slice>, here honest.web.<slice>"),
			byImporter("its name does not say that it is service honest/web")),
		{
			name: "a slice that would bear the name of another's", service: prefixed,
			try: writeEndpoints(func(e *endpoints) { e.Name = prefixed.Namespace + "." + prefixed.Name + ".eu-0123456789" }),
			refused: []refusal{
				byPolicy("records", "the slice in the name must be an ID as agents give them"),
				byImporter(`its name ends in "eu-0123456789", which is no slice's ID`),
			},
			rest: true,
			check: func(t *testing.T, w *env, k key) {
				t.Helper()
				w.witness(t)
				lab.Equal(t, fmt.Sprintf("the slices of %s have been written", k), w.prefixedSlices, w.c.Slices(t, prefixed))
			},
		},
		{
			name: "an age of 1970 in a shared service, with other settings", service: shared,
			try: writeService(func(s *published) {
				s.Spec.ExportedAt, s.Spec.Type, s.Spec.InternalTrafficPolicy = metav1.Unix(0, 0), mcsv1beta1.Headless, "Local"
				s.Spec.Labels = map[string]hubv1alpha1.LabelValue{"team": "mallory"}
				s.Spec.Ports[0].Port = 81
			}),
			harmless: "the older export's settings stay, as the claim counts for 10 minutes at the most",
			check:    eldersSettingsStay,
		},
	}
}

// names are those of services, endpoints and clusters.
func names() []act {
	service := func(name string) key { return key{Namespace: "hostile", Name: name} }
	headless := func(hostname string) try {
		return writeEndpoints(func(e *endpoints) {
			e.Spec.Groups[0].Hostnames = []hubv1alpha1.Hostname{hubv1alpha1.Hostname(hostname)}
		})
	}
	const hostnameSchema = "spec.groups[0].hostnames[0]: Invalid value"
	return []act{
		publishing("a name that is no DNS label", service("web_1"),
			bySchema(`spec.service: Invalid value: "web_1"`), byServer("a lowercase RFC 1123 subdomain")),
		publishing("a look-alike name", service("wеb"), // with a Cyrillic letter
			bySchema(`spec.service: Invalid value: "wеb"`), byServer("a lowercase RFC 1123 subdomain")),
		publishing("a name of 254 characters", service(strings.Repeat("n", 246)), byServer("must be no more than 253")),
		publishing("a name of 64 characters", service(strings.Repeat("n", 64)),
			bySchema("spec.service: Too long"), byImporter("is no legal namespace and service name")),
		publishing("a name with a dot", service("web.honest"), bySchema(`spec.service: Invalid value: "web.honest"`)).
			otherwise("a record whose name is that of no service is not read",
				func(t *testing.T, w *env, k key) { t.Helper(); w.witness(t); w.c.absent(t, k) }),
		refusedPart("a look-alike hostname", headless("wеb-0"), // with a Cyrillic letter
			bySchema(hostnameSchema), byImporter(`hostname "wеb-0" is no DNS label`)),
		refusedPart("a hostname in another cluster", headless("web-0.b"),
			bySchema(hostnameSchema), byImporter(`hostname "web-0.b" is no DNS label`)),
		harmless("another member's hostname", headless("web-0"), "its name has the cluster's ID in it: web-0.mallory",
			func(t *testing.T, w *env, k key) {
				t.Helper()
				isServed(t, w, k)
				if mirrored := w.c.Slices(t, k); len(mirrored) != 1 || mirrored[0].Labels[mcsv1beta1.LabelSourceCluster] != "mallory" {
					t.Errorf("mirrored: %+v", mirrored)
				}
			}),
		refusedPart("a zone that is none", writeEndpoints(func(e *endpoints) { e.Spec.Groups[0].Zone = "zone/b" }),
			bySchema(`spec.groups[0].zone: Invalid value: "zone/b"`), byImporter(`"zone/b" is no zone`)),
		harmless("the importer's zone, with trafficDistribution",
			func(ctx context.Context, a *attempt) error {
				service, endpoints := a.records()
				service.Spec.TrafficDistribution, endpoints.Spec.Groups[0].Zone = "PreferSameZone", "zone-c"
				return a.write(ctx, service, endpoints)
			},
			"it draws the zone's traffic of its own service only", isServed),
	}
}

// addresses are those that the member may not announce.
func addresses() []act {
	const special, outside = " is loopback, link-local, multicast, broadcast or unspecified", " is outside the "
	const ofImporter = "is in a range of the importing cluster's own"
	bad := func(name, address, hub, importer string) act {
		return refusedPart(name, writeAddress(address), byPolicy("addresses", hub), byImporter(importer))
	}
	acts := []act{
		bad("the loopback address", "127.0.0.1", "address 127.0.0.1"+special, "127.0.0.1 is loopback"),
		bad("the metadata server", "169.254.169.254", "address 169.254.169.254"+special, "169.254.169.254 is loopback, link-local"),
		bad("a multicast address", "224.0.0.1", "address 224.0.0.1"+special, "224.0.0.1 is loopback, link-local, multicast"),
		bad("the unspecified address", "0.0.0.0", "address 0.0.0.0"+special, "0.0.0.0 is loopback, link-local, multicast"),
		bad("an IPv4-mapped address", "::ffff:10.66.0.9", "is no IP address in canonical form", `"::ffff:10.66.0.9" is not in canonical form`),
		bad("an address written with zeros", "10.66.0.09", "is no IP address in canonical form", `"10.66.0.09" is no IP address`),
		bad("a name for an address", "localhost", "is no IP address in canonical form", `"localhost" is no IP address`),
		bad("another member's pod", "10.1.0.1", "address 10.1.0.1"+outside, "10.1.0.1"+outside),
		bad("an address of no member", "192.0.2.1", "address 192.0.2.1"+outside, "192.0.2.1"+outside),
		bad("an address of the other family", "fd00:66::9", "address fd00:66::9 is no IPv4 address", "fd00:66::9 is no IPv4 address"),
		refusedPart("an address of the importer's Services, by a mistaken Member",
			func(ctx context.Context, a *attempt) error { return writeAddress(serviceOf(a))(ctx, a) }, byImporter(ofImporter)),
		refusedPart("an address of Services whose range came later",
			writeAddress(netip.MustParsePrefix(addedRange).Addr().Next().String()), byImporter(ofImporter)),
	}
	for _, address := range []string{"::1", "fe80::1", "ff02::1"} {
		write := writeEndpoints(func(e *endpoints) {
			e.Spec.AddressType, e.Spec.Groups[0].Addresses = "IPv6", []hubv1alpha1.IPAddress{hubv1alpha1.IPAddress(address)}
		})
		acts = append(acts, refusedPart("the address "+address, write,
			byPolicy("addresses", "address "+address+special), byImporter(address+" is loopback")))
	}
	return acts
}

// numbers are ports, and too many of anything.
func numbers() []act {
	port := func(number int32) try { return writeService(func(s *published) { s.Spec.Ports[0].Port = number }) }
	return []act{
		refused("port 0", port(0), bySchema("spec.ports[0].port: Invalid value: 0"), byImporter("0 is no port number")),
		refused("port 65536", port(65536), bySchema("spec.ports[0].port: Invalid value: 65536"), byImporter("65536 is no port number")),
		refused("2,000 ports",
			writeService(func(s *published) {
				s.Spec.Ports = nil
				for i := range int32(2000) {
					s.Spec.Ports = append(s.Spec.Ports, hubv1alpha1.PublishedPort{Name: "p" + strconv.Itoa(int(i)), Protocol: "TCP", Port: i + 1})
				}
			}),
			bySchema("spec.ports: Too many: 2000"), byImporter("it has 2000 ports, more than 100")),
		refusedPart("2,000 endpoints in a record",
			writeEndpoints(func(e *endpoints) { e.Spec.Groups = []hubv1alpha1.EndpointGroup{manyPods(0, 1000), manyPods(4, 1000)} }),
			bySchema("the groups have more than 1000 addresses in all"), byImporter("it has more than 1000 addresses")),
		{
			name: "12,000 endpoints in 12 records", rest: true,
			try: func(ctx context.Context, a *attempt) error {
				service, e := a.records()
				for i := range 12 {
					record := e.DeepCopy()
					record.Name = service.Name + "." + strconv.Itoa(1_000_000_000+i)
					record.Spec.Groups = []hubv1alpha1.EndpointGroup{manyPods(4*i, 1000)}
					if err := a.Create(ctx, record); err != nil {
						return err
					}
				}
				return a.Create(ctx, service)
			},
			// Its Event may be of when the first 11 had come: later ones about the same service fold into it.
			refused: []refusal{byImporter("slices: a cluster contributes at most 1000 slices and 10000 endpoints to a service, and these have 1")},
			check: func(t *testing.T, w *env, k key) {
				t.Helper()
				w.reports(t, k, "2 of 12 slices: ", " and these have 12000")
			},
		},
	}
}

// manyPods returns n endpoints, with addresses of the hostile member's from 10.66.<from>.0 on.
func manyPods(from, n int) hubv1alpha1.EndpointGroup {
	group := hubv1alpha1.EndpointGroup{Ready: new(true)}
	for i := range n {
		address := "10.66." + strconv.Itoa(from+i/250) + "." + strconv.Itoa(i%250)
		group.Addresses = append(group.Addresses, hubv1alpha1.IPAddress(address))
	}
	return group
}
