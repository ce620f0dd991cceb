// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

func TestCheckNetwork(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	listen := func() net.Listener {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		check.Must(t, err)
		return l
	}
	honest, silent, liar := listen(), listen(), listen()
	ended := make(chan error, 1)
	go func() { ended <- echo(ctx, honest, time.Minute) }()
	serve := func(l net.Listener, answer []byte) {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write(answer)
			_ = c.Close()
		}
	}
	go serve(silent, []byte("x"))
	go serve(liar, bytes.Repeat([]byte("x"), payload))
	defer silent.Close()
	defer liar.Close()
	closed := listen()
	closed.Close()

	var out bytes.Buffer
	all := []string{honest.Addr().String(), silent.Addr().String(), liar.Addr().String(), closed.Addr().String()}
	check.Must(t, (networkCheck{reach: strings.Join(all, ","), timeout: time.Minute}).run(ctx, &out))
	var got []reachResult
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got) != len(all) {
		t.Fatalf("%v: %s", err, &out)
	}
	if got[0].Error != "" {
		t.Error(got[0].Error)
	}
	for i, r := range got {
		if r.Address != all[i] || i > 0 && r.Error == "" {
			t.Errorf("%+v, want a failure of %s", r, all[i])
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
