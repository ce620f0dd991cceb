// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// exportWeb: a Service with ClusterIPs in cluster-a, exported, works in cluster-b.
func (d *demo) exportWeb(ctx context.Context) error {
	d.printf("\n1. cluster-a exports web\n")
	if err := errors.Join(d.a.create(ctx, webInA.objects()...), d.b.create(ctx, webInB.objects()...)); err != nil {
		return err
	}
	d.linef("cluster-b has a Service web of its own. It is not exported, so it takes no part.")
	d.step = time.Now()
	if err := d.a.create(ctx, serviceExport("web")); err != nil {
		return err
	}
	want := description{clusters: "cluster-a", ports: "http 80", endpoints: webInA.endpoints("cluster-a", "http")}
	got, err := d.imports(ctx, "web", want, d.b, d.a)
	if err != nil {
		return err
	}
	d.afterf("cluster-b has ServiceImport web: %s", strings.Join(got.serviceImport.Spec.IPs, ", "))
	d.printEndpoints(got)
	d.web = got.identity()
	message, err := d.condition(ctx, d.a, mcsv1beta1.ServiceExportConditionReady, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonExported)
	if err != nil {
		return err
	}
	d.linef("cluster-a has the import too, and its ServiceExport has Ready=True: %s", message)
	d.linef("The DNS of cluster-b answers what its API server has:")
	return d.resolveWeb(ctx, got, "80")
}

// exportDB: a headless Service; each pod has a name.
func (d *demo) exportDB(ctx context.Context) error {
	d.printf("\n2. cluster-a exports db, which is headless: its pods have names\n")
	if err := d.a.create(ctx, dbInA.objects()...); err != nil {
		return err
	}
	d.step = time.Now()
	if err := d.a.create(ctx, serviceExport("db")); err != nil {
		return err
	}
	want := description{headless: true, clusters: "cluster-a", ports: "sql 5432", endpoints: dbInA.endpoints("cluster-a", "sql")}
	got, err := d.imports(ctx, "db", want, d.b)
	if err != nil {
		return err
	}
	d.afterf("cluster-b has ServiceImport db, without addresses of its own")
	d.printEndpoints(got)
	var ipv4s, ipv6s, targets []string
	for _, p := range dbInA.pods {
		ipv4s, ipv6s = append(ipv4s, p.ipv4), append(ipv6s, p.ipv6)
		name := p.hostname + ".cluster-a.db"
		targets = append(targets, "5432 "+fqdn(name))
		if err := d.resolves(ctx, name, dns.TypeA, p.ipv4); err != nil {
			return err
		}
	}
	if err := d.resolves(ctx, "db", dns.TypeA, ipv4s...); err != nil {
		return err
	}
	if err := d.resolves(ctx, "db", dns.TypeAAAA, ipv6s...); err != nil {
		return err
	}
	return d.resolves(ctx, "_sql._tcp.db", dns.TypeSRV, targets...)
}

// conflict: cluster-b exports web as well, with ports that differ.
func (d *demo) conflict(ctx context.Context) error {
	d.printf("\n3. cluster-b exports web too, with http at port 8000 instead of 80, and metrics\n")
	d.step = time.Now()
	if err := d.b.create(ctx, serviceExport("web")); err != nil {
		return err
	}
	// The older export wins, and cluster-b does not serve http at its port: none of its pods is behind it.
	want := description{
		clusters: "cluster-a, cluster-b", ports: "http 80, metrics 9090",
		endpoints: append(webInA.endpoints("cluster-a", "http"), webInB.endpoints("cluster-b", "metrics")...),
	}
	got, err := d.imports(ctx, "web", want, d.b, d.a)
	if err != nil {
		return err
	}
	d.afterf("ServiceImport web of %s has the ports %s", want.clusters, want.ports)
	d.linef("The older export keeps http; each port leads to the clusters that serve it:")
	d.printEndpoints(got)
	var messages []string
	for _, m := range []*member{d.a, d.b} {
		message, err := d.condition(ctx, m, mcsv1beta1.ServiceExportConditionConflict, metav1.ConditionTrue, mcsv1beta1.ServiceExportReasonPortConflict)
		if err != nil {
			return err
		}
		messages = append(messages, message)
	}
	if messages[0] != messages[1] {
		return fmt.Errorf("%w: the messages of the conflict differ:\n  %s", errWrong, strings.Join(messages, "\n  "))
	}
	d.afterf("ServiceExport web has Conflict=True/PortConflict, in both clusters:")
	d.linef("%s", messages[0])
	if err := d.unchanged(got); err != nil {
		return err
	}
	if err := d.resolveWeb(ctx, got, "80"); err != nil {
		return err
	}
	return d.resolves(ctx, "_metrics._tcp.web", dns.TypeSRV, "9090 "+fqdn("web"))
}

// withdraw: first one export is deleted, then the others; then nothing is left.
func (d *demo) withdraw(ctx context.Context) error {
	d.printf("\n4. cluster-a withdraws web\n")
	d.step = time.Now()
	if err := d.a.client.Delete(ctx, serviceExport("web")); err != nil {
		return err
	}
	want := description{
		clusters: "cluster-b", ports: "http 8000, metrics 9090",
		endpoints: webInB.endpoints("cluster-b", "http", "metrics"),
	}
	got, err := d.imports(ctx, "web", want, d.b)
	if err != nil {
		return err
	}
	d.afterf("cluster-b alone exports web now, with its own ports %s; the addresses are the same:", want.ports)
	if err := d.unchanged(got); err != nil {
		return err
	}
	_, err = d.condition(ctx, d.b, mcsv1beta1.ServiceExportConditionConflict, metav1.ConditionFalse, mcsv1beta1.ServiceExportReasonNoConflicts)
	if err != nil {
		return err
	}
	if err := d.resolveWeb(ctx, got, "8000"); err != nil {
		return err
	}
	d.printf("\n5. The last exports are deleted\n")
	d.step = time.Now()
	if err := errors.Join(d.b.client.Delete(ctx, serviceExport("web")), d.a.client.Delete(ctx, serviceExport("db"))); err != nil {
		return err
	}
	return d.nothingLeft(ctx)
}

// nothingLeft returns when imports, names and records are gone.
func (d *demo) nothingLeft(ctx context.Context) error {
	for _, m := range []*member{d.a, d.b} {
		if err := d.await(ctx, "nothing of an import in "+m.Name, m.noImport); err != nil {
			return err
		}
	}
	d.afterf("no ServiceImport, no derived Service and no mirrored EndpointSlice is left in either cluster")
	err := d.await(ctx, "no records on the hub", func(ctx context.Context) error {
		return empty(ctx, d.hubClient, []client.ObjectList{&hubv1alpha1.PublishedServiceList{}, &hubv1alpha1.PublishedEndpointsList{}})
	})
	if err != nil {
		return err
	}
	d.afterf("no record is left on the hub")
	for _, name := range []string{"web", "db", "db-0.cluster-a.db"} {
		if err := d.resolves(ctx, name, dns.TypeA, "NXDOMAIN"); err != nil {
			return err
		}
	}
	return nil
}

// resolveWeb asks for all that DNS has of a service with addresses.
func (d *demo) resolveWeb(ctx context.Context, web imported, port string) error {
	ips := web.serviceImport.Spec.IPs
	i := slices.IndexFunc(ips, func(ip string) bool { return strings.Contains(ip, ":") })
	if len(ips) != 2 || i < 0 {
		return fmt.Errorf("%w: the addresses of web are %v: want one of each family", errWrong, ips)
	}
	if err := d.resolves(ctx, "web", dns.TypeA, ips[1-i]); err != nil {
		return err
	}
	if err := d.resolves(ctx, "web", dns.TypeAAAA, ips[i]); err != nil {
		return err
	}
	return d.resolves(ctx, "_http._tcp.web", dns.TypeSRV, port+" "+fqdn("web"))
}

// unchanged returns an error unless the derived Service of web is the one it was.
func (d *demo) unchanged(web imported) error {
	if web.identity() != d.web {
		return fmt.Errorf("%w: cluster-b: the derived Service of web was %s and is %s", errWrong, d.web, web.identity())
	}
	return nil
}

func (d *demo) printEndpoints(i imported) {
	for _, e := range i.endpoints {
		d.linef("  %s", e)
	}
}
