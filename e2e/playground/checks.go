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
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const (
	// interval is the time between two attempts of a check.
	interval = 10 * time.Millisecond
	// timeout is how long a busy machine may take for what takes milliseconds on an idle one.
	timeout = time.Minute
)

// errWrong is the cause of all errors about what the demo shows, as opposed to how it is run.
var errWrong = errors.New("not as it should be")

// imported is all that a member has of one imported service.
type imported struct {
	serviceImport mcsv1beta1.ServiceImport
	derived       corev1.Service
	endpoints     []string // of the mirrored slices, sorted
}

// description is what an import must be.
type description struct {
	headless        bool
	clusters, ports string
	endpoints       []string
}

func (d description) String() string {
	slices.Sort(d.endpoints)
	return fmt.Sprintf("headless %t, of %s, with ports %s and endpoints %v", d.headless, d.clusters, d.ports, d.endpoints)
}

// await returns when check returns nil; if that takes too long, the error has the last one of check.
func (d *demo) await(ctx context.Context, want string, check func(ctx context.Context) error) error {
	if err := lab.Await(ctx, interval, timeout, check); err != nil {
		return fmt.Errorf("%w\n  expected: %s\n  found: %w", errWrong, want, err)
	}
	return nil
}

// imports returns the import of a service in the first of the members once all of them have it as it must be.
func (d *demo) imports(ctx context.Context, name string, want description, members ...*member) (imported, error) {
	var result imported
	for i, m := range members {
		err := d.await(ctx, fmt.Sprintf("ServiceImport %s in %s, ready, %s", name, m.Name, want), func(ctx context.Context) error {
			found, err := m.imported(ctx, name)
			if err == nil && i == 0 {
				result = found
			}
			if got := found.description(); err == nil && got.String() != want.String() {
				err = errors.New(got.String())
			}
			return err
		})
		if err != nil {
			return result, err
		}
	}
	return result, nil
}

// imported returns what the member has of a service now; an error if a part is missing or contradicts another.
func (m *member) imported(ctx context.Context, name string) (imported, error) {
	var i imported
	if err := m.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &i.serviceImport); err != nil {
		return i, err
	}
	derived := i.serviceImport.Annotations[clusterset.AnnotationDerivedService]
	if err := m.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: derived}, &i.derived); err != nil {
		return i, err
	}
	mirrored := &discoveryv1.EndpointSliceList{}
	err := m.client.List(ctx, mirrored, client.InNamespace(namespace), client.MatchingLabels{discoveryv1.LabelServiceName: derived})
	if err != nil {
		return i, err
	}
	for _, slice := range mirrored.Items {
		for _, p := range slice.Ports {
			for _, e := range slice.Endpoints {
				cluster := slice.Labels[mcsv1beta1.LabelSourceCluster]
				i.endpoints = append(i.endpoints, endpoint(cluster, *p.Name, *p.Port, e.Addresses[0]))
			}
		}
	}
	slices.Sort(i.endpoints)
	if !meta.IsStatusConditionTrue(i.serviceImport.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)) {
		return i, errors.New("a ServiceImport that is not ready")
	}
	ips := slices.DeleteFunc(slices.Clone(i.derived.Spec.ClusterIPs), func(ip string) bool { return ip == corev1.ClusterIPNone })
	if !slices.Equal(i.serviceImport.Spec.IPs, ips) {
		return i, fmt.Errorf("a ServiceImport with IPs %v, and a derived Service with %v", i.serviceImport.Spec.IPs, ips)
	}
	return i, nil
}

func (i imported) description() description {
	var clusters, ports []string
	for _, c := range i.serviceImport.Status.Clusters {
		clusters = append(clusters, c.Cluster)
	}
	for _, p := range i.serviceImport.Spec.Ports {
		ports = append(ports, fmt.Sprintf("%s %d", p.Name, p.Port))
	}
	slices.Sort(ports)
	return description{
		headless: i.serviceImport.Spec.Type == mcsv1beta1.Headless && i.derived.Spec.ClusterIP == corev1.ClusterIPNone,
		clusters: strings.Join(clusters, ", "), ports: strings.Join(ports, ", "), endpoints: i.endpoints,
	}
}

// identity changes if the derived Service is created again or gets other addresses.
func (i imported) identity() string {
	return fmt.Sprintf("%s %s %v", i.derived.Name, i.derived.UID, i.serviceImport.Spec.IPs)
}

// noImport returns an error if anything of an import is left.
func (m *member) noImport(ctx context.Context) error {
	derived := []client.ListOption{client.InNamespace(namespace), client.HasLabels{mcsv1beta1.LabelServiceName}}
	return errors.Join(
		empty(ctx, m.client, []client.ObjectList{&corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}}, derived...),
		empty(ctx, m.client, []client.ObjectList{&mcsv1beta1.ServiceImportList{}}),
	)
}

// empty returns an error if there is an object of these kinds.
func empty(ctx context.Context, c client.Client, lists []client.ObjectList, options ...client.ListOption) error {
	for _, list := range lists {
		if err := c.List(ctx, list, options...); err != nil {
			return err
		}
		if n := meta.LenList(list); n > 0 {
			return fmt.Errorf("%d objects in a %T", n, list)
		}
	}
	return nil
}

// condition returns the message of a condition of web's export once it has this status and reason.
func (d *demo) condition(
	ctx context.Context, m *member, kind mcsv1beta1.ServiceExportConditionType, status metav1.ConditionStatus,
	reason mcsv1beta1.ServiceExportConditionReason,
) (string, error) {
	var message string
	want := fmt.Sprintf("ServiceExport web in %s with %s=%s/%s", m.Name, kind, status, reason)
	err := d.await(ctx, want, func(ctx context.Context) error {
		export := serviceExport("web")
		if err := m.client.Get(ctx, client.ObjectKeyFromObject(export), export); err != nil {
			return err
		}
		found := meta.FindStatusCondition(export.Status.Conditions, string(kind))
		if found == nil {
			return fmt.Errorf("no condition %s", kind)
		}
		message = found.Message
		if found.Status != status || found.Reason != string(reason) {
			return fmt.Errorf("%s=%s/%s: %s", kind, found.Status, found.Reason, found.Message)
		}
		return nil
	})
	return message, err
}

// resolves returns when the CoreDNS of cluster-b answers these values for a name of the namespace, and prints them.
func (d *demo) resolves(ctx context.Context, name string, kind uint16, want ...string) error {
	slices.Sort(want)
	question := fmt.Sprintf("%-4s %s", dns.TypeToString[kind], fqdn(name))
	err := d.await(ctx, fmt.Sprintf("the answer %v of the DNS in cluster-b to %s", want, question), func(ctx context.Context) error {
		got, err := exchange(ctx, d.b.dns, fqdn(name), kind)
		if err == nil && !slices.Equal(got, want) {
			err = fmt.Errorf("%v", got)
		}
		return err
	})
	for i, value := range want {
		if i > 0 {
			question = ""
		}
		if err == nil {
			d.linef("%-54s %s", question, value)
		}
	}
	return err
}
