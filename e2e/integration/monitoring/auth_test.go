// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
)

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
