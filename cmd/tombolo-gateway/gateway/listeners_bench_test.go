// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/tombolo-mcs/tombolo/e2e/framework/check"
	"github.com/tombolo-mcs/tombolo/pkg/gateway/ports"
)

// BenchmarkOneChange measures what a change of one slice costs a gateway that listens on all ports.
func BenchmarkOneChange(b *testing.B) {
	var all []discoveryv1.EndpointSlice
	for n := range ports.Last - ports.First + 1 {
		slice := mirrored(fmt.Sprintf("s%d", n), n, fmt.Sprintf("80=%d", ports.First+n))
		slice.UID, slice.ResourceVersion = types.UID(fmt.Sprint(n)), "1"
		all = append(all, slice)
	}
	l := &listeners{addresses: []string{"127.0.0.1"}, lag: time.Hour, open: map[string]*listener{}}
	wanted, _, read := listening(all, nil)
	for number, owner := range wanted {
		l.open[fmt.Sprintf("127.0.0.1:%d", number)] = &listener{owner: owner, number: number, address: netip.MustParseAddr("127.0.0.1")}
	}
	version := 1
	for b.Loop() {
		version++
		all[0].ResourceVersion = fmt.Sprint(version)
		var refused []error
		wanted, refused, read = listening(all, read)
		check.Equal(b, "refused", 0, len(refused))
		check.Must(b, l.apply(b.Context(), wanted))
		clustersOf(wanted)
	}
}
