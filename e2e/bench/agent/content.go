// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// What an importer holds of a service is compared as lines: those that it must have, by what the harness has written to the
// hub, with those that it has. Neither comes from the product.

// wanted returns the lines that an importer must have, sorted.
func (s *mixed) wanted() []string {
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
	for _, c := range s.contributions {
		lines = append(lines, "exporter "+string(c.from.id))
		for _, p := range c.slices {
			lines = append(lines, p.wanted()...)
		}
	}
	slices.Sort(lines)
	return lines
}

// derivedPortName returns what a port is called in the derived Service, headless or not.
func (s *mixed) derivedPortName(i int) string {
	if s.ports[i].Name == "" {
		return "unnamed"
	}
	return s.ports[i].Name
}

// wanted returns a line for each endpoint; none where none of its ports is imported.
func (p *published) wanted() []string {
	if len(p.listens) == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var lines []string
	for _, group := range p.record.Spec.Groups {
		for _, address := range group.Addresses {
			lines = append(lines, endpointLine(string(p.from.id), p.listens, string(address), *group.Ready, group.Zone))
		}
	}
	return lines
}

func endpointLine(from string, listens []string, address string, ready bool, zone string) string {
	return fmt.Sprintf("endpoint of %s on %s: %s ready %t in %s", from, strings.Join(listens, ","), address, ready, zone)
}

// held returns the lines that an importer has of a service, sorted.
func held(ctx context.Context, importer *member, name string) ([]string, error) {
	key, i, derived := client.ObjectKey{Namespace: namespace, Name: name}, &mcsv1beta1.ServiceImport{}, &corev1.ServiceList{}
	if err := importer.kube.Get(ctx, key, i); err != nil {
		return nil, err
	}
	ours := []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{mcsv1beta1.LabelServiceName: name}}
	mirrored := &discoveryv1.EndpointSliceList{}
	if err := importer.kube.List(ctx, derived, ours...); err != nil {
		return nil, err
	}
	if err := importer.kube.List(ctx, mirrored, ours...); err != nil {
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
		lines = append(lines, mirroredLines(slice)...)
	}
	slices.Sort(lines)
	return lines, nil
}

// mirroredLines returns a line for each endpoint of a slice.
func mirroredLines(slice discoveryv1.EndpointSlice) []string {
	var lines, listens []string
	for _, port := range slice.Ports {
		listens = append(listens, fmt.Sprintf("%s:%d", valueOf(port.Name), valueOf(port.Port)))
	}
	for _, e := range slice.Endpoints {
		from := slice.Labels[mcsv1beta1.LabelSourceCluster]
		lines = append(lines, endpointLine(from, listens, strings.Join(e.Addresses, "+"), valueOf(e.Conditions.Ready), valueOf(e.Zone)))
	}
	return lines
}

func valueOf[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// fewLines is how many lines are shown of what is wrong with an import, and fewImports with how many it is done.
const fewLines, fewImports = 5, 5

// awaitContent waits until the importer holds what it must of these services, and returns how many it still holds otherwise where that
// takes too long; then it says what is wrong with the first.
func (b *bench) awaitContent(ctx context.Context, importer *member, services []*mixed) (int, error) {
	var wrong []string
	compared := false
	err := wait.PollUntilContextTimeout(ctx, time.Second, sightTimeout, true, func(ctx context.Context) (bool, error) {
		found, err := differing(ctx, importer, services)
		if err == nil {
			wrong, compared = found, true
		}
		return len(found) == 0, err
	})
	if err != nil && (!compared || !wait.Interrupted(err)) {
		return 0, err
	}
	for _, line := range wrong[:min(len(wrong), fewImports)] {
		b.say("%s", line)
	}
	return len(wrong), ctx.Err()
}

// differing returns what is wrong with each of these services that the importer holds otherwise than it must.
func differing(ctx context.Context, importer *member, services []*mixed) ([]string, error) {
	var wrong []string
	for _, s := range services {
		got, err := held(ctx, importer, s.name)
		if err != nil {
			return nil, err
		}
		if want := s.wanted(); !slices.Equal(want, got) {
			wrong = append(wrong, fmt.Sprintf("%s is not as it must be: missing %q, too much %q", s.name, lacking(want, got), lacking(got, want)))
		}
	}
	return wrong, nil
}

// lacking returns the first lines of one list that another one lacks.
func lacking(of, in []string) []string {
	var result []string
	for _, line := range of {
		if !slices.Contains(in, line) && len(result) < fewLines {
			result = append(result, line)
		}
	}
	return result
}
