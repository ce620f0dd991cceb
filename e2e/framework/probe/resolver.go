// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// ednsSize is how large an answer over UDP may be, in bytes: what avoids fragments (https://www.dnsflagday.net/2020/).
const ednsSize = 1232

// resolver looks names up with one question for each name and type: see the package's comment.
type resolver struct {
	resolvConf string
	timeout    time.Duration
}

// configOf returns what resolv.conf says. Having no nameserver is an error.
func configOf(resolvConf string) (*dns.ClientConfig, error) {
	config, err := dns.ClientConfigFromFile(resolvConf)
	if err != nil {
		return nil, err
	}
	if len(config.Servers) == 0 {
		return nil, fmt.Errorf("%s names no nameserver", resolvConf)
	}
	// The root as a search domain adds nothing to a name but an empty label.
	config.Search = slices.DeleteFunc(config.Search, func(domain string) bool { return domain == "." })
	return config, nil
}

// serverOf returns the address of the first nameserver, as HOST:PORT. A line of resolv.conf has no port; those that the
// tests write have one.
func serverOf(config *dns.ClientConfig) string {
	first := config.Servers[0]
	if _, err := netip.ParseAddrPort(first); err == nil {
		return first
	}
	return net.JoinHostPort(first, config.Port)
}

// lookup returns the address to dial for a host: itself if it is one, else the first address of its name.
func (r resolver) lookup(ctx context.Context, host string, types []uint16) (netip.Addr, error) {
	if address, err := netip.ParseAddr(host); err == nil {
		return address, nil
	}
	config, err := configOf(r.resolvConf)
	if err != nil {
		return netip.Addr{}, err
	}
	client := &dns.Client{Net: "udp", Timeout: r.timeout}
	names := config.NameList(host)
	for _, name := range names {
		for _, kind := range types {
			reply, err := exchange(ctx, client, serverOf(config), name, kind)
			if err != nil {
				return netip.Addr{}, fmt.Errorf("lookup %s %s: %w", name, dns.TypeToString[kind], err)
			}
			if address, ok := firstAddress(reply); ok {
				return address, nil
			}
			if reply.Rcode != dns.RcodeSuccess && reply.Rcode != dns.RcodeNameError {
				return netip.Addr{}, fmt.Errorf("lookup %s %s: %s", name, dns.TypeToString[kind], dns.RcodeToString[reply.Rcode])
			}
			if reply.Truncated {
				return netip.Addr{}, fmt.Errorf("lookup %s %s: the answer is truncated and has no address", name, dns.TypeToString[kind])
			}
		}
	}
	return netip.Addr{}, fmt.Errorf("lookup %s: no address: asked for %s", host, strings.Join(names, ", "))
}

// exchange sends one question once and returns its reply.
func exchange(ctx context.Context, client *dns.Client, server, name string, kind uint16) (*dns.Msg, error) {
	question := new(dns.Msg)
	question.SetQuestion(name, kind)
	question.SetEdns0(ednsSize, false)
	reply, _, err := client.ExchangeContext(ctx, question, server)
	return reply, err
}

func firstAddress(reply *dns.Msg) (netip.Addr, bool) {
	for _, record := range reply.Answer {
		var address netip.Addr
		switch r := record.(type) {
		case *dns.A:
			address, _ = netip.AddrFromSlice(r.A)
		case *dns.AAAA:
			address, _ = netip.AddrFromSlice(r.AAAA)
		}
		if address.IsValid() {
			return address.Unmap(), true
		}
	}
	return netip.Addr{}, false
}
