// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"github.com/tombolo-mcs/tombolo/e2e/bench/results"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// pairKind is what forwards from the clients to the backend.
type pairKind string

const (
	tombolo pairKind = "tombolo"
	// haproxy has its default settings, largeHAProxy buffers of 64 KiB.
	haproxy      pairKind = "haproxy"
	largeHAProxy pairKind = "haproxy-64k"
	// before is a pair of gateways of an earlier commit.
	before pairKind = "before"
	// direct is no pair: the clients connect to the backend.
	direct pairKind = "direct"
	// These decide about access by a number of policies.
	withoutPolicies pairKind = "tombolo-policies-0"
	with10          pairKind = "tombolo-policies-10"
	with1000        pairKind = "tombolo-policies-1000"
)

var (
	pairKinds = []pairKind{tombolo, before, haproxy, largeHAProxy, direct, withoutPolicies, with10, with1000}
	policies  = map[pairKind]int{withoutPolicies: 0, with10: 10, with1000: 1000}
)

// forwardsAs returns what forwards: policies do not change that.
func (k pairKind) forwardsAs() pairKind {
	if _, decides := policies[k]; decides {
		return tombolo
	}
	return k
}

// isGateways reports whether it is a pair of gateways.
func (k pairKind) isGateways() bool { return k.forwardsAs() == tombolo || k == before }

// pair is two running processes: the clients connect to one, which forwards by mutual TLS to the other, which forwards to the backend.
type pair struct {
	kind    pairKind
	client  string   // the address for clients
	from    net.Addr // of the clients; nil for any
	denied  string   // for clients that are denied; empty for none
	between string   // of the exporting gateway, for the other one
	files   map[clusterset.ClusterID]certificates
	sites   *sites // where it runs
	// processes are the exporting and the importing one.
	processes []*exec.Cmd
	errors    []*bytes.Buffer // what each has written
	restart   func() error    // starts the exporting gateway again, after it was killed
}

// pairOptions are the options of a pair of gateways.
type pairOptions struct {
	// denies has the exporting gateway deny the clients of an address of their own.
	denies bool
	// gateways are the addresses of the exporting gateway and of others that do not serve; empty for the one that serves.
	gateways func(serving string) []string
}

func (b *bench) startPair(ctx context.Context, folder string, kind pairKind, backend string, at *sites, options pairOptions) (*pair, error) {
	p, err := b.startCold(ctx, folder, kind, backend, at, options)
	if err != nil {
		return nil, err
	}
	return p.awaitReady(ctx, nil)
}

// startCold starts a pair, and does not await that it serves.
func (b *bench) startCold(ctx context.Context, folder string, kind pairKind, backend string, at *sites, options pairOptions) (p *pair, err error) {
	p = &pair{kind: kind, client: backend, sites: at}
	if kind == direct {
		return p, nil
	}
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	if p.files, err = writeCertificates(folder); err != nil {
		return nil, err
	}
	if p.between, err = freeAddress(at.far); err != nil {
		return nil, err
	}
	if p.client, err = freeAddress(at.near); err != nil {
		return nil, err
	}
	if !kind.isGateways() {
		return p, errors.Join(
			p.startHAProxy(ctx, at.far, folder, "west", p.between+" ssl "+mutual(p.files[west], p.files[east]), backend),
			p.startHAProxy(ctx, at.near, folder, "east", p.client, p.between+" ssl "+mutual(p.files[east], p.files[west])),
		)
	}
	exporting := p.gatewayOf(west, east)
	exporting.Export = &exportConfig{Listen: p.between, Backend: backend, Denies: options.denies}
	importing := p.gatewayOf(east, west)
	importing.Import = &importConfig{Listen: p.client, Cluster: west, Gateways: []string{p.between}}
	if options.gateways != nil {
		importing.Import.Gateways = options.gateways(p.between)
	}
	if options.denies {
		if p.denied, err = freeAddress(at.near); err != nil {
			return nil, err
		}
		importing.Import.Denied = p.denied
	}
	p.restart = func() error { return p.startRole(ctx, at.far, b.program(kind), exporting, gatewayRole) }
	err = p.restart()
	if err == nil {
		err = p.awaitAccepting(ctx, at.far, p.between)
	}
	if err == nil {
		err = p.startRole(ctx, at.near, b.program(kind), importing, gatewayRole)
	}
	return p, err
}

// gatewayOf returns the configuration that all gateways of a cluster have.
func (p *pair) gatewayOf(own, other clusterset.ClusterID) roleConfig {
	c := roleConfig{Name: string(own), Certificates: p.files[own], Trusted: p.files[other], Streams: 100_000}
	if n, decides := policies[p.kind]; decides {
		c.Policies = &n
	}
	return c
}

// program returns the program that has the role of a gateway.
func (b *bench) program(kind pairKind) string {
	if kind == before {
		return filepath.Join(b.before, "gateway")
	}
	return b.self
}

// startBackend starts the process to which the pairs forward.
func (b *bench) startBackend(ctx context.Context, at side) (*pair, error) {
	address, err := freeAddress(at)
	if err != nil {
		return nil, err
	}
	p := &pair{kind: direct, client: address, sites: &sites{near: at}}
	return p.awaitReady(ctx, p.startRole(ctx, at, b.program(direct), roleConfig{Listen: address}, backendRole))
}

// freeAddress returns an address of a side at which nothing listens. The kernel gives the same port again only after many others.
func freeAddress(at side) (address string, err error) {
	err = at.within(func() error {
		listener, err := net.Listen("tcp", net.JoinHostPort(at.host(), "0"))
		if err != nil {
			return err
		}
		address = listener.Addr().String()
		return listener.Close()
	})
	return address, err
}

func (p *pair) startRole(ctx context.Context, at side, program string, c roleConfig, role string, env ...string) error {
	config, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return p.start(at.command(ctx, program), append(env, roleVariable+"="+role, configVariable+"="+string(config))...)
}

// awaitAccepting returns when a process of the pair listens at an address.
func (p *pair) awaitAccepting(ctx context.Context, at side, address string) error {
	err := lab.Await(ctx, time.Millisecond, 20*time.Second, func(context.Context) error {
		return at.within(func() error {
			conn, err := net.Dial("tcp", address)
			if err == nil {
				err = conn.Close()
			}
			return err
		})
	})
	return p.withOutput(err)
}

func (p *pair) startHAProxy(ctx context.Context, at side, folder, name, bind, server string) error {
	buffers := ""
	if p.kind == largeHAProxy {
		buffers = "\n  tune.bufsize 65536"
	}
	config := fmt.Sprintf(`global
  maxconn 9900%s
defaults
  mode tcp
  timeout connect 10s
  timeout client 10m
  timeout server 10m
listen gateway
  bind %s
  server next %s
`, buffers, bind, server)
	path := filepath.Join(folder, name+".cfg")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		return err
	}
	return p.start(at.command(ctx, "haproxy", "-db", "-f", path))
}

func (p *pair) start(cmd *exec.Cmd, env ...string) error {
	var output bytes.Buffer
	cmd.Env, cmd.Stderr, cmd.Stdout = append(os.Environ(), env...), &output, &output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.processes, p.errors = append(p.processes, cmd), append(p.errors, &output)
	return nil
}

// awaitReady returns the pair when a request is answered, if its processes were started without an error. Else it stops them.
func (p *pair) awaitReady(ctx context.Context, err error) (*pair, error) {
	if err == nil {
		err = lab.Await(ctx, 20*time.Millisecond, 20*time.Second, func(ctx context.Context) error { _, err := p.request(ctx); return err })
	}
	if err == nil {
		return p, nil
	}
	return nil, p.withOutput(err)
}

// withOutput adds what the processes have written to an error.
func (p *pair) withOutput(err error) error {
	if err == nil {
		return nil
	}
	p.stop()
	for _, output := range p.errors {
		err = fmt.Errorf("%w\n%s", err, output)
	}
	return err
}

func (p *pair) stop() {
	for _, cmd := range p.processes {
		_ = cmd.Process.Signal(syscall.SIGTERM) // for the profile
		killed := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		killed.Stop()
	}
	p.processes = nil
}

// cpu returns the seconds of CPU that both processes have used.
func (p *pair) cpu() (float64, error) {
	return p.total(func(s procfs.ProcStat) float64 { return s.CPUTime() })
}

// memory returns the resident memory of both processes, in bytes.
func (p *pair) memory() (float64, error) {
	return p.total(func(s procfs.ProcStat) float64 { return float64(s.ResidentMemory()) })
}

func (p *pair) total(of func(procfs.ProcStat) float64) (total float64, err error) {
	for _, cmd := range p.processes {
		stat, err := results.StatOf(cmd.Process.Pid)
		if err != nil {
			return 0, err
		}
		total += of(stat)
	}
	return total, nil
}
