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

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/bench/agent/world"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// An import is compared as lines: those that follow from what the harness has published, and those that the importer has.
// Neither uses the product's code.

// expected returns the lines that an importer must have, sorted.
func (s *scaleService) expected() []string {
	addresses, affinity := len(s.families), "None"
	if s.kind == mcsv1beta1.Headless {
		addresses, affinity = 0, ""
	}
	lines := []string{fmt.Sprintf("import %s with %d addresses, affinity %q, Ready True", s.kind, addresses, affinity)}
	for i, port := range s.ports {
		lines = append(lines,
			fmt.Sprintf("import port %q %d/%s", port.Name, port.Port, port.Protocol),
			fmt.Sprintf("derived port %q %d/%s", s.derivedPortName(i), port.Port, port.Protocol))
	}
	for _, e := range s.exports {
		lines = append(lines, "exporter "+string(e.from.ID))
		for _, r := range e.slices {
			lines = append(lines, r.expected()...)
		}
	}
	slices.Sort(lines)
	return lines
}

func (s *scaleService) derivedPortName(i int) string {
	if s.ports[i].Name == "" {
		return "unnamed"
	}
	return s.ports[i].Name
}

// expected returns a line for each endpoint; none if no port is imported.
func (r *recordedSlice) expected() []string {
	if len(r.ports) == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []string
	for _, group := range r.record.Spec.Groups {
		for _, address := range group.Addresses {
			lines = append(lines, endpointLine(string(r.from.ID), r.ports, string(address), *group.Ready, group.Zone))
		}
	}
	return lines
}

func endpointLine(from string, ports []string, address string, ready bool, zone string) string {
	return fmt.Sprintf("endpoint of %s on %s: %s ready %t in %s", from, strings.Join(ports, ","), address, ready, zone)
}

// actual returns the lines that an importer has of a service, sorted.
func actual(ctx context.Context, importer *world.Member, name string) ([]string, error) {
	i, derived, mirrored := &mcsv1beta1.ServiceImport{}, &corev1.ServiceList{}, &discoveryv1.EndpointSliceList{}
	labeled := []client.ListOption{client.InNamespace(world.Namespace), client.MatchingLabels{mcsv1beta1.LabelServiceName: name}}
	if err := errors.Join(
		importer.Admin.Get(ctx, client.ObjectKey{Namespace: world.Namespace, Name: name}, i),
		importer.Admin.List(ctx, derived, labeled...),
		importer.Admin.List(ctx, mirrored, labeled...),
	); err != nil {
		return nil, err
	}
	status := corev1.ConditionUnknown
	if c := meta.FindStatusCondition(i.Status.Conditions, string(mcsv1beta1.ServiceImportConditionReady)); c != nil {
		status = corev1.ConditionStatus(c.Status)
	}
	lines := []string{fmt.Sprintf("import %s with %d addresses, affinity %q, Ready %s", i.Spec.Type, len(i.Spec.IPs), i.Spec.SessionAffinity, status)}
	for _, port := range i.Spec.Ports {
		lines = append(lines, fmt.Sprintf("import port %q %d/%s", port.Name, port.Port, port.Protocol))
	}
	for _, c := range i.Status.Clusters {
		lines = append(lines, "exporter "+c.Cluster)
	}
	for _, service := range derived.Items {
		for _, port := range service.Spec.Ports {
			lines = append(lines, fmt.Sprintf("derived port %q %d/%s", port.Name, port.Port, port.Protocol))
		}
		if len(i.Spec.IPs) > 0 && !slices.Equal(i.Spec.IPs, service.Spec.ClusterIPs) {
			lines = append(lines, fmt.Sprintf("derived Service %s with other addresses than the import", service.Name))
		}
	}
	for _, slice := range mirrored.Items {
		var ports []string
		for _, port := range slice.Ports {
			ports = append(ports, fmt.Sprintf("%s:%d", ptr.Deref(port.Name, ""), ptr.Deref(port.Port, 0)))
		}
		for _, e := range slice.Endpoints {
			lines = append(lines, endpointLine(slice.Labels[mcsv1beta1.LabelSourceCluster], ports,
				strings.Join(e.Addresses, "+"), ptr.Deref(e.Conditions.Ready, false), ptr.Deref(e.Zone, "")))
		}
	}
	slices.Sort(lines)
	return lines, nil
}

// mostReported is how many wrong imports an error describes, and how many lines of each.
const mostReported = 5

// verify returns an error if the imports of services are not as expected after a while.
func verify(ctx context.Context, importer *world.Member, services []*scaleService) error {
	wrong := services
	return lab.Await(ctx, time.Second, world.ArrivalTimeout, func(ctx context.Context) error {
		var still []*scaleService
		var reports []error
		for _, s := range wrong {
			got, err := actual(ctx, importer, s.name)
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if want := s.expected(); !slices.Equal(want, got) {
				still = append(still, s)
				reports = append(reports, fmt.Errorf("%s: missing %q, not expected %q", s.name, lacking(want, got), lacking(got, want)))
			}
		}
		if wrong = still; len(wrong) == 0 {
			return nil
		}
		return fmt.Errorf("%d of %d imports are wrong:\n%w", len(wrong), len(services), errors.Join(reports[:min(len(reports), mostReported)]...))
	})
}

// lacking returns the first lines of one list that another one does not have.
func lacking(of, in []string) []string {
	var result []string
	for _, line := range of {
		if !slices.Contains(in, line) && len(result) < mostReported {
			result = append(result, line)
		}
	}
	return result
}
