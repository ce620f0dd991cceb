// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package presence

import (
	"testing"
	"testing/synctest"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// A controller that was not permitted to write is notified when it is: also if it subscribes after the permission was given, and if the
// permission was lost and given back between two events that the loop of the presence sees.
//
// spec: E3, K2
func TestOnMayWrite(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		own := heartbeatOf("own", hubv1alpha1.PublicationPartial)
		own.Spec.Nonce = "nonce"
		p := present(t, memberOf("own"), own)
		loop := func() { p.update(p.Store.Heartbeat(p.Cluster), "") }
		early, late := 0, 0
		wants := func(step string, wantEarly, wantLate int) {
			t.Helper()
			check.Equal(t, step+": notifications of the first and the second controller", [2]int{wantEarly, wantLate}, [2]int{early, late})
		}
		p.OnMayWrite(func() { early++ })
		check.Equal(t, "may write before the heartbeat is seen", false, p.MayWrite())
		loop()
		wants("the heartbeat is seen", 1, 0)
		p.OnMayWrite(func() { late++ })
		wants("a controller subscribes later", 1, 1)
		loop()
		wants("nothing has changed", 1, 1)

		holds := func(nonce string) {
			t.Helper()
			heartbeat := &hubv1alpha1.Heartbeat{}
			check.Must(t, p.hub.Get(t.Context(), client.ObjectKeyFromObject(own), heartbeat))
			heartbeat.Spec.Nonce = nonce
			check.Must(t, p.hub.Update(t.Context(), heartbeat))
			p.take(t)
		}
		holds("other")
		check.Equal(t, "may write with the heartbeat of another process", false, p.MayWrite())
		holds("nonce")
		loop()
		wants("the heartbeat of another process has come and gone", 2, 2)

		refreshed := 0
		p.Store.Subscribe(func(event hub.Event) {
			if event.All {
				refreshed++
			}
		})
		ownedBy := func(uid string) {
			t.Helper()
			heartbeat := &hubv1alpha1.Heartbeat{}
			check.Must(t, p.hub.Get(t.Context(), client.ObjectKeyFromObject(own), heartbeat))
			heartbeat.Spec.ClusterUID = uid
			check.Must(t, p.hub.Update(t.Context(), heartbeat))
			p.take(t)
		}
		ownedBy("another")
		check.Equal(t, "may use its ID with the heartbeat of another cluster", false, p.Allowed())
		ownedBy("")
		p.update(p.Store.Heartbeat(p.Cluster), "")
		check.Equal(t, "lists of services after the heartbeat of another cluster has come and gone", 1, refreshed)
		p.update(p.Store.Heartbeat(p.Cluster), "")
		check.Equal(t, "lists of services after nothing has changed", 1, refreshed)
	})
}
