// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"errors"
	"slices"
	"strings"

	"github.com/coredns/coredns/plugin/transfer"
	"github.com/miekg/dns"

	"github.com/tombolo-mcs/tombolo/coredns-plugin/clusterset/internal/zone"
)

// errUnsynced makes plugin transfer answer SERVFAIL.
var errUnsynced = errors.New("not all objects have been read from the API server yet")

// Transfer sends all records of a zone, service by service. A secondary with the current serial number gets only the SOA record,
// others the whole zone (RFC 1995, section 4). The error is transfer.ErrNotAuthoritative for other zones, and errUnsynced before the
// first publication. It implements the interface of the transfer plugin.
func (c *Clusterset) Transfer(name string, known uint32) (<-chan []dns.RR, error) {
	i := slices.IndexFunc(c.zones, func(z *zone.Zone) bool { return strings.EqualFold(z.Name, name) })
	if i < 0 {
		return nil, transfer.ErrNotAuthoritative
	}
	if !c.publisher.synced.Load() {
		return nil, errUnsynced
	}
	z := c.zones[i]
	// Read the SOA first: a change during the transfer then has a later serial number, so the next transfer has it.
	soa := z.SOA().Rotated()
	out := make(chan []dns.RR)
	go func() {
		defer close(out)
		out <- soa
		if serial := soa[0].(*dns.SOA).Serial; known != 0 && !zone.Newer(serial, known) {
			return
		}
		for records := range z.All() {
			out <- records
		}
		out <- soa
	}()
	return out, nil
}
