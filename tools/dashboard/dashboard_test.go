// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/cli"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
)

// command runs "kubectl clusterset dashboard" until the test ends, and returns the link that it prints.
func command(t *testing.T, clusters ...*lab.Cluster) string {
	t.Helper()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	lab.Must(t, lab.WriteContexts(kubeconfig, "", clusters...))
	ctx, cancel := context.WithCancel(context.Background())
	reader, writer := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: writer, ErrOut: writer}
		ended <- cli.Run(ctx, cli.Build{Version: "test"}, []string{"dashboard", "--all-contexts", "--kubeconfig", kubeconfig}, streams)
		_ = writer.Close() // never fails
	}()
	lines := bufio.NewScanner(reader)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "http://127.0.0.1:") {
		t.Fatalf("the first line is %q", lines.Text())
	}
	link := lines.Text()
	go func() { _, _ = io.Copy(io.Discard, reader) }() // until the command ends
	t.Cleanup(func() {
		cancel()
		if code := <-ended; code != cli.ExitOK {
			t.Errorf("the exit code is %d", code)
		}
	})
	return link
}

// TestDashboard opens the page of a clusterset of real API servers and agents, and uses it.
func TestDashboard(t *testing.T) {
	w := world.New(t, membership.Hub(), lab.Member("east"), lab.Member("west"))
	east, west := w.Members["east"], w.Members["west"]
	for _, m := range []*world.Member{east, west} {
		m.Start(t)
		world.CreateNamespace(t, "shop", m)
		world.CreateNamespace(t, "media", m)
	}
	web, broken := world.Key{Namespace: "shop", Name: "web"}, world.Key{Namespace: "shop", Name: "orders"}
	_, slice := east.ExportWeb(t, web, "10.1.0.1", "10.1.0.2")
	west.ExportWeb(t, web, "10.2.0.1")
	for i, name := range []string{"cart", "checkout", "payment"} {
		east.ExportWeb(t, world.Key{Namespace: "shop", Name: name}, "10.1.1."+string(rune('1'+i)))
	}
	west.ExportWeb(t, world.Key{Namespace: "media", Name: "images"}, "10.2.1.1", "10.2.1.2")
	lab.Must(t, west.Create(t.Context(), world.Export(broken))) // without a Service
	west.Endpoints(t, web, "east 10.1.0.1:http:8080", "east 10.1.0.2:http:8080", "west 10.2.0.1:http:8080")

	b := open(t, command(t, w.Hub, east.Cluster, west.Cluster))
	t.Run("load", func(*testing.T) {
		b.shows("#connection", "live")
		b.shows("#summary", "2 clusters · 5 services · 1 error · 0 warnings")
		b.shows("#problems", "ExportInvalid west shop/orders")
		b.await(`document.querySelectorAll("#map [data-cluster]").length === 2`)
		b.await(`document.querySelector('[data-key="shop/web"]').textContent.includes("2/2")`)
		if got := value[string](b, "location.href"); strings.Contains(got, "token") {
			t.Errorf("the address is still %s", got)
		}
	})
	t.Run("reload", func(*testing.T) {
		b.do(chromedp.Reload())
		b.shows("#services-title", "Services (5)")
	})
	t.Run("live update", func(*testing.T) {
		world.Update(t, east, world.Key{Namespace: slice.Namespace, Name: slice.Name}, slice, func() {
			slice.Endpoints[1].Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false)}
		})
		b.await(`document.querySelector('[data-key="shop/web"]').textContent.includes("1/2")`)
		b.shows("#changes", "shop/web exported by east (1/2 ready), west (1/1 ready)")
		payment := world.Key{Namespace: "shop", Name: "payment"}
		lab.Must(t, east.Delete(t.Context(), world.Export(payment)))
		b.await(`document.querySelector('[data-key="shop/payment"]') === null`)
		b.shows("#changes", "shop/payment no member exports it")
	})
	t.Run("search", func(*testing.T) {
		b.press("/")
		b.await(`document.activeElement.id === "search"`)
		for words, want := range map[string]string{
			"shop/c": "shop/cart shop/checkout", "WEB http": "shop/web", "west": "media/images shop/web", "": "media/images shop/cart shop/checkout shop/web", "ghost": "",
		} {
			b.search(words)
			b.await(fmt.Sprintf("[...document.querySelectorAll('.row')].map((r) => r.dataset.key).join(' ') === %s", quoted(want)))
		}
		b.search("")
		b.click(`[data-cluster="west"]`)
		b.await(`document.querySelector('[data-cluster="west"]').getAttribute("aria-pressed") === "true"`)
		b.press(kb.Escape)
		b.await(`document.querySelector('[data-cluster="west"]').getAttribute("aria-pressed") === "false"`)
	})
	t.Run("keyboard", func(t *testing.T) {
		b.do(chromedp.Focus("#grid"))
		b.press(kb.Home)
		b.press(kb.ArrowDown)
		if got := value[string](b, `document.querySelector("[aria-selected=true]").dataset.key`); got != "shop/cart" {
			t.Errorf("%s is selected", got)
		}
		b.press(kb.End)
		b.press(kb.Enter)
		b.shows("#details-title", "shop/web")
		b.shows("#details", "Exports, oldest first")
		b.await(`document.querySelectorAll("#map .flow").length === 2`)
		b.screenshot("dashboard-light.png", "light")
		b.screenshot("dashboard-dark.png", "dark")
		b.press(kb.Escape)
		b.await(`document.querySelector("#details").hidden && document.activeElement.id === "grid"`)
	})
	t.Run("broken service", func(*testing.T) {
		b.click(`#problems button[data-service="shop/orders"]`)
		b.shows("#details", "The hub has no records of this service.")
		b.click("#run-trace")
		b.shows("#details .trace", `broken at hop "Service"`)
		lab.Must(t, west.Delete(t.Context(), world.Export(broken)))
		b.shows("#problems", "No problems.")
		b.shows("#changes", "shop/orders solved: ExportInvalid")
	})
	t.Run("API server down", func(*testing.T) {
		lab.Must(t, west.Cluster.APIServer.Stop(t.Context()))
		b.shows("#notices", "west does not answer since")
		lab.Must(t, west.Cluster.APIServer.Start(t.Context()))
		b.await(`!document.querySelector("#notices").innerText.includes("west does not answer")`)
	})
	t.Run("hub that hangs", func(t *testing.T) {
		lab.Must(t, w.Hub.APIServer.Freeze())
		b.shows("#notices", "hub does not answer since") // also without an error of its connections
		began := value[float64](b, "performance.now()")
		b.await(fmt.Sprintf("performance.now() - %f > 6000", began)) // longer than a member may be without a heartbeat
		if got := value[string](b, text("#problems")); strings.Contains(got, "MemberSilent") {
			t.Errorf("members count as silent because the hub does not answer: %s", got)
		}
		lab.Must(t, w.Hub.APIServer.Thaw())
		b.await(`!document.querySelector("#notices").innerText.includes("does not answer")`)
	})
}
