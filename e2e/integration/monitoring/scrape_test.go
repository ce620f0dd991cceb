// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring_test scrapes a real agent and a real DNS server, as Prometheus would. With SCRAPES set, it leaves what
// they said in that folder, for tools/monitoring to compare alerts and dashboards with.
package monitoring_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// TestScrape: an agent and a DNS server at work export all metrics that alerts and dashboards use.
func TestScrape(t *testing.T) {
	t.Parallel()
	w := world.New(t, membership.Hub(), lab.Member("a"), lab.Member("b"))
	program, coredns := build(t, "tombolo-agent"), build(t, "coredns") // a build beside the agents would hold them up
	a, b, reader := w.Members["a"], w.Members["b"], "prometheus"
	installMetricsAuth(t, b, reader)
	dnsMetrics, server := startDNS(t, coredns, a.Cluster)
	agentMetrics := startAgent(t, program, w.Hub, a.Cluster, "--cluster-dns="+server)
	secured := startAgent(t, program, w.Hub, b.Cluster, "--metrics-auth")
	for _, m := range w.Members {
		m.ExportWeb(t, world.Key{Namespace: metav1.NamespaceDefault, Name: "web"})
	}
	world.Eventually(t, func(context.Context) error { return ask(server, dns.TypeA, "web.default.svc.clusterset.local.") })

	world.KeepScrape(t, "agent.prom", awaitScrape(t, agentMetrics,
		"tombolo_hub_connected 1", "tombolo_exports 1", "tombolo_exports_not_ready 0", "tombolo_exports_conflicting 0",
		"tombolo_imports 1", "tombolo_dns_zone_resolves 1", "tombolo_imports_not_ready 0", "tombolo_obstructed_imports 0", "tombolo_refused_records 0",
		`tombolo_member_live{member="b"} 1`, `tombolo_unconfirmed_services{member="b"} 0`, "tombolo_hub_token_expiry_timestamp_seconds 0",
		`tombolo_kind_missing{kind="serviceexports.multicluster.x-k8s.io"} 0`, "tombolo_identity_refused 0", "tombolo_identity_contests_total 0",
		`tombolo_propagation_seconds_count{source="local"}`, `tombolo_propagation_seconds_count{source="remote"}`,
	))
	zones := `zones="clusterset.local."`
	world.KeepScrape(t, "dns.prom", awaitScrape(t, dnsMetrics,
		"coredns_clusterset_synced{"+zones+"} 1", "coredns_clusterset_crd_served{"+zones+"} 1",
		`coredns_clusterset_services{type="ClusterSetIP",`+zones+"} 1", "coredns_clusterset_endpoints{"+zones+"} 0",
		"coredns_clusterset_last_event_timestamp_seconds{", "coredns_clusterset_watch_errors_total{",
		"coredns_clusterset_refused_objects{", "coredns_clusterset_rebuild_duration_seconds_count{", "coredns_dns_requests_total{",
	))
	readsMetrics(t, b, secured, reader)
}

// startAgent runs the agent's program as its pod does, but for the ports and the lease, and returns where its metrics are.
func startAgent(t *testing.T, program string, hub, cluster *lab.Cluster, args ...string) string {
	t.Helper()
	address := lab.FreeAddress(t)
	own, err := membership.AgentArgs(t.Context(), hub, cluster, address)
	lab.Must(t, err)
	ready := func(ctx context.Context) error { // it may demand HTTPS and a token
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			err = connection.Close()
		}
		return err
	}
	lab.Must(t, cluster.Program(program, ready, append(own, args...)...).Start(t.Context()))
	return address
}

// startDNS runs CoreDNS with the Corefile of its pods, but for the ports, and returns where its metrics are, and its address, once it serves
// the zone.
func startDNS(t *testing.T, program string, cluster *lab.Cluster) (metrics, address string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "manifests", "dns", "plugin", "Corefile"))
	lab.Must(t, err)
	metrics = lab.FreeAddress(t)
	address, err = membership.StartDNS(t.Context(), cluster, program,
		func(port int) string { return membership.Corefile(string(text), port, cluster.Kubeconfig(), metrics) },
		func(_ context.Context, address string) error {
			return ask(address, dns.TypeTXT, "dns-version.clusterset.local.")
		})
	lab.Must(t, err)
	return metrics, address
}

// build builds a command of this repository and returns its path.
func build(t *testing.T, command string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), command)
	lab.Must(t, lab.Build(t.Context(), "../../..", command, path))
	return path
}

// awaitScrape returns the answer of an address, once lines begin with all of these.
func awaitScrape(t *testing.T, address string, beginnings ...string) []byte {
	t.Helper()
	var text []byte
	world.Eventually(t, func(ctx context.Context) error {
		var err error
		if text, err = scrape(ctx, address); err != nil {
			return err
		}
		for _, beginning := range beginnings {
			if !strings.Contains(string(text), "\n"+beginning) {
				return fmt.Errorf("no line of %s begins with %s", address, beginning)
			}
		}
		return nil
	})
	return text
}

func scrape(ctx context.Context, address string) ([]byte, error) {
	return lab.Get(ctx, http.DefaultClient, "http://"+address+"/metrics")
}

// ask returns an error unless the name has a record of this type.
func ask(server string, kind uint16, name string) error {
	m := new(dns.Msg)
	m.SetQuestion(name, kind)
	reply, _, err := new(dns.Client).Exchange(m, server)
	if err != nil {
		return err
	}
	if len(reply.Answer) == 0 {
		return fmt.Errorf("%s: %s", name, dns.RcodeToString[reply.Rcode])
	}
	return nil
}

// installMetricsAuth gives the agent of a member the rights of manifests/metrics-auth, and an account the right to read metrics.
func installMetricsAuth(t *testing.T, m *world.Member, reader string) {
	t.Helper()
	objects, err := manifests.Render("metrics-auth/rights")
	lab.Must(t, err)
	lab.Must(t, membership.Apply(t.Context(), m.Cluster, objects...))
	lab.Must(t, m.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: reader},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "tombolo-metrics-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: reader}},
	}))
}

// readsMetrics checks what clients of an agent with --metrics-auth get, by their tokens.
func readsMetrics(t *testing.T, m *world.Member, address, reader string) {
	t.Helper()
	token := func(account string) string {
		sa := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: account}}
		lab.Must(t, m.Create(t.Context(), sa))
		config, err := m.Cluster.ServiceAccountConfig(t.Context(), sa.Namespace, sa.Name)
		lab.Must(t, err)
		return config.BearerToken
	}
	for name, tc := range map[string]struct {
		token string
		want  int
	}{
		"no token":                     {"", http.StatusUnauthorized},
		"a wrong token":                {"wrong", http.StatusUnauthorized},
		"an account without the right": {token("stranger"), http.StatusForbidden},
		"an account with the right":    {token(reader), http.StatusOK},
	} {
		world.Eventually(t, func(ctx context.Context) error { // the API server may not have read the binding yet
			status, text, err := getSecurely(ctx, address, tc.token)
			if err == nil && (status != tc.want || strings.Contains(text, "tombolo_hub_connected") != (tc.want == http.StatusOK)) {
				err = fmt.Errorf("%s: status %d, want %d: %.200s", name, status, tc.want, text)
			}
			return err
		})
	}
	if text, err := scrape(t.Context(), address); err == nil && strings.Contains(string(text), "tombolo_hub_connected") {
		t.Error("the metrics are served without TLS")
	}
}

// getSecurely reads the metrics at an address by HTTPS.
func getSecurely(ctx context.Context, address, token string) (status int, text string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/metrics", http.NoBody)
	if err != nil {
		return 0, "", err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // the agent signs its certificate itself
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, string(body), err
}
