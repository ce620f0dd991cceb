// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset/internal/zone"
	"github.com/tombolo-mcs/tombolo/internal/check"
)

// spec: N6
func TestChangesAreSeen(t *testing.T) {
	w := newWorld(t, options{zones: []string{"changes.test."}})
	serial := func() uint32 { return w.ask("changes.test.", dns.TypeSOA).Answer[0].(*dns.SOA).Serial }
	last := serial()
	web := clusterSetIP("shop", "web", []string{"10.96.0.1"})
	db := slice("shop/db/1", "east", nil, end("10.1.0.1"))
	for _, step := range []struct {
		name    string
		change  func()
		visible bool
		ask     string
		want    string
	}{
		{"an import comes", func() { w.update(web) }, true, "web.shop.svc.changes.test.", "NOERROR\nweb.shop.svc.changes.test. A 10.96.0.1"},
		{"the same again", func() { w.update(web.DeepCopy()) }, false, "shop.svc.changes.test.", "NOERROR\nchanges.test. SOA"},
		{"endpoints of a ClusterSetIP service", func() { w.update(slice("shop/web/1", "east", nil, end("10.1.0.9"))) }, false, "web.shop.svc.changes.test.", "NOERROR\nweb.shop.svc.changes.test. A 10.96.0.1"},
		{"slices without import", func() { w.update(db) }, false, "db.shop.svc.changes.test.", "NXDOMAIN\nchanges.test. SOA"},
		{"their import", func() { w.update(headless("shop", "db")) }, true, "db.shop.svc.changes.test.", "NOERROR\ndb.shop.svc.changes.test. A 10.1.0.1"},
		{"an endpoint that is not ready", func() { w.update(slice("shop/db/1", "east", nil, end("10.1.0.1"), unready("10.1.0.2"))) }, false, "10-1-0-2.east.db.shop.svc.changes.test.", "NXDOMAIN\nchanges.test. SOA"},
		{"the slice moves to another service", func() {
			moved := db.DeepCopy()
			moved.Labels["multicluster.kubernetes.io/service-name"] = "other"
			w.update(moved)
		}, true, "db.shop.svc.changes.test.", "NXDOMAIN\nchanges.test. SOA"},
		{"and back", func() { w.update(db) }, true, "db.shop.svc.changes.test.", "NOERROR\ndb.shop.svc.changes.test. A 10.1.0.1"},
		{"its type changes", func() { w.update(clusterSetIP("shop", "db", []string{"10.96.0.2"})) }, true, "10-1-0-1.east.db.shop.svc.changes.test.", "NXDOMAIN\nchanges.test. SOA"},
		{"web goes", func() { w.remove(web) }, true, "web.shop.svc.changes.test.", "NXDOMAIN\nchanges.test. SOA"},
		{"a list lacks the rest", func() { w.list() }, true, "shop.svc.changes.test.", "NXDOMAIN\nchanges.test. SOA"},
	} {
		step.change()
		w.publish()
		check.Equal(t, step.name, step.want, text(w.ask(step.ask, dns.TypeA)))
		now := serial()
		if moved := zone.Newer(now, last); moved != step.visible || (!moved && now != last) {
			t.Errorf("%s: serial %d after %d", step.name, now, last)
		}
		last = now
	}
	if got := w.cs.publisher.totals; got != (totals{}) {
		t.Errorf("without services, the totals are %+v", got)
	}
}

// Slices are served even if the import's status does not name their cluster: it may be written later, or never.
// spec: N3
func TestStatusOfImportsDoesNotMatter(t *testing.T) {
	w := newWorld(t, options{zones: []string{"status.test."}}, slice("shop/db/1", "east", nil, end("10.1.0.1")), slice("shop/db/2", "west", nil, end("10.2.0.1")))
	want := "NOERROR\ndb.shop.svc.status.test. A 10.1.0.1\ndb.shop.svc.status.test. A 10.2.0.1"
	for _, clusters := range [][]v1beta1.ClusterStatus{nil, {{Cluster: "west"}}, {{Cluster: "north"}}, {{Cluster: "east"}, {Cluster: "west"}}} {
		db := headless("shop", "db")
		db.Status.Clusters = clusters
		w.update(db)
		w.publish()
		check.Equal(t, fmt.Sprintf("status.clusters %v", clusters), want, text(w.ask("db.shop.svc.status.test.", dns.TypeA)))
	}
}

func TestOptionsThatChangeWhatIsServed(t *testing.T) {
	objects := []any{
		clusterSetIP("shop", "web", []string{"10.96.0.1"}), clusterSetIP("shop", "empty", []string{"10.96.0.2"}),
		slice("shop/web/1", "east", nil, end("10.1.0.1")), slice("shop/empty/1", "east", nil, unready("10.1.0.2")),
		headless("dark", "db"), slice("dark/db/1", "east", nil, end("10.2.0.1")),
	}
	for name, tc := range map[string]struct {
		options options
		served  []string
	}{
		"default":              {options{}, []string{"web.shop", "empty.shop", "db.dark"}},
		"ignore empty_service": {options{empty: zone.IgnoreEmpty}, []string{"web.shop", "db.dark"}},
		"noendpoints":          {options{kinds: []kind{kindImport}}, []string{"web.shop", "empty.shop"}},
		"namespaces dark":      {options{namespaces: map[string]struct{}{"dark": {}}}, []string{"db.dark"}},
	} {
		w := newWorld(t, tc.options, objects...)
		for _, service := range []string{"web.shop", "empty.shop", "db.dark"} {
			want := dns.RcodeNameError
			if slices.Contains(tc.served, service) {
				want = dns.RcodeSuccess
			}
			check.Equal(t, fmt.Sprintf("%s: %s: rcode", name, service), want, w.ask(service+".svc.clusterset.local.", dns.TypeA).Rcode)
		}
	}
}

// freshZone returns the name of a zone whose serial number no other test has increased.
func freshZone() string { return fmt.Sprintf("zone-%d.test.", rand.Uint64()) }

// However often a zone changes, its serial number is not ahead of the clock, and each change is served within a tick.
func TestPublicationsKeepPaceWithTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		served := freshZone()
		w := unsynced(t, options{zones: []string{served}})
		w.list()
		go w.cs.publisher.run(t.Context())
		synctest.Wait()
		for i := range 500 {
			ips := []string{"10.96.0.1", "10.96.0.2"}[i%2:][:1]
			begin := time.Now()
			w.update(clusterSetIP("shop", "web", ips))
			for w.ask("web.shop.svc."+served, dns.TypeA).Rcode != dns.RcodeSuccess ||
				w.ask("web.shop.svc."+served, dns.TypeA).Answer[0].(*dns.A).A.String() != ips[0] {
				<-time.After(time.Millisecond) //nolint:forbidigo // the clock of a synctest bubble
				synctest.Wait()
			}
			if took := time.Since(begin); took > zone.Tick {
				t.Fatalf("change %d was seen after %v", i, took)
			}
			if clock := uint32(time.Now().UnixMilli() / zone.Tick.Milliseconds()); zone.Newer(w.serial(), clock+1) {
				t.Fatalf("change %d: serial %d, clock %d", i, w.serial(), clock)
			}
		}
	})
}
