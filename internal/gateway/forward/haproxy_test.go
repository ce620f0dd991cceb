// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package forward

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
)

// proxyingHAProxy answers requests at a listening socket, which it inherits, with the address of the client that the PROXY protocol header has.
// It refuses a header with a wrong checksum.
const proxyingHAProxy = `global
    log stderr format raw daemon
defaults
    mode http
    timeout client 10s
frontend web
    bind fd@3 accept-proxy
    http-request return status 200 content-type text/plain lf-string "%[src]:%[src_port]"
`

// HAProxy, as a backend that expects the header, knows the client's address.
//
// spec: G14
func TestProxiedToHAProxy(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip("there is no haproxy")
	}
	config := filepath.Join(t.TempDir(), "haproxy.cfg")
	check.Must(t, os.WriteFile(config, []byte(proxyingHAProxy), 0o600))
	listener := listen(t)
	socket, err := listener.File()
	check.Must(t, err)
	haproxy := exec.CommandContext(t.Context(), path, "-db", "-f", config)
	haproxy.ExtraFiles = []*os.File{socket}
	var said bytes.Buffer
	haproxy.Stdout, haproxy.Stderr = &said, &said
	check.Must(t, haproxy.Start())
	t.Cleanup(func() { _ = haproxy.Wait() }) // the context is done before
	address, _ := throughProxied(t, listener.Addr())
	client, err := net.Dial("tcp", address)
	check.Must(t, err)
	defer client.Close()
	_, err = fmt.Fprint(client, "GET / HTTP/1.0\r\n\r\n")
	check.Must(t, err)
	answer, err := io.ReadAll(client)
	if want := client.LocalAddr().String(); err != nil || !bytes.HasSuffix(answer, []byte("\r\n\r\n"+want)) {
		t.Errorf("HAProxy answers %q, error %v, want the address %s; it said %s", answer, err, want, &said)
	}
}
