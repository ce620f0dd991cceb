// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// Each address has a label that no other address has.
func TestLabelsOfAddresses(t *testing.T) {
	for label, want := range map[string]string{
		"10-0-0-1": "10.0.0.1", "fd00--1": "fd00::1", "fd00--0": "fd00::", "--1": "::1", "1-2-3-4-5-6-7-8": "1:2:3:4:5:6:7:8",
		"010-0-0-1": "", "fd00-0-0-0-0-0-0-1": "", "fd00--": "", "10-0-0": "", "FD00--1": "", "db-0": "", "": "", "----": "", "10-0-0-256": "",
	} {
		a, ok := labelAddress(label)
		if ok != (want != "") || (ok && a.String() != want) {
			t.Errorf("%s: %v, %t, want %s", label, a, ok, want)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		b := rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(rt, "address")
		for i := range b {
			if rapid.Bool().Draw(rt, "zero") {
				b[i] = 0
			}
		}
		var set Addresses
		for _, ip := range []net.IP{net.IP(b[:4]), net.IP(b)} {
			a, ok := parseAddress(ip.String())
			if !ok {
				continue
			}
			set.Add(a)
			label := addressLabel(a)
			if back, ok := labelAddress(label); !ok || back != a || strings.HasSuffix(label, "-") {
				rt.Errorf("%v has label %s, which leads to %v (%t)", a, label, back, ok)
			}
		}
		set.Sort()
		for a := range set.all() {
			check.Equal(rt, fmt.Sprintf("%v is found", a), true, set.contains(a))
		}
	})
}
