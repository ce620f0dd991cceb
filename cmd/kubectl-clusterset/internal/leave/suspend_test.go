// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package leave

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/internal/check"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestSuspensionLimit: the limit depends on the slowest heartbeat, up to a maximum.
func TestSuspensionLimit(t *testing.T) {
	for name, test := range map[string]struct {
		intervals map[clusterset.ClusterID]time.Duration
		want      time.Duration
	}{
		"default":  {map[clusterset.ClusterID]time.Duration{"a": 10 * time.Second}, 30 * time.Second},
		"slowest":  {map[clusterset.ClusterID]time.Duration{"a": time.Second, "b": 15 * time.Second}, 45 * time.Second},
		"too slow": {map[clusterset.ClusterID]time.Duration{"a": time.Hour}, time.Minute},
	} {
		check.Equal(t, name, test.want, suspensionLimit(test.intervals))
	}
}

// beats are heartbeats by cluster, with their versions.
type beats map[clusterset.ClusterID]string

// Heartbeat returns the heartbeat of a cluster.
func (b beats) Heartbeat(id clusterset.ClusterID) *hubv1alpha1.Heartbeat {
	version, known := b[id]
	if !known {
		return nil
	}
	return &hubv1alpha1.Heartbeat{ObjectMeta: metav1.ObjectMeta{Namespace: id.HubNamespace(), Name: hubv1alpha1.HeartbeatName, ResourceVersion: version}}
}

func (b beats) list() []hubv1alpha1.Heartbeat {
	var result []hubv1alpha1.Heartbeat
	for id := range b {
		result = append(result, *b.Heartbeat(id))
	}
	return result
}

// TestUnanswered: a member has answered if its Heartbeat has changed, or does not exist because the member has left.
func TestUnanswered(t *testing.T) {
	before := beats{"a": "1", "b": "2", "c": "3", "other": "4"}
	awaited := map[clusterset.ClusterID]time.Duration{"a": 1, "b": 2, "c": 3}
	for name, test := range map[string]struct {
		now  beats
		want map[clusterset.ClusterID]time.Duration
	}{
		"no member":        {before, awaited},
		"renewed and left": {beats{"a": "1", "b": "5", "other": "4"}, map[clusterset.ClusterID]time.Duration{"a": 1}},
		"all":              {beats{"a": "6", "b": "5", "c": "7", "other": "4"}, map[clusterset.ClusterID]time.Duration{}},
	} {
		check.Equal(t, name, test.want, unanswered(awaited, before, test.now.list()))
	}
}
