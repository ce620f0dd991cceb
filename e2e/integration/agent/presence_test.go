// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestPublicationReportedAtOnce: a member reports a complete publication, and up to which versions it is complete, without waiting for
// the next regular heartbeat; again if the hub loses the heartbeat or a record.
//
// spec: E3
func TestPublicationReportedAtOnce(t *testing.T) {
	t.Parallel()
	w := newPair(t)
	a := w.members["a"]
	k := key{Namespace: world.Namespace(t, a), Name: "web"}
	a.ExportWeb(t, k, "10.1.0.1")
	a.Start(t, func(o *agent.Options) { o.HeartbeatInterval = 5 * time.Minute })
	heartbeat := &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: hubv1alpha1.HeartbeatName}}
	record := &hubv1alpha1.PublishedService{ObjectMeta: metav1.ObjectMeta{Namespace: "member-a", Name: k.Namespace + "." + k.Name}}
	for _, lost := range []client.Object{nil, heartbeat, record} {
		if lost != nil {
			lab.Must(t, w.HubClient.Delete(t.Context(), lost.DeepCopyObject().(client.Object)))
		}
		world.Eventually(t, func(ctx context.Context) error {
			err := errors.Join(
				w.HubClient.Get(ctx, client.ObjectKeyFromObject(record), record), w.HubClient.Get(ctx, client.ObjectKeyFromObject(heartbeat), heartbeat))
			if got := heartbeat.Spec; err == nil && (got.Publication != hubv1alpha1.PublicationComplete ||
				got.ServicesVersion != record.ResourceVersion || got.EndpointsVersion == "") {
				err = fmt.Errorf("after the loss of %T: the heartbeat says %+v of record %s", lost, got, record.ResourceVersion)
			}
			return err
		})
	}
}
