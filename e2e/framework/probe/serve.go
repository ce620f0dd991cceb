// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sync/errgroup"
)

// headerTimeout is how long a client may take to say what it wants, and so how long one that says nothing can delay the end.
const headerTimeout = 10 * time.Second

// unready is a file whose presence makes the server unready: /readyz answers 503.
const unready = "/tmp/unready"

// maxDatagram is more than any question or answer of probe has, and maxEcho is how much of a datagram an answer repeats: in bytes.
const maxDatagram, maxEcho = 2048, 64

// answer is what a server says of itself and of who asked.
type answer struct {
	Cluster string `json:"cluster"`
	Pod     string `json:"pod"`
	Node    string `json:"node"`
	// Port is the one that the server listens on.
	Port int `json:"port"`
	// Client is the IP address from which the server saw the request come.
	Client string `json:"client"`
	// Echo is the beginning of the datagram that is answered. A client of UDP finds by it which question was answered.
	Echo string `json:"echo,omitempty"`
}

// serving is printed once all ports are open.
type serving struct {
	Serving struct {
		TCP []int `json:"tcp"`
		UDP []int `json:"udp"`
	} `json:"serving"`
}

type server struct {
	world    world
	identity answer
	linger   time.Duration
	stopping atomic.Bool

	listeners []net.Listener
	sockets   []datagrams
}

func serve(ctx context.Context, args []string, w world) error {
	flags := newFlags("serve", "")
	tcp := flags.String("tcp", "8080", "the `ports` for HTTP, with commas between them")
	udp := flags.String("udp", "8080", "the `ports` for UDP")
	linger := flags.Duration("linger", 5*time.Second, "how long to serve on after SIGTERM, unready")
	if _, err := parse(flags, args, w); err != nil {
		return err
	}
	tcpPorts, tcpErr := parsePorts("tcp", *tcp)
	udpPorts, udpErr := parsePorts("udp", *udp)
	if err := errors.Join(tcpErr, udpErr); err != nil {
		return err
	}
	if len(tcpPorts)+len(udpPorts) == 0 {
		return usageError{"probe: no port: state -tcp or -udp"}
	}
	s := &server{
		world: w, linger: *linger,
		identity: answer{Cluster: w.getenv("CLUSTER"), Pod: w.getenv("POD"), Node: w.getenv("NODE")},
	}
	listening, err := s.open(ctx, tcpPorts, udpPorts)
	if err == nil {
		err = json.NewEncoder(w.out).Encode(listening)
	}
	if err != nil {
		return errors.Join(err, closeAll(s.listeners), closeAll(s.sockets))
	}
	return s.run(ctx)
}

func (s *server) open(ctx context.Context, tcp, udp []int) (serving, error) {
	var listening serving
	for _, port := range tcp {
		listener, err := listenTCP(ctx, port)
		if err != nil {
			return serving{}, err
		}
		s.listeners = append(s.listeners, listener)
		listening.Serving.TCP = append(listening.Serving.TCP, portOf(listener.Addr()))
	}
	for _, port := range udp {
		socket, err := listenUDP(ctx, port)
		if err != nil {
			return serving{}, err
		}
		s.sockets = append(s.sockets, socket)
		listening.Serving.UDP = append(listening.Serving.UDP, portOf(socket.LocalAddr()))
	}
	return listening, nil
}

// run serves until ctx ends, lingers, and returns when the requests that are open then are answered. http.Server.Shutdown
// would drop those that it has not read to their end, so the listeners are closed here and the connections waited for.
func (s *server) run(ctx context.Context) error {
	var open sync.WaitGroup
	web := &http.Server{Handler: s.routes(), ReadHeaderTimeout: headerTimeout}
	web.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			open.Add(1)
		case http.StateClosed:
			open.Done()
		default:
		}
	}
	group, failed := errgroup.WithContext(context.WithoutCancel(ctx))
	for _, listener := range s.listeners {
		group.Go(func() error {
			if err := web.Serve(listener); !errors.Is(err, net.ErrClosed) {
				return err
			}
			return nil
		})
	}
	for _, socket := range s.sockets {
		group.Go(func() error { return s.echo(socket) })
	}
	group.Go(func() error {
		select {
		case <-ctx.Done():
			s.stopping.Store(true)
			select {
			case <-s.world.after(s.linger):
			case <-failed.Done():
			}
		case <-failed.Done():
		}
		return errors.Join(closeAll(s.listeners), closeAll(s.sockets))
	})
	err := group.Wait()
	web.SetKeepAlivesEnabled(false) // closes what is idle
	open.Wait()
	return err
}

func (s *server) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/readyz", s.readyz)
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		port := 0
		if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
			port = portOf(local)
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(s.answer(port, r.RemoteAddr)); err != nil {
			fmt.Fprintf(s.world.err, "probe: answer %s: %v\n", r.RemoteAddr, err)
		}
	})
	return mux
}

func (s *server) readyz(w http.ResponseWriter, _ *http.Request) {
	_, err := os.Stat(unready)
	switch {
	case s.stopping.Load():
		http.Error(w, "stopping", http.StatusServiceUnavailable)
	case err == nil:
		http.Error(w, unready+" exists", http.StatusServiceUnavailable)
	case !errors.Is(err, os.ErrNotExist):
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	default:
		fmt.Fprintln(w, "ok")
	}
}

// echo answers the datagrams of a socket until it is closed.
func (s *server) echo(socket datagrams) error {
	return socket.answerEach(s.world.err, func(content []byte, peer string) ([]byte, error) {
		a := s.answer(portOf(socket.LocalAddr()), peer)
		a.Echo = string(content[:min(len(content), maxEcho)])
		text, err := json.Marshal(a)
		return append(text, '\n'), err
	})
}

// answer returns the answer to a peer, whose port is unknown.
func (s *server) answer(port int, peer string) answer {
	a := s.identity
	a.Port, a.Client = port, peer
	if parsed, err := netip.ParseAddrPort(peer); err == nil {
		a.Client = parsed.Addr().WithZone("").String()
	}
	return a
}

// parsePorts returns the ports of a list such as 8080,81; none for "". Port 0 is any that is free.
func parsePorts(flag, list string) ([]int, error) {
	if list == "" {
		return nil, nil
	}
	var ports []int
	for text := range strings.SplitSeq(list, ",") {
		port, err := strconv.ParseUint(text, 10, 16)
		if err != nil || port != 0 && slices.Contains(ports, int(port)) {
			return nil, usageError{fmt.Sprintf("probe: -%s=%s: must be different ports, as in 8080,81", flag, list)}
		}
		ports = append(ports, int(port))
	}
	return ports, nil
}

// listenTCP listens on a port of all addresses of the host, in each IP family that it has.
func listenTCP(ctx context.Context, port int) (net.Listener, error) {
	return new(net.ListenConfig).Listen(ctx, "tcp", ":"+strconv.Itoa(port))
}

// datagrams is a UDP socket that answers from the address to which a datagram was sent. Without that, it would answer from the one
// that the route suggests, and the peer would not take that for an answer where the host has several, as a pod with the host's
// network has.
type datagrams struct{ *net.UDPConn }

// listenUDP is listenTCP for UDP.
func listenUDP(ctx context.Context, port int) (datagrams, error) {
	conn, err := new(net.ListenConfig).ListenPacket(ctx, "udp", ":"+strconv.Itoa(port))
	if err != nil {
		return datagrams{}, err
	}
	// A host may lack one family, and its socket the option of that family.
	err6 := ipv6.NewPacketConn(conn).SetControlMessage(ipv6.FlagDst, true)
	err4 := ipv4.NewPacketConn(conn).SetControlMessage(ipv4.FlagDst, true)
	if err6 != nil && err4 != nil {
		return datagrams{}, errors.Join(err6, err4, conn.Close())
	}
	return datagrams{conn.(*net.UDPConn)}, nil
}

// answerEach answers each datagram, until the socket is closed. An answer that cannot be sent concerns one peer: it is only reported.
func (d datagrams) answerEach(report io.Writer, answer func(content []byte, peer string) ([]byte, error)) error {
	buffer := make([]byte, maxDatagram)
	for {
		n, session, err := dns.ReadFromSessionUDP(d.UDPConn, buffer)
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("udp %s: %w", d.LocalAddr(), err)
		}
		content, err := answer(buffer[:n], session.RemoteAddr().String())
		if err != nil {
			return err
		}
		if _, err := dns.WriteToSessionUDP(d.UDPConn, content, session); err != nil {
			fmt.Fprintf(report, "probe: udp %s: answer %s: %v\n", d.LocalAddr(), session.RemoteAddr(), err)
		}
	}
}

func closeAll[S io.Closer](sockets []S) error {
	var errs []error
	for _, s := range sockets {
		if err := s.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func portOf(address net.Addr) int {
	if a, ok := address.(interface{ AddrPort() netip.AddrPort }); ok {
		return int(a.AddrPort().Port())
	}
	return 0
}
