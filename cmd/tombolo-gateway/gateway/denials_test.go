// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/tombolo-mcs/tombolo/internal/access"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// A denial is an Event once a minute. A cluster that has ever other clients causes ten a minute, and takes none from others, nor from the
// clients of this cluster.
//
// spec: A6
func TestDenialEvents(t *testing.T) {
	t.Parallel()
	recorder, clock := events.NewFakeRecorder(100), clocktesting.NewFakeClock(start)
	d := newDenials(recorder, clock)
	cart := clusterset.ServiceKey{Namespace: "shop", Name: "cart"}
	byGrant := access.Verdict{Rule: access.NotGranted, Object: &corev1.ObjectReference{Kind: "ServiceExportGrant", Namespace: "shop", Name: "cart", UID: "1"}}
	byPolicy := access.Verdict{Rule: "ClusterServiceAccessPolicy no", Object: &corev1.ObjectReference{Kind: "ClusterServiceAccessPolicy", Name: "no", UID: "2"}}
	expect := func(want ...string) {
		t.Helper()
		var got []string
		for len(recorder.Events) > 0 {
			got = append(got, <-recorder.Events)
		}
		check.Equal(t, "Events", want, got)
	}
	frontend := access.Client{Cluster: "east", Namespace: "shop", ServiceAccount: "frontend"}
	for range 3 {
		d.send("export", cart, frontend, byGrant)
		d.send("import", cart, frontend, byPolicy)
	}
	d.send("export", cart, access.Client{Cluster: "west"}, byGrant)
	d.send("export", cart, frontend, access.Verdict{Rule: access.NamespaceUnknown})
	expect(
		"Warning StreamDenied Service shop/cart: client shop/frontend of cluster east is denied: no ServiceExportGrant names the client.",
		"Warning StreamDenied Service shop/cart of cluster east: client shop/frontend is denied: ClusterServiceAccessPolicy no.",
		"Warning StreamDenied Service shop/cart: an unknown client of cluster west is denied: no ServiceExportGrant names the client.",
	)
	clock.Step(denialInterval - time.Second)
	for i := range 1000 {
		d.send("export", cart, access.Client{Cluster: "east", Namespace: "shop", ServiceAccount: fmt.Sprint("a", i)}, byGrant)
	}
	check.Equal(t, "Events about the clients of cluster east", maxDenials-1, len(recorder.Events))
	for len(recorder.Events) > 0 {
		<-recorder.Events
	}
	d.send("export", cart, access.Client{Cluster: "north"}, byGrant)
	d.send("import", cart, access.Client{Cluster: "east", Namespace: "shop", ServiceAccount: "backend"}, byPolicy)
	clock.Step(time.Second) // the first Events were a minute ago
	d.send("export", cart, frontend, byGrant)
	expect(
		"Warning StreamDenied Service shop/cart: an unknown client of cluster north is denied: no ServiceExportGrant names the client.",
		"Warning StreamDenied Service shop/cart of cluster east: client shop/backend is denied: ClusterServiceAccessPolicy no.",
		"Warning StreamDenied Service shop/cart: client shop/frontend of cluster east is denied: no ServiceExportGrant names the client.",
	)
}
