// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ceiling is a CoreDNS plugin that does nothing but hand out one answer for each type of question: no plugin with
// answers of that size can be faster. Its Corefile is
//
//	ceiling ADDRESS NAME...
//
// It asks the server at ADDRESS for each NAME, A and SRV, when it starts, and gives back what that one said.
package ceiling

import (
	"context"
	"fmt"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	"github.com/miekg/dns"
)

func init() { plugin.Register("ceiling", setup) }

func setup(c *caddy.Controller) error {
	c.Next()
	args := c.RemainingArgs()
	if len(args) < 2 {
		return plugin.Error("ceiling", c.ArgErr())
	}
	answers := map[dns.Question]*dns.Msg{}
	for _, name := range args[1:] {
		for _, kind := range []uint16{dns.TypeA, dns.TypeSRV} {
			m := new(dns.Msg)
			m.SetQuestion(name, kind)
			reply, _, err := (&dns.Client{Net: "tcp"}).Exchange(m, args[0])
			if err != nil {
				return plugin.Error("ceiling", fmt.Errorf("ask %s for %s: %w", args[0], name, err))
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
func (h handler) Name() string { return "ceiling" }

// ServeDNS gives back the constant answer.
func (h handler) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	constant, ok := h.answers[r.Question[0]]
	if !ok {
		return plugin.NextOrFailure(h.Name(), h.next, ctx, w, r)
	}
	m := new(dns.Msg)
	m.SetReply(r)
	m.Authoritative = true
	m.Rcode, m.Answer, m.Ns, m.Extra = constant.Rcode, constant.Answer, constant.Ns, constant.Extra
	return dns.RcodeSuccess, w.WriteMsg(m)
}
