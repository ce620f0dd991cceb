// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// requests has what clients have asked and what backends have got. A request is a line "<service>/<number>", which a backend answers
// with "<its service> <line>". No client sends a line twice.
type requests struct {
	mu      sync.Mutex
	next    int
	ended   []request
	open    map[string]time.Time // when each began
	arrived map[string]int
	found   []string // what must not be
	// addresses are those where a client finds each service, and listed says when it has found each of them last.
	addresses map[string][]string
	listed    map[string]map[string]time.Time
}

// find notes where a client finds a service now.
func (r *requests) find(service string, addresses []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addresses[service] = addresses
	if r.listed[service] == nil {
		r.listed[service] = map[string]time.Time{}
	}
	for _, address := range addresses {
		r.listed[service][address] = time.Now()
	}
}

// staleTime is how long a client uses an address that is no longer listed: as long as a kube-proxy may be late.
const staleTime = quarantine / 2

// stale returns where a client finds a service that has not read a change yet. The caller holds the lock.
func (r *requests) stale(service string) (addresses []string) {
	for address, last := range r.listed[service] {
		if time.Since(last) < staleTime {
			addresses = append(addresses, address)
		}
	}
	return addresses
}

// line returns a line that no other request has. It is not counted.
func (r *requests) line(service string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.next++
	return fmt.Sprintf("%s/%d", service, r.next)
}

type request struct {
	line         string
	begin, ended time.Time
	err          error
}

// serve answers for a service at all addresses of this machine until the test ends, and returns the port.
func (r *requests) serve(t *testing.T, service string) int32 {
	t.Helper()
	return int32(lab.ServeTCP(t, "0.0.0.0:0", func(conn net.Conn) { r.answer(conn, service) }).Port)
}

func (r *requests) answer(conn net.Conn, service string) {
	defer conn.Close()
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		line := lines.Text()
		r.mu.Lock()
		r.arrived[line]++
		if r.arrived[line] > 1 {
			r.found = append(r.found, line+" has arrived twice")
		}
		if !strings.HasPrefix(line, service+"/") {
			r.found = append(r.found, line+" has arrived at "+service)
		}
		r.mu.Unlock()
		if _, err := fmt.Fprintln(conn, service, line); err != nil {
			return
		}
	}
}

// ask begins a request each 10 ms until ctx ends, now and then at an address that may be no longer listed. Such a request
// need not be answered.
func (r *requests) ask(ctx context.Context, random *rand.Rand, services []string) {
	var running sync.WaitGroup
	defer running.Wait()
	for ctx.Err() == nil {
		pause(ctx, 10*time.Millisecond)
		service, stale := services[random.IntN(len(services))], random.IntN(10) == 0
		r.mu.Lock()
		r.next++
		from := r.addresses[service]
		if stale {
			from = r.stale(service)
		}
		address := ""
		if len(from) > 0 {
			address = from[random.IntN(len(from))]
		}
		one := request{line: fmt.Sprintf("%s/%d", service, r.next), begin: time.Now()}
		if !stale {
			r.open[one.line] = one.begin
		}
		r.mu.Unlock()
		running.Go(func() {
			one.err = ask(ctx, address, service, one.line)
			r.end(one, ctx.Err() == nil && !stale)
		})
	}
}

// end notes the end of a request, which counts if it had to be answered.
func (r *requests) end(one request, counts bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, one.line)
	if one.ended = time.Now(); counts {
		r.ended = append(r.ended, one)
	}
	if one.err == nil && r.arrived[one.line] != 1 {
		r.found = append(r.found, one.line+" has been answered and did not arrive")
	}
}

// dialer connects clients. Without an address of their own, they would have that of the gateway to which they connect.
var dialer = net.Dialer{Timeout: time.Second, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}

// ask sends a line, and returns nil if the service answers it.
func ask(ctx context.Context, address, service, line string) error {
	conn, err := askAndStay(ctx, address, service, line)
	if err == nil {
		conn.Close()
	}
	return err
}

// askAndStay sends a line, and returns the connection if the service answers it.
func askAndStay(ctx context.Context, address, service, line string) (net.Conn, error) {
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	if err := exchange(ctx, conn, service, line); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// exchange sends a line, and returns nil if the service answers it.
func exchange(ctx context.Context, conn net.Conn, service, line string) error {
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := conn.SetDeadline(time.Now().Add(25 * time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintln(conn, line); err != nil {
		return err
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err == nil && strings.TrimSpace(answer) != service+" "+line {
		err = fmt.Errorf("the answer is %q", answer)
	}
	return err
}

// since returns how many of the requests that began between two times are answered, and the others, when all of them have ended.
func (r *requests) since(t *testing.T, from, until time.Time) (answered int, failed []string) {
	t.Helper()
	lab.Eventually(t, time.Minute, func(context.Context) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		for line, began := range r.open {
			if began.Before(until) {
				return fmt.Errorf("%s has not ended", line)
			}
		}
		return nil
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, one := range r.ended {
		switch {
		case one.begin.Before(from) || one.begin.After(until):
		case one.err == nil:
			answered++
		default:
			failed = append(failed, fmt.Sprintf("%s after %s: %v", one.line, one.ended.Sub(one.begin).Round(time.Millisecond), one.err))
		}
	}
	return answered, failed
}

// wrong returns what must not have happened.
func (r *requests) wrong() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found
}
