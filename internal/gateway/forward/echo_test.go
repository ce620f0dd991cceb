// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"io"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// A backend that answers what it reads, and does not read while its answer is not taken, is no deadlock when the client begins to read, although
// all buffers of both directions are full.
//
// spec: G6, G12
func TestFullInBothDirections(t *testing.T) {
	t.Parallel()
	const beyond = 8 << 20
	_, _, address := pair(t, echo)
	client := dial(t, address)
	n := fill(client, make([]byte, 1<<20), 250*time.Millisecond, 256<<20)
	check.Must(t, client.SetDeadline(time.Now().Add(deadline)))
	go func() {
		_, _ = client.Write(make([]byte, beyond))
		_ = client.CloseWrite()
	}()
	got, err := io.Copy(io.Discard, client)
	if err != nil || got != int64(n+beyond) {
		t.Fatalf("%d of %d bytes, error %v", got, n+beyond, err)
	}
}
