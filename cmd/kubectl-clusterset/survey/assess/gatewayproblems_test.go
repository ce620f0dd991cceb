// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/conditions"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// A member that publishes no addresses has the endpoints that it says are available. spec: W2, G12
func TestExporterStatus(t *testing.T) {
	export := clusterset.Export{Cluster: "b", Available: clusterset.Availability{{Port: 80}: 1, {Port: 81}: 2}}
	check.Equal(t, "without addresses", ExporterStatus{"b", 2, 2, true}, exporterStatus(export, nil))
	export.Available = clusterset.Availability{{Port: 80}: 1}
	check.Equal(t, "without addresses, less than the limit", ExporterStatus{"b", 1, 1, false}, exporterStatus(export, nil))
	counts := map[clusterset.ClusterID]ExporterStatus{"b": {Endpoints: 5, ReadyEndpoints: 3}}
	check.Equal(t, "with addresses", ExporterStatus{"b", 5, 3, false}, exporterStatus(export, counts))
}

// status lists the clusters that no gateway of a member reaches, and imports that cannot use a source. spec: G12, W4
func TestGatewayProblems(t *testing.T) {
	serviceImport := mcsv1beta1.ServiceImport{}
	serviceImport.Namespace, serviceImport.Name, serviceImport.Labels = "shop", "web", map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy}
	serviceImport.Status.Conditions = []metav1.Condition{conditions.ImportReady(nil, nil), conditions.SourceUnusable([]error{errors.New("port 53/UDP of cluster b is left out")})}
	a := assessment{hub: &survey.Hub{Records: hub.NewStore("", clusterset.AddressRanges{})}}
	a.problemsOfObjects(survey.MemberObjects{
		ID: "a", Context: "ctx", Imports: []mcsv1beta1.ServiceImport{serviceImport}, Gateways: map[clusterset.ClusterID]survey.GatewayReach{"b": {Ready: 1, Known: true, Unreached: 1, Message: "g1: connection refused"}, "c": {Ready: 1, Reached: 1}},
	})
	var got []string
	for _, p := range a.problems {
		got = append(got, string(p.Severity)+" "+string(p.Reason)+" "+string(p.Member)+" "+p.Service)
		if p.Message == "" || p.Next == "" {
			t.Errorf("%+v", p)
		}
	}
	want := []string{"warning SourceUnusable a shop/web", "error GatewayUnreachable a "}
	check.Equal(t, "problems", want, got)
}

// TestConflictsOf: the message has a limited number of conflicts, and cuts long values.
func TestConflictsOf(t *testing.T) {
	t.Parallel()
	long := "values: " + string(make([]byte, 4096))
	s := ServiceStatus{}
	for i := range 60 {
		s.Conflicts = append(s.Conflicts, ConflictStatus{Field: fmt.Sprintf("annotation %d", i), Using: long, Disagree: []clusterset.ClusterID{"west"}})
	}
	if got := conflictsOf(s); len(got) > 2000 || got[len(got)-14:] != "55 more fields" {
		t.Errorf("%d bytes, and at the end %q", len(got), got[len(got)-14:])
	}
	s.Conflicts = []ConflictStatus{
		{Field: "ports", Using: "http:80/TCP", Disagree: []clusterset.ClusterID{"a", "b"}},
		{Field: "annotation x", Using: "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", Disagree: []clusterset.ClusterID{"west"}},
	}
	want := `ports (using "http:80/TCP"; a, b disagree), annotation x (using "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefg…"; west disagrees)`
	check.Equal(t, "conflicts", want, conflictsOf(s))
}
