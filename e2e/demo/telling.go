// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// create creates objects in the member.
func (m *member) create(ctx context.Context, objects ...client.Object) error {
	for _, o := range objects {
		if err := m.client.Create(ctx, o); err != nil {
			return fmt.Errorf("%s: creating %T %s: %w", m.name, o, o.GetName(), err)
		}
	}
	return nil
}

// digWeb asks for all that DNS has of a service with addresses.
func (s *story) digWeb(ctx context.Context, web imported, port string) error {
	for _, q := range []struct {
		name string
		kind uint16
		want []string
	}{
		{"web", dns.TypeA, web.ips(ipv4)},
		{"web", dns.TypeAAAA, web.ips(ipv6)},
		{"_http._tcp.web", dns.TypeSRV, []string{port + " " + strings.TrimSuffix(fqdn("web"), ".")}},
	} {
		if err := s.dig(ctx, q.name, q.kind, q.want...); err != nil {
			return err
		}
	}
	return nil
}

// dig asks the CoreDNS of cluster-b for a name of the namespace, and tells what it answers if that is right.
func (s *story) dig(ctx context.Context, name string, kind uint16, want ...string) error {
	if len(want) == 0 {
		return fmt.Errorf("%w: the API server has nothing that %s could answer", errWrong, question{fqdn(name), kind})
	}
	return s.answers(ctx, question{fqdn(name), kind}, records(want...))
}

func (s *story) answers(ctx context.Context, q question, want answer) error {
	if err := s.b.expectDNS(ctx, q, want, patience); err != nil {
		return err
	}
	lines := want.lines()
	s.moref("%-54s %s", q, s.paint(bold, lines[0]))
	for _, line := range lines[1:] {
		s.moref("%-54s %s", "", s.paint(bold, line))
	}
	return nil
}

// listEndpoints tells the endpoints of an import, a line for each cluster and port.
func (s *story) listEndpoints(i imported) {
	for start := 0; start < len(i.endpoints); {
		first := i.endpoints[start]
		end := start
		var addresses []string
		for ; end < len(i.endpoints); end++ {
			e := i.endpoints[end]
			if e.cluster != first.cluster || e.port != first.port {
				break
			}
			addresses = append(addresses, e.address)
		}
		s.moref("  %s, %s: %s", first.cluster, first.port, strings.Join(addresses, ", "))
		start = end
	}
}

// fqdn returns a name of the namespace in the clusterset's zone.
func fqdn(name string) string { return name + "." + namespace + ".svc." + zone }

func countOf(list client.ObjectList) int { return meta.LenList(list) }
