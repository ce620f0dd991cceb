// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// testGoResolver: the resolver of Go's library finds each service, also if the reply does not fit into a UDP packet.
//
// spec: N2, N3, N4, N6
func (c cluster) testGoResolver(t *testing.T) {
	many := endpoints("many", "1")
	for i := range 100 {
		many.Endpoints = append(many.Endpoints, endpoints("", "", fmt.Sprintf("10.2.0.%d", i)).Endpoints...)
	}
	c.create(t, clusterSetIPImport("web", "10.96.0.1", "fd00::9"), headlessImport("db"), endpoints("db", "1", "10.1.0.1", "10.1.0.2"),
		headlessImport("many"), many)
	s := startCoreDNS(t, c.clusterset())
	r := &net.Resolver{PreferGo: true, StrictErrors: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.udp)
	}}
	for host, want := range map[string][]string{
		"web.default.svc.clusterset.local.":              {"10.96.0.1", "fd00::9"},
		"db.default.svc.clusterset.local.":               {"10.1.0.1", "10.1.0.2"},
		"10-1-0-2.east.db.default.svc.clusterset.local.": {"10.1.0.2"},
		"WEB.Default.svc.clusterset.local.":              {"10.96.0.1", "fd00::9"},
		"none.default.svc.clusterset.local.":             nil,
		"east.db.default.svc.clusterset.local.":          nil,
	} {
		got, err := lookUp(t, host, r.LookupHost)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" || (err != nil) != (want == nil) {
			t.Errorf("%s: %v (-want +got):\n%s", host, err, diff)
		}
	}
	if got, err := lookUp(t, "many.default.svc.clusterset.local.", r.LookupHost); err != nil || len(got) != 100 {
		t.Errorf("of 100 addresses, %d: %v", len(got), err)
	}
	srv, err := lookUp(t, "db.default.svc.clusterset.local.", func(ctx context.Context, host string) ([]*net.SRV, error) {
		_, srv, err := r.LookupSRV(ctx, "http", "tcp", host)
		return srv, err
	})
	if err != nil || len(srv) != 2 {
		t.Fatalf("SRV records %v, %v", srv, err)
	}
	for _, record := range srv {
		if addresses, err := lookUp(t, record.Target, r.LookupHost); err != nil || len(addresses) != 1 || record.Port != 80 {
			t.Errorf("target %s:%d: %v, %v", record.Target, record.Port, addresses, err)
		}
	}
}

// lookUp repeats a lookup that gets no reply.
func lookUp[T any](t *testing.T, host string, look func(context.Context, string) (T, error)) (found T, err error) {
	t.Helper()
	lab.Eventually(t, patience, func(ctx context.Context) error {
		found, err = look(ctx, host)
		var failure *net.DNSError
		if errors.As(err, &failure) && (failure.IsTimeout || failure.IsTemporary) {
			return err
		}
		return nil
	})
	return found, err
}
