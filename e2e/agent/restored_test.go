// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/lab"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestHubRestored: a hub that is restored from an older backup is at an earlier resource version than agents have seen. They
// notice: what the backup lacks is recorded again, what it should not hold is deleted, and what comes later gets through.
//
// spec: E3, I2
func TestHubRestored(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Member("a"), lab.Member("b"))
	w.unfence(t) // an API server that was restarted may take half a minute until its policies find the Members again
	a, b := w.members["a"], w.members["b"]
	a.start(t)
	b.start(t)
	ns := namespace(t, a, b)
	offered := func(name string, n int) key {
		service := clusterIPService(key{Namespace: ns, Name: name}, port("http", 80))
		a.exportService(t, service, slice(service, "v4", discoveryv1.AddressTypeIPv4, fmt.Sprintf("10.1.0.%d", n)))
		b.imported(t, client.ObjectKeyFromObject(service))
		return client.ObjectKeyFromObject(service)
	}
	kept, withdrawn := offered("kept", 1), offered("withdrawn", 2)
	backup := filepath.Join(t.TempDir(), "backup")
	must(t, w.hub.Backup(t.Context(), backup))

	must(t, a.Delete(t.Context(), export(withdrawn)))
	b.gone(t, withdrawn)
	w.change(t, 200) // more than an API server changes by itself when it starts, before what is seen last
	later := offered("later", 3)
	must(t, w.hub.Restore(t.Context(), backup))

	record := &hubv1alpha1.PublishedService{}
	eventually(t, func(ctx context.Context) error {
		return w.hubKube.Get(ctx, key{Namespace: "member-a", Name: ns + "." + later.Name}, record)
	})
	eventually(t, func(ctx context.Context) error {
		if err := w.hubKube.Get(ctx, key{Namespace: "member-a", Name: ns + "." + withdrawn.Name}, record); client.IgnoreNotFound(err) != nil {
			return err
		} else if err == nil {
			return fmt.Errorf("%s is still recorded", withdrawn)
		}
		return nil
	})
	b.gone(t, withdrawn)
	b.endpoints(t, kept, "a 10.1.0.1:http:8080")
	b.endpoints(t, later, "a 10.1.0.3:http:8080")
	b.endpoints(t, offered("new", 4), "a 10.1.0.4:http:8080")
}

// change changes the hub so many times.
func (w *world) change(t *testing.T, times int) {
	t.Helper()
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "changes"}}
	must(t, w.hubKube.Create(t.Context(), o))
	for i := range times {
		o.Data = map[string]string{"n": strconv.Itoa(i)}
		must(t, w.hubKube.Update(t.Context(), o))
	}
}
