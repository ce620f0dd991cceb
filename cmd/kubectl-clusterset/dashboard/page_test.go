// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// now is the time of each status.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// observation returns services of namespace shop that east exports, each as in "web 1/2": name, ready and all endpoints.
func observation(services ...string) survey.Observation {
	s := survey.Status{Time: metav1.NewTime(now), Members: []survey.MemberStatus{{ID: "east", Network: "default", State: survey.StateConnected, Publication: "Complete"}}}
	for _, text := range services {
		service, e := survey.ServiceStatus{Namespace: "shop"}, survey.ExporterStatus{Cluster: "east"}
		if _, err := fmt.Sscanf(text, "%s %d/%d", &service.Name, &e.ReadyEndpoints, &e.Endpoints); err != nil {
			panic(err)
		}
		service.Exporters = []survey.ExporterStatus{e}
		s.Services = append(s.Services, service)
	}
	return survey.Observation{Status: s}
}

// TestWorstPaths: the row of a service has the worst path of each importer.
func TestWorstPaths(t *testing.T) {
	t.Parallel()
	const none = ""
	path := func(importer, exporter clusterset.ClusterID, p survey.Path) survey.PathStatus {
		return survey.PathStatus{Importer: importer, Exporter: exporter, Path: p}
	}
	for name, test := range map[string]struct {
		importers string
		unread    clusterset.ClusterID
		paths     []survey.PathStatus
		want      string
	}{
		"no importer":             {none, none, nil, "..."},
		"a cluster is not read":   {none, "b", nil, ".-."},
		"direct":                  {"a c", none, nil, "d.d"},
		"through gateways":        {"a b", none, []survey.PathStatus{path("b", "a", survey.PathGateways)}, "dg."},
		"the worst counts":        {"b", none, []survey.PathStatus{path("b", "a", survey.PathNone), path("b", "c", survey.PathGateways)}, ".x."},
		"not reached":             {"c", none, []survey.PathStatus{path("c", "b", survey.PathNotKnown), path("c", "a", survey.PathGatewaysUnreached)}, "..u"},
		"a path of later version": {"c", none, []survey.PathStatus{path("c", "b", "Tunnels")}, "..?"},
		"an importer that left":   {"a z", none, []survey.PathStatus{path("z", "a", survey.PathNone)}, "d.."},
	} {
		s := survey.Status{}
		for _, id := range []clusterset.ClusterID{"a", "b", "c"} {
			m := survey.MemberStatus{ID: id, Imports: new(0)}
			if id == test.unread {
				m.Imports = nil
			}
			s.Members = append(s.Members, m)
		}
		service := survey.ServiceStatus{Namespace: "shop", Name: "web", Paths: test.paths}
		for _, id := range strings.Fields(test.importers) {
			service.Importers = append(service.Importers, clusterset.ClusterID(id))
		}
		s.Services = []survey.ServiceStatus{service}
		check.Equal(t, name, test.want, pageOf(survey.Observation{Status: s}).services[0].Imports)
	}
}

// TestPage: exporters that differ, silent members, and the worst path between networks.
func TestPage(t *testing.T) {
	t.Parallel()
	s := survey.Status{
		Time: metav1.NewTime(now.Add(300 * time.Millisecond)),
		Members: []survey.MemberStatus{
			{ID: "east", Network: "one", State: survey.StateConnected, Imports: new(2), Context: "east"},
			{ID: "west", Network: "two", State: survey.StateSilent, SilentSeconds: new(int64(60))},
		},
		Services: []survey.ServiceStatus{
			{
				Namespace: "shop", Name: "web", Exporters: []survey.ExporterStatus{{Cluster: "east", Endpoints: 3, ReadyEndpoints: 2}, {Cluster: "west"}},
				Importers: []clusterset.ClusterID{"east"}, Conflicts: []survey.ConflictStatus{{Disagree: []clusterset.ClusterID{"west"}}},
				Paths: []survey.PathStatus{{Importer: "east", Exporter: "west", Path: survey.PathGateways}},
			},
			{
				Namespace: "shop", Name: "cart", Importers: []clusterset.ClusterID{"east"},
				Paths: []survey.PathStatus{{Importer: "east", Exporter: "west", Path: survey.PathGatewaysUnreached}},
			},
		},
	}
	since := metav1.NewTime(now.Add(-time.Minute))
	want := page{
		Members: []member{
			{ID: "east", Network: "one", State: survey.StateConnected, Imports: new(2), Context: "east"},
			{ID: "west", Network: "two", State: survey.StateSilent, SilentSince: &since},
		},
		Problems: []survey.Problem{}, Unreached: []survey.UnreachedStatus{}, Unanswered: []survey.Unanswered{},
		Links: []link{{"one", "two", "u"}},
		services: []row{
			{Namespace: "shop", Name: "web", Exporters: []exporter{{"east", 2, 3, false, false}, {"west", 0, 0, false, true}}, Imports: "g-"},
			{Namespace: "shop", Name: "cart", Imports: "u-"},
		},
	}
	check.Equal(t, "the page", want, pageOf(survey.Observation{Status: s}), cmp.AllowUnexported(page{}))
}

// TestChanges: an entry says what has changed, and the list has a maximum length.
func TestChanges(t *testing.T) {
	t.Parallel()
	c := survey.Changes{
		Time:        now,
		Appeared:    []survey.Problem{{Severity: survey.SeverityError, Reason: survey.ReasonMemberSilent, Member: "west", Message: "No heartbeat."}},
		Solved:      []survey.Problem{{Reason: survey.ReasonConflict, Service: "shop/web"}},
		Members:     []survey.MemberStatus{{ID: "west", State: survey.StateSilent, Exports: 2, Imports: new(1), Publication: "Partial"}},
		MembersGone: []survey.MemberStatus{{ID: "mid"}},
		Services: []survey.ServiceStatus{
			{Namespace: "shop", Name: "web", Exporters: []survey.ExporterStatus{{Cluster: "east", Endpoints: 2, ReadyEndpoints: 1}}, Importers: []clusterset.ClusterID{"west"}},
			{Namespace: "shop", Name: "bad"},
		},
		ServicesGone: []survey.ServiceStatus{{Namespace: "shop", Name: "old"}},
	}
	var got []string
	for _, entry := range changesOf(c) {
		got = append(got, strings.Join([]string{entry.Kind, string(entry.Member), entry.Service, entry.Text}, "|"))
	}
	want := []string{
		"error|west||MemberSilent: No heartbeat.",
		"solved||shop/web|solved: Conflict",
		"changed|west||silent, 2 exports, 1 imports, publication Partial",
		"gone|mid||the member has left",
		"changed||shop/web|exported by east (1/2 ready), imported by 1",
		"changed||shop/bad|no accepted member exports it",
		"gone||shop/old|no member exports it",
	}
	check.Equal(t, "the changes", want, got)
	c.ServicesGone = slices.Repeat(c.ServicesGone, 2*maxChanges)
	check.Equal(t, "number of changes", maxChanges, len(changesOf(c)))
}

// TestFeed: a browser that has missed a revision, or whose columns have changed, gets the whole page.
func TestFeed(t *testing.T) {
	t.Parallel()
	f := newFeed()
	publish := func(o survey.Observation) {
		t.Helper()
		check.Must(t, f.publish(o))
	}
	isWhole := func(revision int) bool {
		content, _, _ := f.since(revision)
		return strings.HasPrefix(string(content), `{"whole":true`)
	}
	_, _, next := f.since(0)
	publish(observation("web 1/1"))
	<-next
	publish(observation("web 1/2"))
	if isWhole(1) || !isWhole(0) {
		t.Error("revision 2 is not sent as a difference to the browser that has revision 1")
	}
	publish(observation("web 2/2"))
	check.Equal(t, "a browser that has missed revision 2 gets the whole page", true, isWhole(1))
	if content, current, _ := f.since(3); content != nil || current != 3 {
		t.Errorf("a browser with revision 3 gets %s, of revision %d", content, current)
	}
	another := observation("web 2/2")
	another.Status.Members = append(another.Status.Members, survey.MemberStatus{ID: "west"})
	publish(another)
	check.Equal(t, "with another member, whose column no row has, a browser gets the whole page", true, isWhole(3))
	for i := range 2 * maxChanges {
		publish(observation(fmt.Sprintf("web %d/1000", i)))
	}
	check.Equal(t, "number of changes that are kept", maxChanges, len(f.changes))
}
