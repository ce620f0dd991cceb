// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/manifests"
)

// The flood: so many requests of one member at a time, more than the 600 that its six queues take. An API server accepts 100 requests on
// a connection.
const floodConnections, perConnection = 10, 95

// TestPriority: the API server serves the members' requests at the level of the hub's manifests. A member that floods it is refused
// requests, and meanwhile none of another member, of another account or of the administrator is.
func TestPriority(t *testing.T) {
	h := start(t, "--max-requests-inflight=10", "--max-mutating-requests-inflight=10")
	h.a = h.join(t, manifests.MemberOptions{ClusterID: "a", PodCIDRs: prefixes("10.1.0.0/16")})
	h.b = h.join(t, manifests.MemberOptions{ClusterID: "b", PodCIDRs: prefixes("10.2.0.0/16")})

	name := world.Key{Name: "members.hub.tombolo-mcs.io"}
	schema := world.Read(t, h.admin, name, &flowcontrolv1.FlowSchema{})
	level := world.Read(t, h.admin, name, &flowcontrolv1.PriorityLevelConfiguration{})
	const group = "/apis/hub.tombolo-mcs.io/v1alpha1"
	own := group + "/namespaces/" + h.a.namespace
	for what, sent := range map[string]request{
		"list":      {http.MethodGet, group + "/publishedservices"},
		"watch":     {http.MethodGet, group + "/heartbeats?watch=true&timeoutSeconds=1"},
		"own beat":  {http.MethodGet, own + "/heartbeats/heartbeat"},
		"own write": {http.MethodPost, own + "/publishedservices"},
		"own token": {http.MethodPost, "/api/v1/namespaces/" + h.a.namespace + "/serviceaccounts/tombolo-agent/token"},
	} {
		_, header := h.a.send(t, sent)
		gotSchema, gotLevel := header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID), header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID)
		if gotSchema != string(schema.UID) || gotLevel != string(level.UID) {
			t.Errorf("%s: FlowSchema %q and level %q, want %q and %q", what, gotSchema, gotLevel, schema.UID, level.UID)
		}
	}

	refused, stop := h.a.flood(t, request{http.MethodGet, group + "/publishedservices"})
	defer stop()
	lab.Holds(t, world.Within, "refusals: the API server serves the whole flood", func() bool { return refused.Load() >= 50 })
	other, administrator := h.otherAccount(t), &member{config: h.cluster.Config()}
	for who, test := range map[string]struct {
		from *member
		sent request
	}{
		"the other member":           {h.b, request{http.MethodGet, group + "/publishedservices"}},
		"the other member's agent":   {h.b, request{http.MethodGet, group + "/namespaces/member-b/heartbeats/heartbeat"}},
		"another account":            {other, request{http.MethodGet, "/api/v1/namespaces/default/configmaps"}},
		"the administrator":          {administrator, request{http.MethodGet, "/api/v1/namespaces"}},
		"the administrator, Members": {administrator, request{http.MethodGet, group + "/members"}},
	} {
		before := refused.Load()
		for range 10 {
			if status, _ := test.from.send(t, test.sent); status == http.StatusTooManyRequests {
				t.Errorf("%s is refused", who)
			}
		}
		t.Logf("%s: 10 requests, while %d of the flood were refused", who, refused.Load()-before)
	}
}

// request is a method and a path. Its body is an empty object.
type request struct{ method, path string }

// send sends a request on a connection of its own, and returns status and header of the response.
func (m *member) send(t *testing.T, r request) (int, http.Header) {
	t.Helper()
	status, header, err := r.sendTo(t.Context(), m.connection(t), m.config.Host)
	lab.Must(t, err)
	return status, header
}

func (r request) sendTo(ctx context.Context, connection *http.Client, host string) (int, http.Header, error) {
	sent, err := http.NewRequestWithContext(ctx, r.method, host+r.path, strings.NewReader("{}"))
	if err != nil {
		return 0, nil, err
	}
	sent.Header.Set("Content-Type", "application/json")
	response, err := connection.Do(sent)
	if err != nil {
		return 0, nil, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, response.Header, errors.Join(err, response.Body.Close())
}

// connection returns a client that shares no connection with others: those with a proxy function do not.
func (m *member) connection(t *testing.T) *http.Client {
	t.Helper()
	config := rest.CopyConfig(m.config)
	config.Proxy, config.Timeout = http.ProxyFromEnvironment, time.Minute
	c, err := rest.HTTPClientFor(config)
	lab.Must(t, err)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// flood sends as many requests at a time as the constants say until stop, and counts those that the API server refuses with 429.
func (m *member) flood(t *testing.T, sent request) (refused *atomic.Int64, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	refused = &atomic.Int64{}
	var running sync.WaitGroup
	for range floodConnections {
		connection := m.connection(t)
		for range perConnection {
			running.Go(func() {
				for ctx.Err() == nil {
					if status, _, _ := sent.sendTo(ctx, connection, m.config.Host); status == http.StatusTooManyRequests {
						refused.Add(1)
					}
				}
			})
		}
	}
	return refused, sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
}

// otherAccount returns a ServiceAccount that is no member.
func (h *hub) otherAccount(t *testing.T) *member {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "other"}}
	lab.Must(t, h.admin.Create(t.Context(), account))
	config, err := h.cluster.ServiceAccountConfig(t.Context(), account.Namespace, account.Name)
	lab.Must(t, err)
	return &member{config: config}
}
