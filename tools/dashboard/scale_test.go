// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/dashboard"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/picture"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/watch"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// The size of a large clusterset.
const (
	manyClusters = 100
	manyServices = 2000
	manyNetworks = 4
)

// large returns the status of a large clusterset: every cluster imports every service, from three exporters in three networks. Each tenth
// service has a problem, and the endpoints of one service are as given.
func large(ready int) assess.Status {
	s := assess.Status{Time: metav1.Now(), Hub: "https://hub.example"}
	var ids []clusterset.ClusterID
	for i := range manyClusters {
		id := clusterset.ClusterID(fmt.Sprintf("cluster-%03d", i))
		ids = append(ids, id)
		s.Members = append(s.Members, assess.MemberStatus{
			ID: id, Network: networkOf(i), State: survey.StateConnected, Publication: "Complete", Context: string(id),
			Exports: 3 * manyServices / manyClusters, Imports: new(manyServices),
		})
	}
	for i := range manyServices {
		service := assess.ServiceStatus{
			Namespace: fmt.Sprintf("team-%02d", i%50), Name: fmt.Sprintf("service-%04d", i), Type: "ClusterSetIP", Ports: []string{"http:8080/TCP"}, Importers: ids,
		}
		for j := range 3 {
			exporter := (i + 33*j) % manyClusters
			service.Exporters = append(service.Exporters, assess.ExporterStatus{Cluster: ids[exporter], Endpoints: 3, ReadyEndpoints: 3})
			for importer, id := range ids {
				if networkOf(importer) != networkOf(exporter) {
					service.Paths = append(service.Paths, assess.PathStatus{Importer: id, Exporter: ids[exporter], Path: assess.PathGateways})
				}
			}
		}
		if i%10 == 0 {
			s.Problems = append(s.Problems, assess.Problem{
				Severity: assess.SeverityWarning, Reason: assess.ReasonConflict, Service: service.Key(),
				Message: "The exporters disagree on ports (using \"8080\"; cluster-001 disagrees).", Next: "See who says what: kubectl clusterset explain " + service.Key(),
			})
		}
		s.Services = append(s.Services, service)
	}
	s.Services[1].Exporters[0].ReadyEndpoints = ready
	return s
}

func networkOf(cluster int) string { return fmt.Sprintf("network-%d", cluster%manyNetworks) }

// serve serves a page without a clusterset until the test ends, and returns its link.
func serve(t *testing.T) (server *dashboard.Server, link string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	lab.Must(t, err)
	server = dashboard.New(picture.SVG)
	link = server.URL(listener.Addr())
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx, listener) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return server, link
}

// TestLarge: the page of a large clusterset is shown within two seconds, and is then updated and searched without delay.
func TestLarge(t *testing.T) {
	server, link := serve(t)
	publish := func(ready int) {
		t.Helper()
		status := large(ready)
		began := time.Now()
		lab.Must(t, server.Publish(watch.Observation{Status: status}))
		t.Logf("the command computes the page in %s", time.Since(began).Round(time.Millisecond))
	}
	publish(3)
	b := open(t, link)
	b.await(`performance.getEntriesByName("shown").length > 0`)
	b.shows("#services-title", "Services (2000)")
	b.shows("#summary", "100 clusters · 2000 services · 0 errors · 200 warnings")
	shown := value[float64](b, `performance.getEntriesByName("shown")[0].startTime`)
	t.Logf("the page is shown %.0f ms after the browser began to load it", shown)
	if shown > 2000 {
		t.Errorf("the page is shown after %.0f ms", shown)
	}
	if rows := value[int](b, `document.querySelectorAll(".row").length`); rows < 10 || rows > 100 {
		t.Errorf("%d rows exist as elements", rows)
	}

	b.search("service-0001")
	b.do(chromedp.Focus(`[data-cluster="cluster-042"]`))
	publish(1)
	b.await(`document.querySelector('[data-key="team-01/service-0001"]')?.textContent.includes("1/3")`)
	b.shows("#changes", "team-01/service-0001 exported by cluster-001 (1/3 ready)")
	if got := value[string](b, `document.activeElement.dataset.cluster ?? ""`); got != "cluster-042" {
		t.Errorf("an update moves the focus from cluster-042 to %q", got)
	}
	took := value[float64](b, `(() => { const field = document.querySelector("#search"); const began = performance.now();
		field.value = "team-07"; field.dispatchEvent(new Event("input")); document.body.offsetHeight; return performance.now() - began; })()`)
	t.Logf("a search takes %.0f ms", took)
	b.shows("#services-title", "Services (40 of 2000)")
	if took > 300 {
		t.Errorf("a search takes %.0f ms", took)
	}
	b.search("")
	b.do(chromedp.Focus("#grid"))
	b.press(kb.End)
	b.await(`document.querySelector("[aria-selected=true]").dataset.key === "team-49/service-1999"`)
	b.click(`[data-cluster="cluster-042"]`)
	b.await(`document.querySelector('[data-cluster="cluster-042"]').getAttribute("aria-pressed") === "true"`)
}

// TestHostileText: text of members is shown as it is, and never interpreted; and the page's policy would not run a script in it.
func TestHostileText(t *testing.T) {
	const hostile = `"><img src=x onerror="document.title='run'"><script>document.title='run'</script>`
	s := assess.Status{
		Hub:      hostile,
		Problems: []assess.Problem{{Severity: assess.SeverityError, Reason: hostile, Member: hostile, Service: hostile, Message: hostile, Next: hostile}},
		Members:  []assess.MemberStatus{{ID: hostile, Network: hostile, State: hostile, Version: hostile, Publication: hostile, Context: hostile}},
		Services: []assess.ServiceStatus{{
			Namespace: hostile, Name: hostile, Type: hostile, Ports: []string{hostile}, Exporters: []assess.ExporterStatus{{Cluster: hostile}}, Importers: []clusterset.ClusterID{hostile},
		}},
		Unreached: []assess.UnreachedStatus{{Context: hostile, Error: hostile}},
	}
	server, link := serve(t)
	observation := watch.Observation{Status: s, Unanswered: []watch.Unanswered{{Context: hostile, Error: hostile}}}
	lab.Must(t, server.Publish(observation))
	observation.Status.Services = nil
	b := open(t, link, "Executing inline script violates the following Content Security Policy directive 'script-src 'self''")
	b.await(fmt.Sprintf(`document.querySelector(".row")?.dataset.key === %s`, quoted(hostile+"/"+hostile)))
	b.await(`document.querySelectorAll("body img, body script").length === 0`)
	lab.Must(t, server.Publish(observation))
	for _, part := range []string{"#problems", "#notices", "#changes", "#map title"} {
		b.await(fmt.Sprintf("document.querySelector(%s).textContent.includes(%s)", quoted(part), quoted(hostile)))
	}
	if got := value[string](b, `(() => { const script = document.createElement("script"); script.textContent = "document.title = 'run'"; document.body.append(script); return document.title; })()`); got != "(1) Clusterset" {
		t.Errorf("the title is %q after an inline script", got)
	}
}
