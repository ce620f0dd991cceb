// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// story is played on a stage. Each chapter leaves behind what the next begins with.
type story struct {
	*stage
	*narrator
	webUID types.UID // of the derived Service in cluster-b
	webIPs []string
}

// exportWeb: a Service with ClusterIPs in cluster-a, exported, works in cluster-b.
func (s *story) exportWeb(ctx context.Context) error {
	s.title("1. cluster-a exports web")
	if err := s.a.create(ctx, webInA.objects()...); err != nil {
		return err
	}
	if err := s.b.create(ctx, webInB.objects()...); err != nil {
		return err
	}
	s.sayf("cluster-b has a Service web of its own. It is not exported, so it takes no part.")
	begin := time.Now()
	if err := s.a.create(ctx, serviceExport("web")); err != nil {
		return err
	}
	got, err := s.b.awaitImport(ctx, "web", []string{"cluster-a"}, []string{"http 80"}, webInA.endpoints("cluster-a", "http"))
	if err != nil {
		return err
	}
	s.afterf(time.Since(begin), "cluster-b has ServiceImport web: %s", strings.Join(got.serviceImport.Spec.IPs, ", "))
	s.moref("Service %s bears these addresses; its EndpointSlices say", got.derived.Name)
	s.listEndpoints(got)
	s.webUID, s.webIPs = got.derived.UID, got.serviceImport.Spec.IPs
	if _, err := s.a.awaitImport(ctx, "web", []string{"cluster-a"}, []string{"http 80"}, webInA.endpoints("cluster-a", "http")); err != nil {
		return err
	}
	ready, err := s.a.awaitCondition(ctx, "web", mcsv1beta1.ServiceExportConditionReady, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
	if err != nil {
		return err
	}
	s.sayf("cluster-a has the import too, and its ServiceExport reads %s=%s: %s", ready.Type, ready.Status, ready.Message)
	s.sayf("The DNS of cluster-b, which is what its API server says:")
	return s.digWeb(ctx, got, "80")
}

// exportDB: a headless Service; each pod has a name.
func (s *story) exportDB(ctx context.Context) error {
	s.title("2. cluster-a exports db, which is headless: its pods have names")
	if err := s.a.create(ctx, dbInA.objects()...); err != nil {
		return err
	}
	begin := time.Now()
	if err := s.a.create(ctx, serviceExport("db")); err != nil {
		return err
	}
	got, err := s.b.awaitImport(ctx, "db", []string{"cluster-a"}, []string{"sql 5432"}, dbInA.endpoints("cluster-a", "sql"))
	if err != nil {
		return err
	}
	if got.serviceImport.Spec.Type != mcsv1beta1.Headless || got.derived.Spec.ClusterIP != corev1.ClusterIPNone {
		return fmt.Errorf("%w: ServiceImport db is of type %s, its Service has the address %s", errWrong, got.serviceImport.Spec.Type, got.derived.Spec.ClusterIP)
	}
	s.afterf(time.Since(begin), "cluster-b has ServiceImport db, without addresses of its own; the slices of Service %s say", got.derived.Name)
	s.listEndpoints(got)
	if err := s.dig(ctx, "db", dns.TypeA, got.addresses(ipv4)...); err != nil {
		return err
	}
	if err := s.dig(ctx, "db", dns.TypeAAAA, got.addresses(ipv6)...); err != nil {
		return err
	}
	var targets []string
	for _, p := range dbInA.pods {
		name := p.hostname + ".cluster-a.db"
		targets = append(targets, "5432 "+strings.TrimSuffix(fqdn(name), "."))
		if err := s.dig(ctx, name, dns.TypeA, p.ipv4); err != nil {
			return err
		}
	}
	return s.dig(ctx, "_sql._tcp.db", dns.TypeSRV, targets...)
}

// conflict: cluster-b exports web as well, with ports that differ.
func (s *story) conflict(ctx context.Context) error {
	s.title("3. cluster-b exports web too, with http at port 8000 instead of 80, and metrics")
	begin := time.Now()
	if err := s.b.create(ctx, serviceExport("web")); err != nil {
		return err
	}
	// The older export has its way with http, and cluster-b does not serve that port: none of its pods is behind it.
	want := append(webInA.endpoints("cluster-a", "http"), webInB.endpoints("cluster-b", "metrics")...)
	got, err := s.b.awaitImport(ctx, "web", []string{"cluster-a", "cluster-b"}, []string{"http 80", "metrics 9090"}, want)
	if err != nil {
		return err
	}
	s.afterf(time.Since(begin), "ServiceImport web of %s has the ports %s", strings.Join(got.clusters(), " and "), strings.Join(got.ports(), ", "))
	s.moref("the older export keeps http; each port leads to the clusters that serve it:")
	s.listEndpoints(got)
	if _, err := s.a.awaitImport(ctx, "web", got.clusters(), got.ports(), want); err != nil {
		return err
	}
	if err := s.undisturbed(got); err != nil {
		return err
	}
	var message string
	for _, m := range s.members() {
		found, err := m.awaitCondition(ctx, "web", mcsv1beta1.ServiceExportConditionConflict, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonPortConflict)
		if err != nil {
			return err
		}
		if message != "" && message != found.Message {
			return fmt.Errorf("%w: the clusters word the conflict differently:\n  %s\n  %s", errWrong, message, found.Message)
		}
		message = found.Message
	}
	s.afterf(time.Since(begin), "ServiceExport web reads Conflict=True/PortConflict, in both clusters:")
	s.moref("%s", message)
	s.sayf("The addresses have not changed, and nothing that ran was disturbed:")
	if err := s.digWeb(ctx, got, "80"); err != nil {
		return err
	}
	return s.dig(ctx, "_metrics._tcp.web", dns.TypeSRV, "9090 "+strings.TrimSuffix(fqdn("web"), "."))
}

// withdraw: first one exporter goes, then the other; then nothing is left.
func (s *story) withdraw(ctx context.Context) error {
	s.title("4. cluster-a withdraws web")
	begin := time.Now()
	if err := s.a.client.Delete(ctx, serviceExport("web")); err != nil {
		return err
	}
	got, err := s.b.awaitImport(ctx, "web", []string{"cluster-b"}, []string{"http 8000", "metrics 9090"}, webInB.endpoints("cluster-b", "http", "metrics"))
	if err != nil {
		return err
	}
	s.afterf(time.Since(begin), "cluster-b alone exports web now, with its own ports %s; the addresses stay:", strings.Join(got.ports(), ", "))
	if err := s.undisturbed(got); err != nil {
		return err
	}
	if _, err := s.b.awaitCondition(ctx, "web", mcsv1beta1.ServiceExportConditionConflict, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonNoConflicts); err != nil {
		return err
	}
	if err := s.digWeb(ctx, got, "8000"); err != nil {
		return err
	}
	s.title("5. The last exports go")
	begin = time.Now()
	if err := s.b.client.Delete(ctx, serviceExport("web")); err != nil {
		return err
	}
	if err := s.a.client.Delete(ctx, serviceExport("db")); err != nil {
		return err
	}
	return s.nothingLeft(ctx, begin)
}

// nothingLeft returns an error unless imports, names and records go.
func (s *story) nothingLeft(ctx context.Context, begin time.Time) error {
	for _, m := range s.members() {
		for _, name := range []string{"web", "db"} {
			if err := m.awaitGone(ctx, name); err != nil {
				return err
			}
		}
	}
	s.afterf(time.Since(begin), "no ServiceImport, no derived Service and no mirrored EndpointSlice is left in either cluster")
	hub := &member{name: "hub"}
	err := hub.await(ctx, "no records", func(ctx context.Context) error {
		for _, list := range []client.ObjectList{&hubv1alpha1.PublishedServiceList{}, &hubv1alpha1.PublishedEndpointsList{}} {
			if err := s.records.List(ctx, list); err != nil {
				return err
			}
			if n := countOf(list); n > 0 {
				return fmt.Errorf("%d objects in a %T", n, list)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.afterf(time.Since(begin), "no record is left on the hub")
	for _, name := range []string{"web", "db", "db-0.cluster-a.db"} {
		if err := s.answers(ctx, question{fqdn(name), dns.TypeA}, nameError); err != nil {
			return err
		}
	}
	return nil
}

// undisturbed returns an error unless the derived Service of web is the one it was.
func (s *story) undisturbed(web imported) error {
	if web.derived.UID != s.webUID || !slices.Equal(web.serviceImport.Spec.IPs, s.webIPs) {
		return fmt.Errorf("%w: cluster-b: Service %s was made anew; its addresses were %v and are %v",
			errWrong, web.derived.Name, s.webIPs, web.serviceImport.Spec.IPs)
	}
	return nil
}
