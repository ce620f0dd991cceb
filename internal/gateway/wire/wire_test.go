// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

func sample() Open {
	return Open{
		Protocol: ProtocolTCP, Namespace: "shop", Service: "cart", Port: 8080, Hostname: "cart-0",
		Client: netip.MustParseAddr("10.1.2.3"), ClientNamespace: "web", ServiceAccount: "front.end",
	}
}

func unidentified(skipped []byte) Open {
	o := sample()
	o.Unidentified, o.Skipped = true, skipped
	return o
}

// spec: G6
func TestOpen(t *testing.T) {
	t.Parallel()
	full := slices.Clip(sample().Encode())
	for name, test := range map[string]struct {
		input   []byte
		want    Open
		refusal string
	}{
		"all fields":             {input: full, want: sample()},
		"an optional extension":  {input: append(full, 11, 0, 1, 'x'), want: func() Open { o := sample(); o.Skipped = []byte{11, 0, 1, 'x'}; return o }()},
		"a client's port":        {input: append(full, 9, 0, 2, 1, 2), want: func() Open { o := sample(); o.ClientPort = 258; return o }()},
		"a port of one byte":     {input: append(full, 9, 0, 1, 1), refusal: "refused: MalformedOpen: a field is unknown or not valid"},
		"port 0":                 {input: append(full, 9, 0, 2, 0, 0), refusal: "refused: MalformedOpen: a field is unknown or not valid"},
		"not identified":         {input: append(full, 10, 0, 1, 1), want: unidentified(nil)},
		"and two extensions":     {input: append(full, 10, 0, 1, 1, 11, 0, 1, 'x', 12, 0, 1, 'y'), want: unidentified([]byte{11, 0, 1, 'x', 12, 0, 1, 'y'})},
		"neither":                {input: append(full, 10, 0, 1, 0), refusal: "refused: MalformedOpen: a field is unknown or not valid"},
		"a critical extension":   {input: append(full, 11|0x80, 0, 1, 'x'), refusal: "refused: MalformedOpen: a field is unknown or not valid"},
		"a field twice":          {input: append(full, full...), refusal: "refused: MalformedOpen: fields are not in ascending order"},
		"a field is cut off":     {input: full[:len(full)-1], refusal: "refused: MalformedOpen: a field is empty or cut off"},
		"the header is cut off":  {input: append(full, 9, 0), refusal: "refused: MalformedOpen: a field is cut off"},
		"an empty field":         {input: append(full, 9, 0, 0), refusal: "refused: MalformedOpen: a field is empty or cut off"},
		"required fields":        {input: full[:4], refusal: "refused: MalformedOpen: a field is missing"},
		"a service with a slash": {input: Open{Protocol: 6, Service: "a/b"}.Encode(), refusal: "refused: MalformedOpen: a field is unknown or not valid"},
		"UDP":                    {input: Open{Protocol: 17}.Encode(), refusal: "refused: MalformedOpen: a field is unknown or not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := DecodeOpen(bytes.Clone(test.input))
			check.Equal(t, "open", test.want, got, cmpopts.EquateComparable(netip.Addr{}))
			var refusal *Refusal
			if text := fmt.Sprint(err); test.refusal != "" && (text != test.refusal || !errors.As(err, &refusal)) || test.refusal == "" && err != nil {
				t.Errorf("got error %q, want %q", text, test.refusal)
			}
		})
	}
}

// spec: G6
func TestNegotiate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ours, theirs Hello
		want         uint16
		err          string
	}{
		"the newest of both": {ours: Hello{Oldest: 1, Newest: 3}, theirs: Hello{Oldest: 2, Newest: 9}, want: 3},
		"none in common":     {ours: Hello{Oldest: 1, Newest: 1}, theirs: Hello{Oldest: 2, Newest: 2}, err: "gateway protocol: no common version: 1 to 1, and 2 to 2"},
		"the reserved role":  {ours: Hello{Oldest: 1, Newest: 1}, theirs: Hello{Oldest: 1, Newest: 1, Role: RoleReserved}, err: "gateway protocol: role 1 is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Negotiate(test.ours, test.theirs)
			check.Equal(t, "version", test.want, got)
			check.Equal(t, "error", test.err, check.Message(err))
		})
	}
}

// spec: G6
func TestLongTextIsCut(t *testing.T) {
	t.Parallel()
	text := string(bytes.Repeat([]byte("é"), MaxText))
	got, err := DecodeRefusal((&Refusal{Code: CodeDenied, Text: "x" + text}).Encode())
	if err != nil || len(got.Text) != MaxText-1 {
		t.Errorf("got %v, %v", got, err)
	}
}

// spec: G6
func TestRefusedFrames(t *testing.T) {
	t.Parallel()
	header := func(h Header) []byte {
		b := make([]byte, HeaderLength)
		h.Put(b)
		return b
	}
	for name, test := range map[string]struct {
		header Header
		want   string
	}{
		"an unknown type":         {Header{Type: 12, Stream: 1}, "gateway protocol: unknown frame type 12"},
		"type 0":                  {Header{}, "gateway protocol: unknown frame type 0"},
		"too much data":           {Header{Type: TypeData, Length: MaxData + 1, Stream: 1}, "gateway protocol: DATA with 262137 bytes"},
		"no data":                 {Header{Type: TypeData, Stream: 1}, "gateway protocol: DATA with 0 bytes"},
		"the longest payload":     {Header{Type: TypeOpen, Length: 1<<24 - 1, Stream: 1}, "gateway protocol: OPEN with 16777215 bytes"},
		"a stream without number": {Header{Type: TypeFin}, "gateway protocol: FIN with stream number 0"},
		"a PING of a stream":      {Header{Type: TypePing, Length: 8, Stream: 1}, "gateway protocol: PING with stream number 1"},
	} {
		var violation *ProtocolError
		if _, err := ParseHeader(header(test.header)); !errors.As(err, &violation) || err.Error() != test.want {
			t.Errorf("%s: got %v, want %q", name, err, test.want)
		}
	}
	for _, bad := range [][]byte{nil, make([]byte, 4), {0, 0, 0, 1, 0}, {0, 2, 0, 1, 0}} {
		if hello, err := DecodeHello(bad); err == nil {
			t.Errorf("HELLO %x is decoded as %v", bad, hello)
		}
	}
	for _, bad := range [][]byte{{0}, {0, 1, 0xff}} {
		if _, err := DecodeRefusal(bad); err == nil {
			t.Errorf("REFUSED %x is decoded", bad)
		}
		if _, err := DecodeReset(bad); err == nil {
			t.Errorf("RESET %x is decoded", bad)
		}
	}
}

// The document and the code name the same frames and codes.
//
// spec: G6
func TestDocument(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../../docs/gateway-protocol.md")
	check.Must(t, err)
	var frames, codes []string
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \| ([A-Z]+) \| (\S+) \|`).FindAllSubmatch(document, -1) {
		frames = append(frames, fmt.Sprintf("%s %s %s", row[1], row[2], row[3]))
	}
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \| ([A-Z][a-z]\w+) \| (yes|no|once)[ ,]`).FindAllSubmatch(document, -1) {
		codes = append(codes, fmt.Sprintf("%s %s %s", row[1], row[2], row[3]))
	}
	var wantFrames, wantCodes []string
	for t := TypeHello; t <= TypeGoaway; t++ {
		l, _ := layoutOf(t)
		bounds := fmt.Sprintf("%d-%d", l.shortest, l.longest)
		if l.shortest == l.longest {
			bounds = fmt.Sprint(l.shortest)
		}
		wantFrames = append(wantFrames, fmt.Sprintf("%d %s %s", t, t, bounds))
	}
	for code := CodeInternal; code.IsKnown(); code++ {
		retry := map[bool]string{true: "yes", false: "no"}[code.Retryable()]
		if code == CodeUnidentified {
			retry = "once" // with the client: package stream
		}
		wantCodes = append(wantCodes, fmt.Sprintf("%d %s %s", code, code, retry))
	}
	check.Equal(t, "frames of the code (want) and of the document", wantFrames, frames)
	check.Equal(t, "codes of the code (want) and of the document", wantCodes, codes)
}

// Every accepted frame is encoded to the same bytes, and the payload is within its limit.
func FuzzFrame(f *testing.F) {
	f.Add(Append(nil, TypeHello, 0, Hello{Oldest: 1, Newest: 1}.Encode()))
	f.Add(Append(nil, TypeOpen, 1, append(sample().Encode(), 9, 0, 1, 'x')))
	f.Add(Append(nil, TypeOpen, 1, append(sample().Encode(), 9, 0, 1, 'x', 10, 0, 1, 1, 11, 0, 1, 'y')))
	f.Add(Append(nil, TypeRefused, 1, (&Refusal{Code: CodeDenied, Text: "é"}).Encode()))
	f.Add(Append(nil, TypeReset, 1, CodeSocketReset.Encode()))
	f.Add(Append(nil, TypeData, 1, []byte("x")))
	f.Fuzz(func(t *testing.T, input []byte) {
		if len(input) < HeaderLength {
			return
		}
		header, err := ParseHeader(input)
		if err != nil {
			return
		}
		if header.Length > MaxData || header.Type != TypeData && header.Length > MaxControl {
			t.Fatalf("%v is too long", header)
		}
		end := HeaderLength + header.Length
		if len(input) < end {
			return
		}
		payload := input[HeaderLength:end]
		if again := encodeAgain(header.Type, payload); again != nil && !bytes.Equal(again, payload) {
			t.Errorf("%s: %x is encoded as %x", header.Type, payload, again)
		}
		check.Equal(t, "frame that is encoded again", input[:end], Append(nil, header.Type, header.Stream, payload))
	})
}

// encodeAgain returns nil if the payload is not accepted.
func encodeAgain(t Type, payload []byte) []byte {
	switch t {
	case TypeHello:
		if hello, err := DecodeHello(payload); err == nil {
			return hello.Encode()
		}
	case TypeOpen:
		if open, err := DecodeOpen(payload); err == nil {
			return open.Encode()
		}
	case TypeRefused:
		if refusal, err := DecodeRefusal(payload); err == nil {
			return refusal.Encode()
		}
	case TypeReset:
		if code, err := DecodeReset(payload); err == nil {
			return code.Encode()
		}
	default:
	}
	return nil
}
