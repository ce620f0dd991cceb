// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
)

// BenchmarkOneChange measures what a change of one slice costs a gateway that listens on all ports.
func BenchmarkOneChange(b *testing.B) {
	var last discoveryv1.EndpointSlice
	c := newClaims(func() {})
	for n := range ports.Last - ports.First + 1 {
		last = mirrored(fmt.Sprintf("s%d", n), n, fmt.Sprintf("80=%d", ports.First+n))
		c.observe(client.ObjectKeyFromObject(&last), &last)
	}
	l := &listeners{addresses: []string{"127.0.0.1"}, lag: time.Hour, open: map[string]*listener{}, pending: map[int32]ports.Owner{}}
	opened, _, _ := c.take()
	for number, owner := range opened {
		l.open[fmt.Sprintf("127.0.0.1:%d", number)] = &listener{owner: owner, number: number, address: netip.MustParseAddr("127.0.0.1")}
	}
	for b.Loop() {
		c.observe(client.ObjectKeyFromObject(&last), &last)
		changes, _, refused := c.take()
		check.Equal(b, "refused", 0, len(refused))
		check.Must(b, l.apply(b.Context(), changes))
	}
}
