// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// TestDeniedLater: a namespace that is denied, or not allowed, when it has imports already is cleared of them when the agent starts,
// and of nothing else.
//
// spec: I1, I7
func TestDeniedLater(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a, b := w.members["a"], w.members["b"]
	a.start(t)
	stop := b.start(t)
	ns := namespace(t, a, b)
	for _, m := range []*member{a, b} {
		lab.Must(t, m.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "private"}}))
	}
	kept, denied := key{Namespace: ns, Name: "web"}, key{Namespace: "private", Name: "web"}
	for _, k := range []key{kept, denied} {
		service := clusterIPService(k, port("http", 80))
		a.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, "10.1.0.1"))
		b.endpoints(t, k, "a 10.1.0.1:http:8080")
		b.imported(t, k)
	}
	w.settled(t)
	before := w.versions(t, kept)
	stop()
	mine := clusterIPService(key{Namespace: "private", Name: "mine"}, port("http", 80))
	lab.Must(t, b.Create(t.Context(), mine))
	stop = b.startWith(t, func(o *agent.Options) { o.DenyNamespaces = []string{"private"} })
	b.gone(t, denied)
	w.settled(t)
	if after := w.versions(t, kept); after != before {
		t.Errorf("objects of %s were written without need:\n%s\nbefore:\n%s", kept, after, before)
	}
	lab.Must(t, b.Get(t.Context(), client.ObjectKeyFromObject(mine), mine))
	stop()
	stop = b.start(t)
	b.endpoints(t, denied, "a 10.1.0.1:http:8080") // admitted again
	b.imported(t, denied)
	stop()
	b.startWith(t, func(o *agent.Options) { o.AllowNamespaces = []string{ns} })
	b.gone(t, denied)
	if after := w.versions(t, kept); after != before {
		t.Errorf("objects of %s were written though it is allowed:\n%s\nbefore:\n%s", kept, after, before)
	}
}
