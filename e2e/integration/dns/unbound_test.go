// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// testUnbound asks a caching resolver, which asks CoreDNS, for each name of a service, its ancestors too, in each order. No
// negative answer hides a name that exists: neither where the resolver asks for one label after the other and stops at the
// first that does not exist (RFC 9156, RFC 8020), nor where it forwards. With CoreDNS' own some names are never reached.
//
// spec: N5, N6
func (w world) testUnbound(t *testing.T) {
	if _, err := exec.LookPath("unbound"); err != nil {
		t.Skip("unbound is not installed: it is in Debian's package unbound")
	}
	orders := permutations(4)
	for i := range orders {
		w.hoard(t, fmt.Sprintf("n%d", i))
	}
	our := startProgram(t, fmt.Sprintf(ours, w.cluster.Kubeconfig()))
	their := startProgram(t, fmt.Sprintf(theirs, w.cluster.Kubeconfig()))
	for _, p := range []*program{our, their} {
		await(t, p, fmt.Sprintf("db.n%d.svc.clusterset.local. A", len(orders)-1), "NOERROR 10.1.0.1")
	}
	const strict = "qname-minimisation: yes\nqname-minimisation-strict: yes\nuse-caps-for-id: yes"
	const eager = "qname-minimisation: yes\nprefetch: yes\nserve-expired: yes\nharden-below-nxdomain: yes"
	for name, tc := range map[string]struct {
		behind          *program
		zone, options   string
		hidesSomeOfThem bool
	}{
		"a stub zone, strictly minimised":  {our, "stub-zone", strict, false},
		"a stub zone":                      {our, "stub-zone", eager, false},
		"a forward zone":                   {our, "forward-zone", strict, false},
		"a stub zone, before CoreDNS' own": {their, "stub-zone", strict, true},
	} {
		t.Run(name, func(t *testing.T) {
			resolver := startUnbound(t, tc.behind, tc.zone, tc.options)
			var hidden []string
			for i, order := range orders {
				for _, chain := range chains {
					for _, step := range order {
						name, typ, _ := strings.Cut(chain[step], " ")
						hidden = append(hidden, resolver.hides(t, fmt.Sprintf("%sn%d.svc.%s", name, i, zone), typ)...)
					}
				}
			}
			if (len(hidden) > 0) != tc.hidesSomeOfThem {
				t.Errorf("%d of %d names are hidden: %.5q", len(hidden), len(orders)*4*len(chains), hidden)
			}
		})
	}
}

// chains are names below "n<number>.svc.clusterset.local", each with its ancestors, and the types that they have.
var chains = [][4]string{
	{" ", "db. A", "east.db. ", "db-0.east.db. A"},
	{" ", "db. AAAA", "_tcp.db. ", "_http._tcp.db. SRV"},
	{" ", "web. A", "_tcp.web. ", "_http._tcp.web. SRV"},
}

// hoard creates a namespace with one service of each sort.
func (w world) hoard(t *testing.T, namespace string) {
	t.Helper()
	web, db := imported("web", v1beta1.ClusterSetIP, "10.96.0.1"), imported("db", v1beta1.Headless)
	four, six := endpoints("db-east-4", "10.1.0.1"), endpoints("db-east-6", "fd00::1")
	six.AddressType = "IPv6"
	host := "db-0"
	four.Endpoints[0].Hostname, six.Endpoints[0].Hostname = &host, &host
	web.Namespace, db.Namespace, four.Namespace, six.Namespace = namespace, namespace, namespace, namespace
	w.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, web, db, four, six)
}

// permutations returns all orders of the numbers below n.
func permutations(n int) [][]int {
	if n == 0 {
		return [][]int{nil}
	}
	var all [][]int
	for _, shorter := range permutations(n - 1) {
		for at := 0; at <= len(shorter); at++ {
			order := append(append(append([]int{}, shorter[:at]...), n-1), shorter[at:]...)
			all = append(all, order)
		}
	}
	return all
}

// resolver is an unbound on this port.
type resolver struct{ address string }

// startUnbound starts unbound in front of a CoreDNS.
func startUnbound(t *testing.T, behind *program, zoneKind, options string) *resolver {
	t.Helper()
	host, port, err := net.SplitHostPort(behind.udp)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		free, err := lab.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		kind := strings.TrimSuffix(zoneKind, "-zone")
		text := fmt.Sprintf(`server:
directory: %q
interface: 127.0.0.1@%d
do-daemonize: no
username: ""
chroot: ""
pidfile: ""
use-syslog: no
do-not-query-localhost: no
local-zone: "%s" transparent
module-config: "iterator"
num-threads: 1
%s
remote-control:
control-enable: no
%s:
name: "%s"
%s-addr: %s@%s
`, t.TempDir(), free, zone, options, zoneKind, zone, kind, host, port)
		r := &resolver{fmt.Sprintf("127.0.0.1:%d", free)}
		if r.run(t, text) {
			return r
		}
	}
	t.Fatal("unbound does not start")
	return nil
}

// untilInputEnds runs unbound until the standard input ends, as it does when the test ends, however it ends.
const untilInputEnds = `
exec 3<&0
unbound -d -p -c "$1" 3<&- &
unbound=$!
{ while read -r _; do :; done; kill -9 "$unbound"; } <&3 &
watcher=$!
wait "$unbound"
kill "$watcher" 2>/dev/null
`

// run starts unbound and waits until it answers. It reports false where unbound ends instead, as it does without its port.
func (r *resolver) run(t *testing.T, config string) bool {
	t.Helper()
	file := filepath.Join(t.TempDir(), "unbound.conf")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "/bin/sh", "-c", untilInputEnds, "unbound", file)
	cmd.Stdout, cmd.Stderr = t.Output(), t.Output()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // it is killed, or has said why
	}()
	t.Cleanup(func() {
		_ = stdin.Close() // it is a pipe: unbound ends with it
		<-ended
	})
	err = wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		select {
		case <-ended:
			return false, errors.New("unbound has ended")
		default:
		}
		_, reply := exchange(zone+" SOA", "udp", r.address)
		return len(reply.Answer) == 1, nil
	})
	return err == nil
}

// hides asks for the type, or for a TXT record where there is none, and returns the question if the reply is negative about
// a name that exists, or has no record of the type.
func (r *resolver) hides(t *testing.T, name, typ string) []string {
	t.Helper()
	asked := typ
	if typ == "" {
		asked = "TXT"
	}
	var reply *dns.Msg
	// Under load a reply may get lost, and the resolver gives up a CoreDNS that stalls: that hides nothing.
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, patience, true, func(context.Context) (bool, error) {
		_, reply = exchange(name+" "+asked, "udp", r.address)
		return reply.Response && reply.Rcode != dns.RcodeServerFailure, nil
	})
	if err != nil && !reply.Response {
		t.Fatalf("%s: no reply", name)
	}
	if reply.Rcode != dns.RcodeSuccess || (typ != "" && len(reply.Answer) == 0) {
		return []string{name + " " + asked + ": " + dns.RcodeToString[reply.Rcode]}
	}
	return nil
}
