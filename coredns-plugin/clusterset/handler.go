// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"context"
	"strings"
	"sync/atomic"

	"github.com/coredns/coredns/plugin"
	"github.com/coredns/coredns/plugin/pkg/fall"
	clog "github.com/coredns/coredns/plugin/pkg/log"
	"github.com/coredns/coredns/request"
	"github.com/miekg/dns"

	"github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset/internal/zone"
)

const name = "clusterset"

var log = clog.NewWithPlugin(name)

// Clusterset answers for the zones of a clusterset.
type Clusterset struct {
	Next plugin.Handler
	Fall fall.F

	zones     []*zone.Zone
	publisher *publisher
	crdAbsent atomic.Bool // the API server does not serve ServiceImports
}

// Name returns "clusterset". It implements plugin.Handler.
func (*Clusterset) Name() string { return name }

// ServeDNS answers queries for the plugin's zones and passes all others to the next plugin. It implements plugin.Handler.
func (c *Clusterset) ServeDNS(ctx context.Context, w dns.ResponseWriter, r *dns.Msg) (int, error) {
	if len(r.Question) == 0 {
		return plugin.NextOrFailure(c.Name(), c.Next, ctx, w, r)
	}
	state := request.Request{W: w, Req: r}
	// As request.Name, but without escaping again: miekg/dns has escaped the name when it read the message.
	lower := strings.ToLower(r.Question[0].Name)
	z := c.zoneOf(lower)
	if z == nil {
		return plugin.NextOrFailure(c.Name(), c.Next, ctx, w, r)
	}
	switch {
	case r.Opcode != dns.OpcodeQuery:
		return dns.RcodeNotImplemented, nil
	case state.QClass() != dns.ClassINET && state.QClass() != dns.ClassANY,
		state.QType() == dns.TypeAXFR, state.QType() == dns.TypeIXFR: // plugin transfer handles those that it allows
		return dns.RcodeRefused, nil
	case !c.publisher.synced.Load():
		// Not written here, so that no cache stores it, and not passed to the next plugin, because the name may exist (spec N8).
		return dns.RcodeServerFailure, nil
	}
	found, exists := z.Find(lower, state.QType())
	if !exists && c.Fall.Through(lower) {
		return plugin.NextOrFailure(c.Name(), c.Next, ctx, w, r)
	}
	m := new(dns.Msg)
	m.SetReply(r)
	m.Authoritative = true
	switch {
	case !exists:
		m.Rcode = dns.RcodeNameError
		m.Ns = z.SOA().Rotated()
	case found == nil || found.Count == 0:
		m.Ns = z.SOA().Rotated()
	default:
		fill(m, &state, found)
	}
	if err := w.WriteMsg(m); err != nil {
		return dns.RcodeServerFailure, plugin.Error(c.Name(), err)
	}
	return m.Rcode, nil
}

// fill adds an answer to the reply: with its owner in the case of the question, and with the additional section if it fits.
func fill(m *dns.Msg, state *request.Request, found *zone.Answer) {
	m.Answer = found.Rotated()
	if asked := state.Req.Question[0].Name; m.Answer[0].Header().Name != asked {
		m.Answer = zone.Owned(m.Answer, asked)
	}
	if len(found.Additional) == 0 {
		return
	}
	size := state.Size()
	if opt := state.Req.IsEdns0(); opt != nil {
		size -= dns.Len(opt)
	}
	if found.Fits(size) {
		m.Extra = found.Additional[:len(found.Additional):len(found.Additional)]
	}
}

// zoneOf returns the longest of the zones that contain a name in lower case, nil if none does.
func (c *Clusterset) zoneOf(lower string) *zone.Zone {
	var longest *zone.Zone
	for _, z := range c.zones {
		if z.Contains(lower) && (longest == nil || len(z.Name) > len(longest.Name)) {
			longest = z
		}
	}
	return longest
}
