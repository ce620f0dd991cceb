// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"path/filepath"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
)

// TestRestored: the cluster is restored from a backup while CoreDNS runs. CoreDNS lists again and serves what the backup holds, and
// later changes get through.
//
// spec: N2, N3
func TestRestored(t *testing.T) {
	t.Parallel()
	w := start(t)
	if err := membership.InstallCRDs(t.Context(), w.cluster); err != nil {
		t.Fatal(err)
	}
	p := w.proxy(t)
	s := startServer(t, "clusterset clusterset.local {\nendpoint "+p.URL+"\nstartup_timeout 1m\n}")
	old := imported("old", v1beta1.ClusterSetIP, "10.96.0.1")
	w.create(t, old, imported("db", v1beta1.Headless), endpoints("db-east-1", "10.1.0.1"))
	await(t, s, "old.default.svc.clusterset.local. A", "NOERROR 10.96.0.1")
	backup := filepath.Join(t.TempDir(), "backup")
	if err := w.cluster.Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}

	if err := w.client.Delete(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	w.change(t)
	w.create(t, imported("later", v1beta1.ClusterSetIP, "10.96.0.2"), endpoints("db-east-2", "10.1.0.2"))
	await(t, s, "old.default.svc.clusterset.local. A", "NXDOMAIN")
	await(t, s, "later.default.svc.clusterset.local. A", "NOERROR 10.96.0.2")
	await(t, s, "db.default.svc.clusterset.local. A", "NOERROR 10.1.0.1 10.1.0.2")
	// An API server that is starting refuses some requests, after which client-go lists anyway. CoreDNS asks when it is ready.
	p.gate.Lock()
	err := w.cluster.Restore(t.Context(), backup)
	p.gate.Unlock()
	if err != nil {
		t.Fatal(err)
	}

	await(t, s, "old.default.svc.clusterset.local. A", "NOERROR 10.96.0.1")
	await(t, s, "later.default.svc.clusterset.local. A", "NXDOMAIN")
	await(t, s, "db.default.svc.clusterset.local. A", "NOERROR 10.1.0.1")
	w.create(t, imported("new", v1beta1.ClusterSetIP, "10.96.0.3"), endpoints("db-east-3", "10.1.0.3"))
	await(t, s, "new.default.svc.clusterset.local. A", "NOERROR 10.96.0.3")
	await(t, s, "db.default.svc.clusterset.local. A", "NOERROR 10.1.0.1 10.1.0.3")
}

// change changes the cluster more often than an API server does by itself when it starts.
func (w world) change(t *testing.T) {
	t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "changes"}}
	w.create(t, o)
	for i := range 200 {
		o.Data = map[string]string{"n": strconv.Itoa(i)}
		if err := w.client.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
}
