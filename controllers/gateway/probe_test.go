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

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// A gateway is not used after three failed probes in a row, and used again after one that succeeds. spec: G8
func TestCount(t *testing.T) {
	const one, two = "10.9.0.1", "10.9.0.2"
	gateways := []clusterset.Slice{{AddressType: "IPv4", Endpoints: []clusterset.Endpoint{{Addresses: []string{one}}, {Addresses: []string{two}}}}}
	p := &Prober{Reach: &reach.Reach{}}
	both := sets.New(one, two)
	answering := func(failed []string) map[string]answer {
		result := map[string]answer{}
		for address := range both.Difference(sets.New(failed...)) {
			result[address] = answer{}
		}
		return result
	}
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
		p.count(both, answering(step.failed))
		usable, _ := p.Reach.Seen().Usable(gateways, "b")
		var got []string
		for _, endpoint := range usable[0].Endpoints {
			got = append(got, endpoint.Addresses...)
		}
		check.Equal(t, fmt.Sprintf("step %d", i), step.want, strings.Join(got, " "))
	}
}

// A gateway that has answered keeps its ports during two failed probes, and until it is not ready any more: then another one may have its
// address. spec: G8
func TestLastAnswer(t *testing.T) {
	const address = "10.9.0.1"
	owner := ports.Owner{Cluster: "b", Port: 80}
	gateways := []clusterset.Slice{{AddressType: "IPv4", Endpoints: []clusterset.Endpoint{{Addresses: []string{address}}, {Addresses: []string{"10.9.0.2"}}}}}
	both := sets.New(address, "10.9.0.2")
	open := answer{tag: `"1"`, open: ports.Open{ports.First: ports.DigestOf(owner)}}
	p := &Prober{Reach: &reach.Reach{}}
	for i, step := range []struct {
		probed sets.Set[string]
		failed bool
		want   bool
	}{
		{both, true, false},
		{both, false, true},
		{both, true, true},
		{both, true, true},
		{both, true, false},
		{both, false, true},
		{sets.New("10.9.0.2"), true, false},
		{both, true, false},
	} {
		answers := map[string]answer{"10.9.0.2": {tag: `"2"`, open: ports.Open{}}}
		if !step.failed {
			answers[address] = open
		}
		p.count(step.probed, answers)
		closed, _ := p.Reach.Seen().Closed(gateways, map[ports.Owner]int32{owner: ports.First}, nil)
		check.Equal(t, fmt.Sprintf("step %d: the gateway is known to listen", i), step.want, !closed.Has(address, ports.First))
	}
}

// A gateway fails a probe if it says that it is not ready, does not answer, or answers with what is no list of ports. An answer without a
// tag is the tag of an older gateway. The list of ports is sent only if it has changed. spec: G8
func TestAnswers(t *testing.T) {
	opened := ports.Open{ports.First: ports.DigestOf(ports.Owner{Cluster: "b", Port: 80})}
	var serve func(http.ResponseWriter, *http.Request)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { serve(w, r) }))
	address := netip.MustParseAddrPort(server.Listener.Addr().(*net.TCPAddr).String())
	p := &Prober{Port: int(address.Port()), Reach: &reach.Reach{}}
	tagged := func(tag, text string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("ETag", tag)
			if r.Header.Get("If-None-Match") == tag {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			_, _ = w.Write([]byte(text))
		}
	}
	for _, test := range []struct {
		name  string
		serve func(http.ResponseWriter, *http.Request)
		want  *answer
	}{
		{"older", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok")) }, &answer{}},
		{"with ports", tagged(`"1"`, string(opened.Encode())), &answer{tag: `"1"`, open: opened}},
		{"the same ports", tagged(`"1"`, "this is not sent"), &answer{tag: `"1"`, open: opened}},
		{"no port", tagged(`"2"`, ""), &answer{tag: `"2"`, open: ports.Open{}}},
		{"no list of ports", tagged(`"3"`, "ok"), nil},
		{"too many ports", tagged(`"4"`, strings.Repeat("1", ports.MaxOpenText+1)), nil},
		{"not modified without a tag", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotModified) }, nil},
		{"not ready", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, nil},
		{"no answer", nil, nil},
	} {
		if serve = test.serve; serve == nil {
			server.Close()
		}
		answers := p.answers(t.Context(), []string{address.Addr().String()})
		p.count(sets.New(address.Addr().String()), answers)
		got, ok := answers[address.Addr().String()]
		switch {
		case ok != (test.want != nil):
			t.Errorf("%s: an answer is valid: %t", test.name, ok)
		case ok:
			check.Equal(t, test.name+": tag", test.want.tag, got.tag)
			check.Equal(t, test.name+": ports", test.want.open, got.open)
		}
	}
}
