// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/tombolo-mcs/tombolo/e2e/framework/background"
)

// TestWrongAnswersAreFound: the demo is worth nothing if it is content with any answer.
func TestWrongAnswersAreFound(t *testing.T) {
	t.Parallel()
	m := &member{name: "cluster-b", dns: serveZone(t,
		"web.demo.svc.clusterset.local. 5 IN A 10.0.0.1",
		"_http._tcp.web.demo.svc.clusterset.local. 5 IN SRV 0 100 80 web.demo.svc.clusterset.local.",
	)}
	web, srv := question{fqdn("web"), dns.TypeA}, question{fqdn("_http._tcp.web"), dns.TypeSRV}
	for name, tc := range map[string]struct {
		q     question
		want  answer
		error string
	}{
		"right":         {web, records("10.0.0.1"), ""},
		"right SRV":     {srv, records("80 web.demo.svc.clusterset.local"), ""},
		"right absence": {question{fqdn("db"), dns.TypeA}, nameError, ""},
		"another address": {
			web, records("10.0.0.2"),
			"not as it should be: DNS in cluster-b, asked for A    web.demo.svc.clusterset.local\n  expected: 10.0.0.2\n  answered: 10.0.0.1",
		},
		"one address too few": {
			web, records("10.0.0.2", "10.0.0.1"),
			"not as it should be: DNS in cluster-b, asked for A    web.demo.svc.clusterset.local\n  expected: 10.0.0.1, 10.0.0.2\n  answered: 10.0.0.1",
		},
		"still there": {
			web, nameError,
			"not as it should be: DNS in cluster-b, asked for A    web.demo.svc.clusterset.local\n  expected: NXDOMAIN\n  answered: 10.0.0.1",
		},
		"another port": {
			srv, records("8080 web.demo.svc.clusterset.local"),
			"not as it should be: DNS in cluster-b, asked for SRV  _http._tcp.web.demo.svc.clusterset.local\n" +
				"  expected: 8080 web.demo.svc.clusterset.local\n  answered: 80 web.demo.svc.clusterset.local",
		},
		"no such name": {
			question{fqdn("db"), dns.TypeA},
			records("10.0.0.1"),
			"not as it should be: DNS in cluster-b, asked for A    db.demo.svc.clusterset.local\n  expected: 10.0.0.1\n  answered: NXDOMAIN",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var err error
			for atMost := time.Second; atMost < time.Minute; atMost *= 2 { // a busy machine may give no answer at all at first
				if err = m.expectDNS(t.Context(), tc.q, tc.want, atMost); err == nil || errors.Is(err, errWrong) {
					break
				}
			}
			got := ""
			if err != nil {
				got = err.Error()
			}
			if got != tc.error {
				t.Errorf("error:\n%s\nwant:\n%s", got, tc.error)
			}
		})
	}
}

func TestInterruptedQuestion(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	stop(background.ErrInterrupted)
	m := &member{dns: "127.0.0.1:1"}
	if err := m.expectDNS(ctx, question{fqdn("web"), dns.TypeA}, nameError, time.Minute); !errors.Is(err, background.ErrInterrupted) {
		t.Errorf("error %v, want %v", err, background.ErrInterrupted)
	}
}

// serveZone serves these records, and says of all other names that they do not exist. It returns the address.
func serveZone(t *testing.T, zone ...string) string {
	t.Helper()
	conn, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		reply := new(dns.Msg).SetRcode(r, dns.RcodeNameError)
		for _, text := range zone {
			record, err := dns.NewRR(text)
			if err != nil {
				t.Error(err)
			} else if record.Header().Name == r.Question[0].Name {
				reply.Rcode = dns.RcodeSuccess
				reply.Answer = append(reply.Answer, record)
			}
		}
		if err := w.WriteMsg(reply); err != nil {
			t.Error(err)
		}
	})}
	go func() { _ = server.ActivateAndServe() }() // ends with the socket
	t.Cleanup(func() {
		if server.Shutdown() != nil { // which lets it answer what it was asked; an error says that it had not begun
			_ = conn.Close()
		}
	})
	return conn.LocalAddr().String()
}
