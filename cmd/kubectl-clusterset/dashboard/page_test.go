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
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/watch"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// now is the time of each status.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// observation returns services of namespace shop that east exports, each as in "web 1/2": name, ready and all endpoints.
func observation(services ...string) watch.Observation {
	s := assess.Status{Time: metav1.NewTime(now), Members: []assess.MemberStatus{{ID: "east", Network: "default", State: survey.StateConnected, Publication: "Complete"}}}
	for _, text := range services {
		service, e := assess.ServiceStatus{Namespace: "shop"}, assess.ExporterStatus{Cluster: "east"}
		if _, err := fmt.Sscanf(text, "%s %d/%d", &service.Name, &e.ReadyEndpoints, &e.Endpoints); err != nil {
			panic(err)
		}
		service.Exporters = []assess.ExporterStatus{e}
		s.Services = append(s.Services, service)
	}
	return watch.Observation{Status: s}
}

// TestWorstPaths: the row of a service has the worst path of each importer.
func TestWorstPaths(t *testing.T) {
	t.Parallel()
	const none = ""
	path := func(importer, exporter clusterset.ClusterID, p assess.Path) assess.PathStatus {
		return assess.PathStatus{Importer: importer, Exporter: exporter, Path: p}
	}
	for name, test := range map[string]struct {
		importers string
		unread    clusterset.ClusterID
		paths     []assess.PathStatus
		want      string
	}{
		"no importer":             {none, none, nil, "..."},
		"a cluster is not read":   {none, "b", nil, ".-."},
		"direct":                  {"a c", none, nil, "d.d"},
		"through gateways":        {"a b", none, []assess.PathStatus{path("b", "a", assess.PathGateways)}, "dg."},
		"the worst counts":        {"b", none, []assess.PathStatus{path("b", "a", assess.PathNone), path("b", "c", assess.PathGateways)}, ".x."},
		"not reached":             {"c", none, []assess.PathStatus{path("c", "b", assess.PathNotKnown), path("c", "a", assess.PathGatewaysUnreached)}, "..u"},
		"a path of later version": {"c", none, []assess.PathStatus{path("c", "b", "Tunnels")}, "..?"},
		"an importer that left":   {"a z", none, []assess.PathStatus{path("z", "a", assess.PathNone)}, "d.."},
	} {
		s := assess.Status{}
		for _, id := range []clusterset.ClusterID{"a", "b", "c"} {
			m := assess.MemberStatus{ID: id, Imports: new(0)}
			if id == test.unread {
				m.Imports = nil
			}
			s.Members = append(s.Members, m)
		}
		service := assess.ServiceStatus{Namespace: "shop", Name: "web", Paths: test.paths}
		for _, id := range strings.Fields(test.importers) {
			service.Importers = append(service.Importers, clusterset.ClusterID(id))
		}
		s.Services = []assess.ServiceStatus{service}
		check.Equal(t, name, test.want, pageOf(watch.Observation{Status: s}).services[0].Imports)
	}
}

// TestPage: exporters that differ, silent members, and the worst path between networks.
func TestPage(t *testing.T) {
	t.Parallel()
	s := assess.Status{
		Time: metav1.NewTime(now.Add(300 * time.Millisecond)),
		Members: []assess.MemberStatus{
			{ID: "east", Network: "one", State: survey.StateConnected, Imports: new(2), Context: "east"},
			{ID: "west", Network: "two", State: survey.StateSilent, SilentSeconds: new(int64(60))},
		},
		Services: []assess.ServiceStatus{
			{
				Namespace: "shop", Name: "web", Exporters: []assess.ExporterStatus{{Cluster: "east", Endpoints: 3, ReadyEndpoints: 2}, {Cluster: "west"}},
				Importers: []clusterset.ClusterID{"east"}, Conflicts: []assess.ConflictStatus{{Disagree: []clusterset.ClusterID{"west"}}},
				Paths: []assess.PathStatus{{Importer: "east", Exporter: "west", Path: assess.PathGateways}},
			},
			{
				Namespace: "shop", Name: "cart", Importers: []clusterset.ClusterID{"east"},
				Paths: []assess.PathStatus{{Importer: "east", Exporter: "west", Path: assess.PathGatewaysUnreached}},
			},
		},
	}
	since := metav1.NewTime(now.Add(-time.Minute))
	want := page{
		Members: []member{
			{ID: "east", Network: "one", State: survey.StateConnected, Imports: new(2), Context: "east"},
			{ID: "west", Network: "two", State: survey.StateSilent, SilentSince: &since},
		},
		Problems: []assess.Problem{}, Unreached: []assess.UnreachedStatus{}, Unanswered: []watch.Unanswered{},
		Links: []link{{"one", "two", "u"}},
		services: []row{
			{Namespace: "shop", Name: "web", Exporters: []exporter{{"east", 2, 3, false, false}, {"west", 0, 0, false, true}}, Imports: "g-"},
			{Namespace: "shop", Name: "cart", Imports: "u-"},
		},
	}
	check.Equal(t, "the page", want, pageOf(watch.Observation{Status: s}), cmp.AllowUnexported(page{}))
}

// TestChanges: an entry says what has changed, and the list has a maximum length.
func TestChanges(t *testing.T) {
	t.Parallel()
	c := assess.Changes{
		Time:        now,
		Appeared:    []assess.Problem{{Severity: assess.SeverityError, Reason: assess.ReasonMemberSilent, Member: "west", Message: "No heartbeat."}},
		Solved:      []assess.Problem{{Reason: assess.ReasonConflict, Service: "shop/web"}},
		Members:     []assess.MemberStatus{{ID: "west", State: survey.StateSilent, Exports: 2, Imports: new(1), Publication: "Partial"}},
		MembersGone: []assess.MemberStatus{{ID: "mid"}},
		Services: []assess.ServiceStatus{
			{Namespace: "shop", Name: "web", Exporters: []assess.ExporterStatus{{Cluster: "east", Endpoints: 2, ReadyEndpoints: 1}}, Importers: []clusterset.ClusterID{"west"}},
			{Namespace: "shop", Name: "bad"},
		},
		ServicesGone: []assess.ServiceStatus{{Namespace: "shop", Name: "old"}},
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
	publish := func(o watch.Observation) {
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
	another.Status.Members = append(another.Status.Members, assess.MemberStatus{ID: "west"})
	publish(another)
	check.Equal(t, "with another member, whose column no row has, a browser gets the whole page", true, isWhole(3))
	for i := range 2 * maxChanges {
		publish(observation(fmt.Sprintf("web %d/1000", i)))
	}
	check.Equal(t, "number of changes that are kept", maxChanges, len(f.changes))
}
