// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
)

// TestAgentLease: a heartbeat is that of a cluster if the process that holds its Lease, or held it last, has sent it. A Lease of a snapshot can
// name that process too, but is older. A cluster is reported as a copy only if that is known.
//
// spec: K2
func TestAgentLease(t *testing.T) {
	t.Parallel()
	const interval = 10 * time.Second
	for name, test := range map[string]struct {
		nonce        string // of the heartbeat
		age          time.Duration
		lease        AgentLease
		isLast, copy bool
	}{
		"the member":                     {"a", 8 * time.Second, AgentLease{"a", time.Second, time.Hour}, true, false},
		"the member, just restarted":     {"a", 8 * time.Second, AgentLease{"b", time.Second, 5 * time.Second}, false, false},
		"the member, its agent stopped":  {"a", time.Hour, AgentLease{"a", time.Hour, time.Hour}, true, false},
		"the member without the hub":     {"a", time.Hour, AgentLease{"b", time.Second, time.Hour}, false, false},
		"a copy":                         {"a", 8 * time.Second, AgentLease{"b", time.Second, time.Hour}, false, true},
		"a copy without an agent":        {"a", 8 * time.Second, AgentLease{"a", time.Minute, time.Hour}, false, false},
		"a copy of a member that is off": {"a", time.Hour, AgentLease{"a", 24 * time.Hour, time.Hour}, false, false},
		"a copy with an older agent":     {"a", 8 * time.Second, AgentLease{"", time.Second, time.Hour}, false, false},
		"an older member":                {"", 8 * time.Second, AgentLease{"b", time.Second, time.Hour}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			beat := &hubv1alpha1.Heartbeat{Spec: hubv1alpha1.HeartbeatSpec{Nonce: test.nonce}}
			check.Equal(t, "the heartbeat is its own", test.isLast, test.lease.IsLast(beat, test.age))
			check.Equal(t, "it is known to be a copy", test.copy, test.lease.isOfCopy(beat, LastHeartbeat{test.age, interval, true, false}))
		})
	}
	var none *AgentLease
	check.Equal(t, "without a Lease", false, none.isOfCopy(&hubv1alpha1.Heartbeat{Spec: hubv1alpha1.HeartbeatSpec{Nonce: "a"}}, LastHeartbeat{0, interval, true, false}))
}
