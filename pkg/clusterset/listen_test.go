// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

import (
	"maps"
	"testing"
)

func TestListen(t *testing.T) {
	t.Parallel()
	listen := map[int32]int32{443: 10001, 80: 10000}
	if got := FormatListen(listen); got != "80=10000,443=10001" {
		t.Errorf("text %q", got)
	}
	if got, err := ParseListen("80=10000,443=10001"); err != nil || !maps.Equal(listen, got) {
		t.Errorf("ports %v (%v)", got, err)
	}
	const want = `"65536=1" are no listening ports such as 80=10000`
	if _, err := ParseListen("65536=1"); err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	for _, illegal := range []string{",", "80", "80=", "=80", "0=1", "1=0", "65536=1", "1=65536", "-1=1", "1=1,1=1", "2=1,1=1", "1=1, 2=2", "01=1", "1=+1"} {
		if got, err := ParseListen(illegal); err == nil {
			t.Errorf("%q is read as %v", illegal, got)
		}
	}
}

// FuzzParseListen: what is accepted has one form only.
func FuzzParseListen(f *testing.F) {
	f.Add("")
	f.Add("80=10000,443=10001")
	f.Fuzz(func(t *testing.T, text string) {
		listen, err := ParseListen(text)
		if err != nil {
			return
		}
		again, err := ParseListen(FormatListen(listen))
		if FormatListen(listen) != text || err != nil || !maps.Equal(listen, again) {
			t.Errorf("%q is read as %v, then as %v (%v)", text, listen, again, err)
		}
	})
}
