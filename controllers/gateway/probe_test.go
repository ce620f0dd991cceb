// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/tombolo-mcs/tombolo/e2e/framework/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/reach"
)

// A gateway is not used after three failed probes in a row, and used again after one that succeeds. spec: G8
func TestCount(t *testing.T) {
	const one, two = "10.9.0.1", "10.9.0.2"
	gateways := []clusterset.Slice{{AddressType: "IPv4", Endpoints: []clusterset.Endpoint{{Addresses: []string{one}}, {Addresses: []string{two}}}}}
	p := &Prober{Reach: &reach.Reach{}}
	both := sets.New(one, two)
	for i, step := range []struct {
		failed []string
		want   string
	}{
		{[]string{one}, one + " " + two},
		{[]string{one}, one + " " + two},
		{[]string{one}, two},
		{[]string{one}, two},
		{nil, one + " " + two},
		{[]string{one}, one + " " + two},
	} {
		p.count(both, sets.New(step.failed...))
		usable, _ := p.Reach.Usable(gateways, "b")
		var got []string
		for _, endpoint := range usable[0].Endpoints {
			got = append(got, endpoint.Addresses...)
		}
		check.Equal(t, fmt.Sprintf("step %d", i), step.want, strings.Join(got, " "))
	}
}

// A gateway fails a probe if it says that it is not ready, or does not answer. spec: G8
func TestFailed(t *testing.T) {
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/readyz" {
			w.WriteHeader(status)
		}
	}))
	address := netip.MustParseAddrPort(server.Listener.Addr().(*net.TCPAddr).String())
	p := &Prober{Port: int(address.Port())}
	for _, test := range []struct {
		name   string
		change func()
		want   bool
	}{
		{"ready", func() {}, false},
		{"not ready", func() { status = http.StatusInternalServerError }, true},
		{"no answer", server.Close, true},
	} {
		test.change()
		if got := p.failed(t.Context(), []string{address.Addr().String()}); got.Len() == 1 != test.want {
			t.Errorf("%s: failed %v", test.name, got)
		}
	}
}
