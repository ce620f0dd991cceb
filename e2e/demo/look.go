// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// imported is all that a member holds of one imported service.
type imported struct {
	serviceImport mcsv1beta1.ServiceImport
	derived       corev1.Service
	endpoints     []endpoint // of the mirrored slices, sorted
}

// await looks until look returns nil; else its last error says what came instead.
func (m *member) await(ctx context.Context, what string, look func(ctx context.Context) error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, patience, true, func(ctx context.Context) (bool, error) {
		err := look(ctx)
		if ctx.Err() == nil { // else what was seen before tells more
			last = err
		}
		return err == nil, nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return fmt.Errorf("%w: %s\n  expected: %s\n  found: %w", errWrong, m.name, what, last)
}

// awaitImport returns an import once these clusters export it, with these ports ("http 80") and endpoints.
func (m *member) awaitImport(ctx context.Context, name string, clusters, ports []string, endpoints []endpoint) (imported, error) {
	want := slices.Clone(endpoints)
	sortEndpoints(want)
	var result imported
	what := fmt.Sprintf("ServiceImport %s, ready, of %v with ports %v and endpoints %v", name, clusters, ports, want)
	err := m.await(ctx, what, func(ctx context.Context) error {
		found, err := m.imported(ctx, name)
		if err != nil {
			return err
		}
		result = found
		if !slices.Equal(found.clusters(), clusters) || !slices.Equal(found.ports(), ports) || !slices.Equal(found.endpoints, want) {
			return fmt.Errorf("%v with ports %v and endpoints %v", found.clusters(), found.ports(), found.endpoints)
		}
		return found.consistent()
	})
	return result, err
}

// imported returns what the member holds of a service now; an error if a part is missing.
func (m *member) imported(ctx context.Context, name string) (imported, error) {
	var i imported
	if err := m.view.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &i.serviceImport); err != nil {
		return i, err
	}
	derived := i.serviceImport.Annotations[clusterset.AnnotationDerivedService]
	if err := m.view.Get(ctx, client.ObjectKey{Namespace: namespace, Name: derived}, &i.derived); err != nil {
		return i, err
	}
	mirrored := &discoveryv1.EndpointSliceList{}
	if err := m.view.List(ctx, mirrored, client.MatchingLabels{discoveryv1.LabelServiceName: derived}); err != nil {
		return i, err
	}
	for _, slice := range mirrored.Items {
		for _, p := range slice.Ports {
			for _, e := range slice.Endpoints {
				i.endpoints = append(i.endpoints, endpoint{
					cluster: slice.Labels[mcsv1beta1.LabelSourceCluster], address: e.Addresses[0], port: *p.Name, number: *p.Port,
				})
			}
		}
	}
	sortEndpoints(i.endpoints)
	return i, nil
}

func (i imported) clusters() []string {
	var names []string
	for _, c := range i.serviceImport.Status.Clusters {
		names = append(names, c.Cluster)
	}
	return names
}

func (i imported) ports() []string {
	var ports []string
	for _, p := range i.serviceImport.Spec.Ports {
		ports = append(ports, fmt.Sprintf("%s %d", p.Name, p.Port))
	}
	slices.Sort(ports)
	return ports
}

// ips returns the import's addresses of one family, told by the character that only they have.
func (i imported) ips(mark string) []string {
	return having(mark, i.serviceImport.Spec.IPs)
}

// addresses returns those of the endpoints, of one family.
func (i imported) addresses(mark string) []string {
	var all []string
	for _, e := range i.endpoints {
		all = append(all, e.address)
	}
	slices.Sort(all)
	return having(mark, slices.Compact(all))
}

// Marks of the IP families.
const (
	ipv4 = "."
	ipv6 = ":"
)

func having(mark string, addresses []string) []string {
	return slices.DeleteFunc(slices.Clone(addresses), func(a string) bool { return !strings.Contains(a, mark) })
}

// consistent returns an error unless the import is ready and its addresses are those of the derived Service.
func (i imported) consistent() error {
	if !meta.IsStatusConditionTrue(i.serviceImport.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)) {
		return errors.New("a ServiceImport that is not ready")
	}
	ips := i.derived.Spec.ClusterIPs
	if i.serviceImport.Spec.Type == mcsv1beta1.Headless {
		ips = slices.DeleteFunc(slices.Clone(ips), func(ip string) bool { return ip == corev1.ClusterIPNone })
	}
	if !slices.Equal(i.serviceImport.Spec.IPs, ips) {
		return fmt.Errorf("a ServiceImport with IPs %v, and a derived Service with %v", i.serviceImport.Spec.IPs, ips)
	}
	return nil
}

// awaitGone returns when nothing of an import is left.
func (m *member) awaitGone(ctx context.Context, name string) error {
	return m.await(ctx, "nothing of import "+name, func(ctx context.Context) error {
		for _, list := range []client.ObjectList{&mcsv1beta1.ServiceImportList{}, &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}} {
			if err := m.view.List(ctx, list); err != nil {
				return err
			}
			objects, err := meta.ExtractList(list)
			if err != nil {
				return err
			}
			for _, object := range objects {
				o := object.(client.Object)
				if _, isImport := o.(*mcsv1beta1.ServiceImport); isImport && o.GetName() == name || o.GetLabels()[mcsv1beta1.LabelServiceName] == name {
					return fmt.Errorf("%T %s is still there", o, o.GetName())
				}
			}
		}
		return nil
	})
}

// awaitCondition returns the condition of an export once it has this status and reason.
func (m *member) awaitCondition(
	ctx context.Context, name string, kind mcsv1beta1.ServiceExportConditionType, status metav1.ConditionStatus,
	reason mcsv1beta1.ServiceExportConditionReason,
) (metav1.Condition, error) {
	var result metav1.Condition
	what := fmt.Sprintf("ServiceExport %s with %s=%s/%s", name, kind, status, reason)
	err := m.await(ctx, what, func(ctx context.Context) error {
		export := &mcsv1beta1.ServiceExport{}
		if err := m.view.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, export); err != nil {
			return err
		}
		found := meta.FindStatusCondition(export.Status.Conditions, string(kind))
		if found == nil {
			return fmt.Errorf("no condition %s", kind)
		}
		result = *found
		if result.Status != status || result.Reason != string(reason) {
			return fmt.Errorf("%s=%s/%s: %s", kind, result.Status, result.Reason, result.Message)
		}
		return nil
	})
	return result, err
}

func sortEndpoints(e []endpoint) {
	slices.SortFunc(e, func(a, b endpoint) int { return cmp.Compare(a.String(), b.String()) })
}
