// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

func encodeRotation(t testing.TB, r Rotation) string {
	t.Helper()
	text, err := EncodeRotation(r)
	check.Must(t, err)
	return string(text)
}

// spec: G5
func TestStoredRotation(t *testing.T) {
	t.Parallel()
	rotation := Rotation{{newAuthority(t, "a", now), now}, {Authority: newAuthority(t, "a", now)}}
	text := encodeRotation(t, rotation)
	got, err := DecodeRotation([]byte(text))
	if err != nil || encodeRotation(t, got) != text || !got[0].Published.Equal(now) || !got[1].Published.IsZero() {
		t.Errorf("%q is decoded as %v, %v", text, got, err)
	}
	_, _, err = got[1].Issue(Name{"set", "a"}, now)
	check.Must(t, err)
	other := encodeRotation(t, Rotation{{Authority: newAuthority(t, "a", now)}})
	key := func(text string) string { return text[strings.Index(text, `"key"`):strings.Index(text, `-----END EC`)] }
	for name, test := range map[string]struct{ text, want string }{
		"empty":                {"", "the authorities are not readable: EOF"},
		"no list":              {"{}", "the authorities are not readable: json"},
		"none":                 {"[]", "the bundle has no certificate"},
		"an unknown field":     {`[{"a":1}]`, `the authorities are not readable: json: unknown field "a"`},
		"no certificate":       {`[{}]`, "the bundle has no certificate"},
		"twice":                {strings.Replace(other, "]", ","+strings.Trim(other, "[]")+"]", 1), "the bundle's certificate 2 is there twice"},
		"followed by a text":   {other + "x", "the authorities are followed by other text"},
		"followed by a list":   {other + other, "the authorities are followed by other text"},
		"another's key":        {strings.Replace(text, key(text), key(other), 1), "the key of the authority is not that of its certificate"},
		"no key":               {strings.Replace(other, "EC PRIVATE KEY", "PRIVATE KEY", 2), `the key of the authority is no PEM block "EC PRIVATE KEY"`},
		"an unreadable moment": {strings.Replace(text, now.Format(time.RFC3339), "today", 1), "the authorities are not readable: parsing time"},
	} {
		if _, err := DecodeRotation([]byte(test.text)); err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: the error is %v, want %q", name, err, test.want)
		}
	}
}

// What is decoded and encoded again is equal.
func FuzzDecodeRotation(f *testing.F) {
	f.Add([]byte(encodeRotation(f, Rotation{{newAuthority(f, "a", now), now}, {Authority: newAuthority(f, "a", now)}})))
	f.Add([]byte("[]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		rotation, err := DecodeRotation(text)
		if err != nil {
			return
		}
		first := encodeRotation(t, rotation)
		again, err := DecodeRotation([]byte(first))
		if err != nil || !bytes.Equal([]byte(first), []byte(encodeRotation(t, again))) {
			t.Errorf("%q is decoded, but not %q: %v", text, first, err)
		}
	})
}

// spec: G5
func TestMarkPublished(t *testing.T) {
	t.Parallel()
	before := Rotation{{newAuthority(t, "a", now), now}, {Authority: newAuthority(t, "a", now)}}
	after := before.MarkPublished(now.Add(time.Hour + time.Millisecond))
	if !after[0].Published.Equal(now) || !after[1].Published.Equal(now.Add(time.Hour)) || !before[1].Published.IsZero() {
		t.Errorf("published at %s and %s, before at %s", after[0].Published, after[1].Published, before[1].Published)
	}
}

// spec: G5
func TestNeedsLeaf(t *testing.T) {
	t.Parallel()
	name := Name{"set", "a"}
	rotation := Rotation{{newAuthority(t, "a", now), now}, {Authority: newAuthority(t, "a", now)}}
	leaf := newLeaf(t, rotation[0].Authority, name, now).Leaf
	for title, test := range map[string]struct {
		rotation Rotation
		name     Name
		after    time.Duration
		want     bool
	}{
		"new":                  {rotation, name, 0, false},
		"of almost a day":      {rotation, name, 24*time.Hour - time.Second, false},
		"of a day":             {rotation, name, 24 * time.Hour, true},
		"from the future":      {rotation, name, -time.Hour, true},
		"of another cluster":   {rotation, Name{"set", "b"}, 0, true},
		"of another set":       {rotation, Name{"other", "a"}, 0, true},
		"of another authority": {rotation[1:], name, 0, true},
	} {
		check.Equal(t, title, test.want, test.rotation.NeedsLeaf(leaf, test.name, now.Add(test.after)))
	}
}
