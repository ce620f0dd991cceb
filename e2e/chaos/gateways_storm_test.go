// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	framework "github.com/tombolo-mcs/tombolo/e2e/framework/world"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
)

const (
	// burstSize is the number of clients that connect at once.
	burstSize = 500
	// deniedEach is the time between two clients that are denied.
	deniedEach = 5 * time.Millisecond
	// maxDials is the number of connections that the importer's gateways may open to those that are at their limit in five seconds.
	maxDials = 100
	// large is a service whose backend sends largeSize bytes that its clients do not read. They are stalledClients, more than memoryLimit
	// allows if each is held in a buffer.
	large          = "large"
	largeSize      = 256 << 10
	stalledClients = 2000
	memoryLimit    = 128 << 20
)

// stormFaults are those in which gateways get more than they can serve, or a peer that does not serve.
func stormFaults() []gatewayFault {
	return []gatewayFault{
		{name: "hundreds of clients connect at once", begin: burst(burstSize), end: undo, serves: true},
		{name: "a gateway of the exporter accepts connections and sends nothing", begin: silentPeer, end: undo, serves: true},
		{name: "a gateway of the exporter is at its limit", begin: peerAtLimit, end: undo, serves: true},
		{name: "all gateways of the exporter are at their limit", begin: peersAtLimit, end: undo},
		{name: "many clients are denied", begin: deniedFlood, end: undo, serves: true},
		{name: "an address of the exporter's gateways does not answer", begin: deadAddress, end: undo, serves: true},
		{name: "the memory of a gateway is full of what clients do not read", begin: stalledReaders, end: undo, serves: true},
	}
}

// undo ends a fault: it calls what the fault has added, the last first. It restarts the gateways of the importer, because they keep the
// connections of many clients for a minute, and a later fault may lose a request on each idle connection.
func undo(ctx context.Context, n *networks) (err error) {
	for _, one := range slices.Backward(n.undo) {
		err = errors.Join(err, one(ctx))
	}
	n.undo = nil
	return errors.Join(err, n.gateways["a"][0].crash(), n.gateways["a"][1].crash())
}

func (n *networks) later(do func(context.Context) error) { n.undo = append(n.undo, do) }

// burst has clients connect at once, which stay until all are answered.
func burst(size int) func(context.Context, *networks) error {
	return func(ctx context.Context, n *networks) error {
		service := servicesAcross[0]
		addresses, err := n.addresses(ctx, service)
		if err != nil || len(addresses) == 0 {
			return errors.Join(err, fmt.Errorf("no address of %s", service))
		}
		var (
			running sync.WaitGroup
			conns   = make([]net.Conn, size)
			errs    = make([]error, size)
		)
		for i := range size {
			running.Go(func() {
				conns[i], errs[i] = askAndStay(ctx, addresses[i%len(addresses)], service, n.requests.line(service))
			})
		}
		running.Wait()
		for _, conn := range conns {
			if conn != nil {
				conn.Close()
			}
		}
		if failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil }); len(failed) > 0 {
			return fmt.Errorf("%d of %d clients at once are not answered: %w", len(failed), size, failed[0])
		}
		return nil
	}
}

// silentPeer replaces a gateway of the exporter by a program that accepts connections and sends nothing.
func silentPeer(ctx context.Context, n *networks) error {
	if err := n.gateways["b"][0].kill(); err != nil {
		return err
	}
	n.later(func(context.Context) error { return n.gateways["b"][0].start() })
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", n.between(host(3))) // the kernel accepts
	if err != nil {
		return err
	}
	n.later(func(context.Context) error { return listener.Close() })
	return burst(20)(ctx, n) // so that new connections are needed
}

// deadAddress has no packet arrive at a gateway of the exporter, which is down.
func deadAddress(ctx context.Context, n *networks) error {
	if err := n.gateways["b"][0].kill(); err != nil {
		return err
	}
	n.later(func(context.Context) error { return n.gateways["b"][0].start() })
	rule := fmt.Sprintf("table inet tombolo_chaos {\nchain output {\ntype filter hook output priority 0;\nip daddr %s tcp dport %d drop\n}\n}\n", host(3), n.port)
	if err := nft(ctx, rule); err != nil {
		return err
	}
	n.later(func(ctx context.Context) error { return mendNetworks(ctx, n) })
	return burst(20)(ctx, n)
}

// peerAtLimit has a gateway of the exporter accept one stream, and two connections.
func peerAtLimit(_ context.Context, n *networks) error {
	return n.restartWith(n.gateways["b"][0], nil, "--max-streams=1", "--max-streams-each=1")
}

// peersAtLimit has both gateways of the exporter serve as many streams as they may. It returns an error if they are dialed without pause.
func peersAtLimit(ctx context.Context, n *networks) error {
	for _, g := range n.gateways["b"] {
		if err := n.restartWith(g, nil, "--max-streams=2", "--max-streams-each=2"); err != nil {
			return err
		}
	}
	service := servicesAcross[0]
	addresses, err := n.addresses(ctx, service)
	if err != nil || len(addresses) == 0 {
		return errors.Join(err, fmt.Errorf("no address of %s", service))
	}
	var conns []net.Conn
	n.later(func(context.Context) error {
		for _, conn := range conns {
			conn.Close()
		}
		return nil
	})
	err = soon(ctx, func(ctx context.Context) error { // other clients have streams meanwhile
		conn, err := askAndStay(ctx, addresses[len(conns)%len(addresses)], service, n.requests.line(service))
		if err == nil {
			conns = append(conns, conn)
		}
		if len(conns) < 4 {
			return fmt.Errorf("%d streams are held: %w", len(conns), err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	rule := fmt.Sprintf("table inet tombolo_chaos {\ncounter dials {\n}\nchain output {\ntype filter hook output priority 0;\n"+
		"ip daddr { %s, %s } tcp dport %d tcp flags & (syn | ack) == syn counter name dials\n}\n}\n", host(3), host(4), n.port)
	if err := nft(ctx, rule); err != nil {
		return err
	}
	n.later(func(ctx context.Context) error { return mendNetworks(ctx, n) })
	pause(ctx, 5*time.Second)
	out, err := exec.CommandContext(ctx, "nft", "list", "counter", "inet", "tombolo_chaos", "dials").CombinedOutput()
	found := regexp.MustCompile(`packets (\d+)`).FindSubmatch(out)
	if err != nil || found == nil {
		return fmt.Errorf("nft: %w: %s", err, out)
	}
	if dials, err := strconv.Atoi(string(found[1])); err != nil || dials > maxDials {
		return errors.Join(err, fmt.Errorf("gateways at their limit are dialed %d times in five seconds", dials))
	}
	return nil
}

// restartWith restarts a gateway with more variables and arguments until undo.
func (n *networks) restartWith(a *agent, variables []string, args ...string) error {
	before := a.args
	n.later(func(context.Context) error {
		err := a.kill()
		a.args = before
		return errors.Join(err, a.start())
	})
	err := a.kill()
	a.args = slices.Concat(variables, before, args)
	return errors.Join(err, a.start())
}

// deniedFlood has clients ask for a service that the exporter denies, until undo.
func deniedFlood(ctx context.Context, n *networks) error {
	if err := n.export(ctx, waiting); err != nil {
		return err
	}
	n.later(func(ctx context.Context) error {
		return errors.Join(n.Members["b"].Delete(ctx, framework.Export(n.key(waiting))), n.vanished(ctx, waiting))
	})
	if err := n.gotPort(ctx); err != nil {
		return err
	}
	policy := &policyv1alpha1.ClusterServiceAccessPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "no-" + waiting},
		Spec: policyv1alpha1.ClusterServiceAccessPolicySpec{
			Tier: policyv1alpha1.TierAdmin, Direction: policyv1alpha1.DirectionExport, Action: policyv1alpha1.ActionDeny,
			Services: []policyv1alpha1.ObjectName{waiting},
		},
	}
	if err := n.Members["b"].Create(ctx, policy); err != nil {
		return err
	}
	n.later(func(ctx context.Context) error { return n.Members["b"].Delete(ctx, policy) })
	addresses, err := n.addresses(ctx, waiting)
	if err != nil {
		return err
	}
	denied := func(ctx context.Context) error {
		return ask(ctx, addresses[0], waiting, n.requests.line(waiting))
	}
	err = soon(ctx, func(ctx context.Context) error {
		if denied(ctx) == nil {
			return errNoEffect
		}
		return nil
	})
	if err != nil {
		return err
	}
	flood, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() {
		for flood.Err() == nil {
			running.Go(func() { _ = denied(flood) })
			pause(flood, deniedEach)
		}
	})
	n.later(func(context.Context) error {
		stop()
		running.Wait()
		return nil
	})
	return nil
}

// stalledReaders has clients that do not read connect through a gateway of the importer whose memory is limited.
func stalledReaders(ctx context.Context, n *networks) error {
	g := n.gateways["a"][0]
	if err := n.restartWith(g, []string{fmt.Sprintf("GOMEMLIMIT=%d", memoryLimit)}); err != nil {
		return err
	}
	if err := n.export(ctx, large); err != nil {
		return err
	}
	n.later(func(ctx context.Context) error {
		return errors.Join(n.Members["b"].Delete(ctx, framework.Export(n.key(large))), n.vanished(ctx, large))
	})
	var at string
	err := soon(ctx, func(ctx context.Context) error {
		addresses, err := n.addresses(ctx, large)
		i := slices.IndexFunc(addresses, func(address string) bool { return strings.HasPrefix(address, host(1)+":") })
		if err != nil || i < 0 {
			return errors.Join(err, fmt.Errorf("%s is not reached by %s: %v", large, host(1), addresses))
		}
		at = addresses[i]
		return n.listed(len(n.gateways["a"]))
	})
	if err != nil {
		return err
	}
	ends := g.ends()
	var conns []net.Conn
	n.later(func(context.Context) error {
		for _, conn := range conns {
			conn.Close()
		}
		return nil
	})
	// They have an address of their own, so that a limit for each client does not refuse others.
	other := net.Dialer{Timeout: 10 * time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}}
	for range stalledClients {
		conn, err := other.DialContext(ctx, "tcp", at)
		if err != nil {
			continue // it may be refused
		}
		conns = append(conns, conn)
		if err := conn.(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
			return err
		}
	}
	pause(ctx, 3*time.Second)
	used, err := g.memory()
	if err == nil && (used > memoryLimit || g.ends() > ends) {
		err = fmt.Errorf("%d clients that do not read: the gateway uses %d MB, its limit is %d MB, it has ended %d times", len(conns), used>>20, memoryLimit>>20, g.ends()-ends)
	}
	return err
}

// memory returns the resident memory of a process, in bytes.
func (a *agent) memory() (int, error) {
	pid, err := os.ReadFile(filepath.Join(a.folder, a.name+".pid"))
	if err != nil {
		return 0, err
	}
	status, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/status")
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return 0, fmt.Errorf("no VmRSS: %s", status)
	}
	kilobytes, err := strconv.Atoi(string(found[1]))
	return kilobytes << 10, err
}

// sendLarge is the backend of large.
func sendLarge(conn net.Conn) {
	defer conn.Close()
	if _, err := conn.Write(make([]byte, largeSize)); err == nil {
		_, _ = conn.Read(make([]byte, 1)) // until the client has gone
	}
}
