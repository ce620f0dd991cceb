// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// exportTable returns exports for people.
func exportTable(items []mcsv1beta1.ServiceExport, f format) *table {
	t := &table{header: []string{"NAMESPACE", "NAME", "READY", "CONFLICTS", "EXPORTED"}}
	if f == formatWide {
		t.header = append(t.header, "MESSAGE")
	}
	for i := range items {
		e := &items[i]
		row := []string{e.Namespace, e.Name, exportState(e), conflictsOf(e), e.CreationTimestamp.UTC().Format(timeFormat)}
		if f == formatWide {
			row = append(row, exportMessage(e))
		}
		t.add(row...)
	}
	return t
}

// exportState returns "True", or "False (NoService)".
func exportState(e *mcsv1beta1.ServiceExport) string {
	for _, kind := range []mcsv1beta1.ServiceExportConditionType{mcsv1beta1.ServiceExportConditionValid, mcsv1beta1.ServiceExportConditionReady} {
		c := meta.FindStatusCondition(e.Status.Conditions, string(kind))
		if c != nil && c.Status != metav1.ConditionTrue {
			return fmt.Sprintf("%s (%s)", c.Status, c.Reason)
		}
		if c != nil && kind == mcsv1beta1.ServiceExportConditionReady {
			return string(c.Status)
		}
	}
	return "?"
}

func conflictsOf(e *mcsv1beta1.ServiceExport) string {
	c := meta.FindStatusCondition(e.Status.Conditions, string(mcsv1beta1.ServiceExportConditionConflict))
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	return c.Reason
}

// exportMessage returns what is the most important of what an export says.
func exportMessage(e *mcsv1beta1.ServiceExport) string {
	ready := meta.FindStatusCondition(e.Status.Conditions, string(mcsv1beta1.ServiceExportConditionReady))
	if ready == nil || ready.Status != metav1.ConditionTrue {
		return saidOf(e)
	}
	if conflictsOf(e) != "" {
		return meta.FindStatusCondition(e.Status.Conditions, string(mcsv1beta1.ServiceExportConditionConflict)).Message
	}
	return ready.Message
}

// origin is a cluster behind an import.
type origin struct {
	service client.ObjectKey
	cluster string
}

// mirrored returns how many endpoints each cluster has behind each import: those that are mirrored here.
func (g *getting) mirrored(ctx context.Context) (map[origin]count, error) {
	list := &discoveryv1.EndpointSliceList{}
	err := g.member.client.List(ctx, list, client.InNamespace(g.namespace), client.HasLabels{mcsv1beta1.LabelServiceName, mcsv1beta1.LabelSourceCluster})
	if err != nil {
		return nil, fmt.Errorf("list EndpointSlices: %w", err)
	}
	return countEndpoints(list.Items), nil
}

// count is how many endpoints there are, and how many of them are ready.
type count struct{ all, ready int }

// countEndpoints counts mirrored endpoints. One with addresses of both families stands in two slices, and is counted once:
// the larger family counts.
func countEndpoints(list []discoveryv1.EndpointSlice) map[origin]count {
	type lane struct {
		origin
		family discoveryv1.AddressType
	}
	lanes := map[lane]count{}
	for i := range list {
		slice := &list[i]
		l := lane{origin{client.ObjectKey{Namespace: slice.Namespace, Name: slice.Labels[mcsv1beta1.LabelServiceName]}, slice.Labels[mcsv1beta1.LabelSourceCluster]}, slice.AddressType}
		c := lanes[l]
		for _, e := range slice.Endpoints {
			c.all++
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				c.ready++
			}
		}
		lanes[l] = c
	}
	result := map[origin]count{}
	for l, c := range lanes {
		most := result[l.origin]
		result[l.origin] = count{max(most.all, c.all), max(most.ready, c.ready)}
	}
	return result
}

// importTable returns imports for people.
func importTable(items []mcsv1beta1.ServiceImport, counts map[origin]count, f format) *table {
	t := &table{header: []string{"NAMESPACE", "NAME", "TYPE", "IPS", "PORTS", "CLUSTERS (READY)", "READY"}}
	if f == formatWide {
		t.header = append(t.header, "DERIVED SERVICE", "MESSAGES")
	}
	for i := range items {
		s := &items[i]
		var ports, from []string
		for _, p := range s.Spec.Ports {
			ports = append(ports, clusterset.Port{Name: p.Name, Protocol: p.Protocol, Port: p.Port}.String())
		}
		for _, c := range s.Status.Clusters {
			n := counts[origin{client.ObjectKeyFromObject(s), c.Cluster}]
			from = append(from, fmt.Sprintf("%s(%s)", c.Cluster, readyOf(n.ready, n.all)))
		}
		row := []string{s.Namespace, s.Name, string(s.Spec.Type), strings.Join(s.Spec.IPs, ","), strings.Join(ports, ","), strings.Join(from, ","), importState(s)}
		if f == formatWide {
			row = append(row, s.Annotations[clusterset.AnnotationDerivedService], importMessages(s))
		}
		t.add(row...)
	}
	return t
}

// importState returns "True", "False (Pending)", and with it what else is the matter.
func importState(s *mcsv1beta1.ServiceImport) string {
	var words []string
	for _, c := range s.Status.Conditions {
		switch {
		case c.Type == string(mcsv1beta1.ServiceImportConditionReady) && c.Status == metav1.ConditionTrue:
			words = append(words, "True")
		case c.Type == string(mcsv1beta1.ServiceImportConditionReady):
			words = append(words, fmt.Sprintf("%s (%s)", c.Status, c.Reason))
		case c.Status == metav1.ConditionTrue:
			words = append(words, c.Type)
		}
	}
	if len(words) == 0 {
		return "?"
	}
	return strings.Join(words, ", ")
}

func importMessages(s *mcsv1beta1.ServiceImport) string {
	var words []string
	for _, c := range s.Status.Conditions {
		words = append(words, c.Message)
	}
	return strings.Join(words, " ")
}
