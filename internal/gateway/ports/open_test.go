// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package ports

import (
	"bytes"
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var owner = Owner{Service: clusterset.ServiceKey{Namespace: "shop", Name: "web"}, Cluster: "west", Port: 80, Hostname: "web-0"}

// A port leads to an owner only if each part of the owner is the same. spec: G2, G8
func TestLeads(t *testing.T) {
	t.Parallel()
	open := Open{First: DigestOf(owner)}
	for name, test := range map[string]struct {
		port   int32
		change func(*Owner)
		want   bool
	}{
		"the owner":         {First, func(*Owner) {}, true},
		"another port":      {First + 1, func(*Owner) {}, false},
		"another name":      {First, func(o *Owner) { o.Service.Name = "web2" }, false},
		"another namespace": {First, func(o *Owner) { o.Service.Namespace = "shop2" }, false},
		"another cluster":   {First, func(o *Owner) { o.Cluster = "north" }, false},
		"another number":    {First, func(o *Owner) { o.Port = 8 }, false},
		"another hostname":  {First, func(o *Owner) { o.Hostname = "" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := owner
			test.change(&changed)
			check.Equal(t, "leads", test.want, open.Leads(test.port, changed))
		})
	}
}

// The text of any open ports is read as these ports, and no other text is read. spec: G8
func FuzzDecodeOpen(f *testing.F) {
	f.Add([]byte(nil))
	f.Add(Open{First: DigestOf(owner), Last: DigestOf(Owner{})}.Encode())
	f.Add([]byte("10001 0123456789abcdef\n10000 0123456789abcdef\n"))
	f.Add([]byte("10000 0123456789abcdef\n10000 0123456789abcdef\n"))
	f.Add([]byte("10000 0123456789abcdef"))
	f.Add([]byte("10000 0123456789ABCDEF\n"))
	f.Add([]byte("9999 0123456789abcdef\n"))
	f.Add([]byte("ok"))
	f.Fuzz(func(t *testing.T, text []byte) {
		open, err := DecodeOpen(text)
		if err != nil {
			return
		}
		if encoded := open.Encode(); !bytes.Equal(encoded, text) {
			t.Errorf("%q was read as %v, whose text is %q", text, open, encoded)
		}
		if len(text) > MaxOpenText {
			t.Errorf("%d bytes were read", len(text))
		}
	})
}
