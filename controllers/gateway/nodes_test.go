// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// Only changes of the addresses of nodes matter, and the cache keeps nothing else of them. spec: G4
func TestNodeChanges(t *testing.T) {
	t.Parallel()
	node := func(heartbeat time.Time, addresses ...string) *corev1.Node {
		result := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "1", Labels: map[string]string{"l": "v"}}}
		result.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.NewTime(heartbeat)}}
		for _, address := range addresses {
			result.Status.Addresses = append(result.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeExternalIP, Address: address})
		}
		return result
	}
	before := node(time.Unix(1, 0), "198.51.100.1")
	for name, test := range map[string]struct {
		after *corev1.Node
		want  bool
	}{
		"a heartbeat":        {node(time.Unix(2, 0), "198.51.100.1"), false},
		"another address":    {node(time.Unix(2, 0), "198.51.100.2"), true},
		"a further address":  {node(time.Unix(2, 0), "198.51.100.1", "198.51.100.2"), true},
		"no address anymore": {node(time.Unix(2, 0)), true},
	} {
		check.Equal(t, name, test.want, addressChanges().Update(event.TypedUpdateEvent[*corev1.Node]{ObjectOld: before, ObjectNew: test.after}))
	}
	compact, err := CompactNode(before)
	check.Must(t, err)
	check.Equal(t, "the node in the cache", &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: "1"}, Status: corev1.NodeStatus{Addresses: before.Status.Addresses},
	}, compact.(*corev1.Node))
}
