// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"context"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/tombolo-mcs/tombolo/controllers/agent"
	"github.com/tombolo-mcs/tombolo/internal/check"
)

// TestProfile: profiles are served only on their own address, also if no cluster is reachable.
func TestProfile(t *testing.T) {
	t.Parallel()
	free := freeAddresses(t, 4)
	metrics, probes, profile := free[0], free[1], free[2]
	unreachable := &rest.Config{Host: "https://" + free[3]}
	options := agent.Options{
		Member: unreachable, Hub: unreachable, ClusterID: "a", Election: agent.RunAlone, Workers: 1, HeartbeatInterval: time.Second, AbsentTimeout: time.Hour,
		MetricsAddress: metrics, ProbeAddress: probes, Log: logr.Discard(),
	}
	const asked = "/debug/pprof/cmdline"
	for name, where := range map[string]string{"off": "", "off by zero": "0", "on": profile} {
		options.ProfileAddress = where
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- agent.Run(ctx, options) }()
		await(t, metrics, "/metrics", http.StatusOK)
		await(t, probes, "/healthz", http.StatusOK)
		if where == profile {
			await(t, profile, asked, http.StatusOK)
			await(t, profile, "/metrics", http.StatusNotFound)
		} else if c, err := new(net.Dialer).DialContext(ctx, "tcp", profile); err == nil {
			t.Errorf("%s: a server listens: %v", name, c.Close())
		}
		await(t, metrics, asked, http.StatusNotFound)
		await(t, probes, asked, http.StatusNotFound)
		stop()
		if err := <-ended; err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// await waits until a request is answered with a code.
func await(t *testing.T, address, path string, code int) {
	t.Helper()
	last := 0
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
		if err != nil {
			return false, err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // nothing listens yet
		}
		last = response.StatusCode
		return last == code, response.Body.Close()
	})
	if err != nil {
		t.Fatalf("%s%s: %d, want %d: %v", address, path, last, code, err)
	}
}

// freeAddresses returns different addresses on which nothing listens.
func freeAddresses(t *testing.T, n int) []string {
	t.Helper()
	addresses := make([]string, n)
	for i := range addresses {
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
		check.Must(t, err)
		defer l.Close() //nolint:gocritic // when all are found
		addresses[i] = l.Addr().String()
	}
	return addresses
}
