// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/miekg/dns"
)

// maxAnswer bounds what is read of an answer over HTTP, in bytes.
const maxAnswer = 64 << 10

// networks are the ones that a target may have, with the types of address that they look up.
var networks = map[string][]uint16{
	"tcp": {dns.TypeA, dns.TypeAAAA}, "tcp4": {dns.TypeA}, "tcp6": {dns.TypeAAAA},
	"udp": {dns.TypeA, dns.TypeAAAA}, "udp4": {dns.TypeA}, "udp6": {dns.TypeAAAA},
}

type target struct {
	network  string
	host     string
	port     uint16
	timeout  time.Duration // of each request, its lookup included
	resolver resolver
}

// newTarget returns the target that a command's arguments name, or a usageError.
func newTarget(network, operand string, timeout time.Duration, w world) (target, error) {
	if networks[network] == nil {
		return target{}, usageError{fmt.Sprintf("probe: -network=%s: must be tcp, tcp4, tcp6, udp, udp4 or udp6", network)}
	}
	if timeout <= 0 {
		return target{}, usageError{fmt.Sprintf("probe: -timeout=%s: must be positive", timeout)}
	}
	host, text, err := net.SplitHostPort(operand)
	if err != nil || host == "" {
		return target{}, usageError{fmt.Sprintf("probe: %q: must be HOST:PORT, as in name:8080 or [fd00::1]:8080", operand)}
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || port == 0 {
		return target{}, usageError{fmt.Sprintf("probe: %q: %q is no port", operand, text)}
	}
	return target{
		network: network, host: host, port: uint16(port), timeout: timeout,
		resolver: resolver{resolvConf: w.resolvConf, timeout: timeout},
	}, nil
}

func (t target) overUDP() bool { return strings.HasPrefix(t.network, "udp") }

// link is an open connection to a target; over UDP, a socket that takes only what its peer sends.
type link struct {
	conn   net.Conn
	reader *bufio.Reader
	kept   bool // for further requests
}

// single sends one request on a connection of its own.
func (t target) single(ctx context.Context) result {
	return measured(ctx, t.timeout, func(ctx context.Context, r *result) error {
		l, err := t.connect(ctx, r)
		if err != nil {
			return err
		}
		err = t.exchange(ctx, l, r)
		return errors.Join(err, l.conn.Close())
	})
}

// measured completes the result of one request, which ends in time.
func measured(ctx context.Context, timeout time.Duration, request func(context.Context, *result) error) result {
	begun := time.Now()
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	r := result{Time: begun.UTC()}
	if err := request(limited, &r); err != nil {
		r.Error = err.Error()
	}
	r.MS = milliseconds(time.Since(begun))
	return r
}

// milliseconds returns a duration with the precision of microseconds.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// connect looks the host up and dials once.
func (t target) connect(ctx context.Context, r *result) (link, error) {
	address, err := t.resolver.lookup(ctx, t.host, networks[t.network])
	if err != nil {
		return link{}, err
	}
	r.Address = address.String()
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, t.network, netip.AddrPortFrom(address, t.port).String())
	if err != nil {
		return link{}, err
	}
	return link{conn: conn, reader: bufio.NewReader(conn)}, nil
}

func (t target) exchange(ctx context.Context, l link, r *result) error {
	if deadline, ok := ctx.Deadline(); ok {
		if err := l.conn.SetDeadline(deadline); err != nil {
			return err
		}
	}
	var a answer
	var err error
	if t.overUDP() {
		a, err = l.datagram()
	} else {
		a, err = l.http(ctx, t)
	}
	r.Cluster, r.Pod, r.Node, r.Port, r.Client = a.Cluster, a.Pod, a.Node, a.Port, a.Client
	return err
}

// http sends a request as HTTP has it.
func (l link) http(ctx context.Context, t target) (answer, error) {
	url := "http://" + net.JoinHostPort(t.host, strconv.Itoa(int(t.port))) + "/"
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return answer{}, err
	}
	request.Close = !l.kept
	if err := request.Write(l.conn); err != nil {
		return answer{}, err
	}
	response, err := http.ReadResponse(l.reader, request)
	if err != nil {
		return answer{}, fmt.Errorf("no answer: %w", err)
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return answer{}, fmt.Errorf("half an answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return answer{}, fmt.Errorf("status %s", response.Status)
	}
	return parseAnswer(content)
}

// datagram sends a datagram and waits for the answer to this very one: a late answer to another may come first.
func (l link) datagram() (answer, error) {
	question := rand.Text()
	if _, err := io.WriteString(l.conn, question); err != nil {
		return answer{}, err
	}
	buffer := make([]byte, maxDatagram)
	for {
		n, err := l.conn.Read(buffer)
		if err != nil {
			return answer{}, fmt.Errorf("no answer: %w", err)
		}
		a, err := parseAnswer(buffer[:n])
		if err != nil || a.Echo == question {
			return a, err
		}
	}
}

func parseAnswer(content []byte) (answer, error) {
	var a answer
	if err := json.Unmarshal(content, &a); err != nil {
		return answer{}, fmt.Errorf("not an answer of probe: %w", err)
	}
	return a, nil
}

// ednsSize is how large an answer over UDP may be, in bytes: what avoids fragments (https://www.dnsflagday.net/2020/).
const ednsSize = 1232

// resolver looks names up with one question for each name and type: see the package's comment.
type resolver struct {
	resolvConf string
	timeout    time.Duration
}

// configOf returns what resolv.conf says. Having no nameserver is an error.
func configOf(resolvConf string) (*dns.ClientConfig, error) {
	config, err := dns.ClientConfigFromFile(resolvConf)
	if err != nil {
		return nil, err
	}
	if len(config.Servers) == 0 {
		return nil, fmt.Errorf("%s names no nameserver", resolvConf)
	}
	// The root as a search domain adds nothing to a name but an empty label.
	config.Search = slices.DeleteFunc(config.Search, func(domain string) bool { return domain == "." })
	return config, nil
}

// serverOf returns the address of the first nameserver, as HOST:PORT. A line of resolv.conf has no port; those that the
// tests write have one.
func serverOf(config *dns.ClientConfig) string {
	first := config.Servers[0]
	if _, err := netip.ParseAddrPort(first); err == nil {
		return first
	}
	return net.JoinHostPort(first, config.Port)
}

// lookup returns the address to dial for a host: itself if it is one, else the first address of its name.
func (r resolver) lookup(ctx context.Context, host string, types []uint16) (netip.Addr, error) {
	if address, err := netip.ParseAddr(host); err == nil {
		return address, nil
	}
	config, err := configOf(r.resolvConf)
	if err != nil {
		return netip.Addr{}, err
	}
	client := &dns.Client{Net: "udp", Timeout: r.timeout}
	names := config.NameList(host)
	for _, name := range names {
		for _, kind := range types {
			reply, err := exchange(ctx, client, serverOf(config), name, kind)
			if err != nil {
				return netip.Addr{}, fmt.Errorf("lookup %s %s: %w", name, dns.TypeToString[kind], err)
			}
			if address, ok := firstAddress(reply); ok {
				return address, nil
			}
			if reply.Rcode != dns.RcodeSuccess && reply.Rcode != dns.RcodeNameError {
				return netip.Addr{}, fmt.Errorf("lookup %s %s: %s", name, dns.TypeToString[kind], dns.RcodeToString[reply.Rcode])
			}
			if reply.Truncated {
				return netip.Addr{}, fmt.Errorf("lookup %s %s: the answer is truncated and has no address", name, dns.TypeToString[kind])
			}
		}
	}
	return netip.Addr{}, fmt.Errorf("lookup %s: no address: asked for %s", host, strings.Join(names, ", "))
}

// exchange sends one question once and returns its reply.
func exchange(ctx context.Context, client *dns.Client, server, name string, kind uint16) (*dns.Msg, error) {
	question := new(dns.Msg)
	question.SetQuestion(name, kind)
	question.SetEdns0(ednsSize, false)
	reply, _, err := client.ExchangeContext(ctx, question, server)
	return reply, err
}

func firstAddress(reply *dns.Msg) (netip.Addr, bool) {
	for _, record := range reply.Answer {
		var address netip.Addr
		switch r := record.(type) {
		case *dns.A:
			address, _ = netip.AddrFromSlice(r.A)
		case *dns.AAAA:
			address, _ = netip.AddrFromSlice(r.AAAA)
		}
		if address.IsValid() {
			return address.Unmap(), true
		}
	}
	return netip.Addr{}, false
}
