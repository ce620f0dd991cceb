// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// tellSizes says how large the records are as the hub sends them: what docs/performance.md reckons with.
func (r *restartRun) tellSizes(ctx context.Context) error {
	at := client.ObjectKey{Namespace: r.w.members[0].id.HubNamespace(), Name: hubv1alpha1.HeartbeatName}
	for _, one := range []struct {
		what   string
		key    client.ObjectKey
		object client.Object
	}{
		{"a PublishedService", client.ObjectKeyFromObject(r.subjects[0].record), &hubv1alpha1.PublishedService{}},
		{fmt.Sprintf("PublishedEndpoints of %d endpoints", perSlice), client.ObjectKeyFromObject(r.subjects[0].endpoints), &hubv1alpha1.PublishedEndpoints{}},
		{"a Heartbeat", at, &hubv1alpha1.Heartbeat{}},
	} {
		if err := r.w.hubKube.Get(ctx, one.key, one.object); err != nil {
			return err
		}
		content, err := json.Marshal(one.object)
		if err != nil {
			return err
		}
		r.say("on the hub, %s: %d bytes", one.what, len(content))
	}
	return nil
}
