// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package memberdns

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/miekg/dns"
)

// Zone is the DNS zone of the clusterset (KEP-1645).
const Zone = "clusterset.local"

// Resolver is a DNS server of a member.
type Resolver interface {
	fmt.Stringer
	// Exchange sends a query and returns the response.
	Exchange(ctx context.Context, question *dns.Msg) (*dns.Msg, error)
}

// Timeout is the timeout of a query, as resolvers in pods have it.
const Timeout = 5 * time.Second

// Server returns a Resolver that queries the DNS server at an address over TCP, so that answers are not truncated.
func Server(address string) Resolver { return server(address) }

type server string

// String returns the address.
func (s server) String() string { return string(s) }

// Exchange queries the server.
func (s server) Exchange(ctx context.Context, question *dns.Msg) (*dns.Msg, error) {
	client := &dns.Client{Net: "tcp", Timeout: Timeout}
	reply, _, err := client.ExchangeContext(ctx, question, string(s))
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("no answer within %s", Timeout)
	}
	return reply, err
}
