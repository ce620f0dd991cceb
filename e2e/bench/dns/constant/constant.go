// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package constant is a CoreDNS plugin that returns one constant answer for each question: no plugin with answers of that
// size can be faster. Its Corefile is
//
//	constant ADDRESS NAME...
//
// When it starts, it sends questions for A and SRV of each NAME to the server at ADDRESS, and stores the answers.
package constant

import (
	"context"
	"fmt"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
)

func init() { plugin.Register("constant", setup) }

func setup(c *caddy.Controller) error {
	c.Next()
	args := c.RemainingArgs()
	if len(args) < 2 {
		return plugin.Error("constant", c.ArgErr())
	}
	answers := map[dns.Question]*dns.Msg{}
	for _, name := range args[1:] {
		for _, kind := range []uint16{dns.TypeA, dns.TypeSRV} {
			m := new(dns.Msg)
			m.SetQuestion(name, kind)
			reply, _, err := (&dns.Client{Net: "tcp"}).Exchange(m, args[0])
			if err != nil {
				return plugin.Error("constant", fmt.Errorf("ask %s for %s: %w", args[0], name, err))
			}
			answers[m.Question[0]] = reply
		}
	}
	dnsserver.GetConfig(c).AddPlugin(func(next plugin.Handler) plugin.Handler { return handler{answers, next} })
	return nil
}

type handler struct {
	answers map[dns.Question]*dns.Msg
	next    plugin.Handler
}

// Name returns the name of the plugin in a Corefile.
func (h handler) Name() string { return "constant" }

// ServeDNS returns the constant answer.
func (h handler) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	answer, ok := h.answers[r.Question[0]]
	if !ok {
		return plugin.NextOrFailure(h.Name(), h.next, ctx, w, r)
	}
	m := new(dns.Msg)
	m.SetReply(r)
	m.Authoritative = true
	m.Rcode, m.Answer, m.Ns, m.Extra = answer.Rcode, answer.Answer, answer.Ns, answer.Extra
	return dns.RcodeSuccess, w.WriteMsg(m)
}
