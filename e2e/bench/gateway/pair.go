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
	"github.com/tombolo-mcs/tombolo/pkg/gateway/identity"
)

// pairKind is what forwards from the clients to the backend.
type pairKind string

const (
	tombolo pairKind = "tombolo"
	// haproxy has its default settings, largeHAProxy buffers of 64 KiB.
	haproxy      pairKind = "haproxy"
	largeHAProxy pairKind = "haproxy-64k"
	// direct is no pair: the clients connect to the backend.
	direct pairKind = "direct"
	// These decide about access by a number of policies.
	withoutPolicies pairKind = "tombolo-policies-0"
	with10          pairKind = "tombolo-policies-10"
	with1000        pairKind = "tombolo-policies-1000"
)

var (
	pairKinds = []pairKind{tombolo, haproxy, largeHAProxy, direct, withoutPolicies, with10, with1000}
	policies  = map[pairKind]int{withoutPolicies: 0, with10: 10, with1000: 1000}
)

// forwardsAs returns what forwards: policies do not change that.
func (k pairKind) forwardsAs() pairKind {
	if _, decides := policies[k]; decides {
		return tombolo
	}
	return k
}

// pair is two running processes: the clients connect to one, which forwards by mutual TLS to the other, which forwards to the backend.
type pair struct {
	kind      pairKind
	client    string // the address for clients
	sites     *sites // where it runs
	processes []*exec.Cmd
	errors    []*bytes.Buffer // what each has written
}

func startPair(ctx context.Context, folder string, kind pairKind, backend string, at *sites) (*pair, error) {
	if kind == direct {
		return &pair{kind: kind, client: backend, sites: at}, nil
	}
	files, err := writeCertificates(folder)
	if err != nil {
		return nil, err
	}
	p := &pair{kind: kind, sites: at}
	between, err := freeAddress(at.far)
	if err != nil {
		return nil, err
	}
	if p.client, err = freeAddress(at.near); err != nil {
		return nil, err
	}
	if kind.forwardsAs() == tombolo {
		exporting := roleConfig{Listen: between, Forward: backend, Certificates: files[west], Trusted: files[east]}
		importing := roleConfig{Listen: p.client, Forward: between, Certificates: files[east], Trusted: files[west]}
		if n, decides := policies[kind]; decides {
			exporting.Policies, importing.Policies = &n, &n
		}
		err = errors.Join(p.startRole(ctx, at.far, exporting, exportRole), p.startRole(ctx, at.near, importing, importRole))
	} else {
		err = errors.Join(
			p.startHAProxy(ctx, at.far, folder, "west", between+" ssl "+mutual(files[west], files[east]), backend),
			p.startHAProxy(ctx, at.near, folder, "east", p.client, between+" ssl "+mutual(files[east], files[west])),
		)
	}
	return p.awaitReady(ctx, err)
}

// startBackend starts the process to which the pairs forward.
func startBackend(ctx context.Context, at side) (*pair, error) {
	address, err := freeAddress(at)
	if err != nil {
		return nil, err
	}
	p := &pair{kind: direct, client: address, sites: &sites{near: at}}
	return p.awaitReady(ctx, p.startRole(ctx, at, roleConfig{Listen: address}, backendRole))
}

const (
	east clusterset.ClusterID = "east"
	west clusterset.ClusterID = "west"
)

// certificates are the files of one side.
type certificates struct {
	Leaf   string // certificate and key
	Bundle string // the authority
}

func writeCertificates(folder string) (map[clusterset.ClusterID]certificates, error) {
	result := map[clusterset.ClusterID]certificates{}
	for _, id := range []clusterset.ClusterID{east, west} {
		authority, err := identity.NewAuthority(id, time.Now())
		if err != nil {
			return nil, err
		}
		certificate, key, err := authority.Issue(identity.Name{ClusterSet: "bench", Cluster: id}, time.Now())
		if err != nil {
			return nil, err
		}
		files := certificates{filepath.Join(folder, string(id)+".pem"), filepath.Join(folder, string(id)+"-ca.pem")}
		if err := os.WriteFile(files.Leaf, append(bytes.Clone(certificate), key...), 0o600); err != nil {
			return nil, err
		}
		bundle := identity.EncodeBundle([]identity.Authority{authority})
		if err := os.WriteFile(files.Bundle, []byte(bundle), 0o600); err != nil {
			return nil, err
		}
		result[id] = files
	}
	return result, nil
}

// mutual returns the settings of HAProxy for mutual TLS 1.3 with the cipher that Go prefers on this processor.
func mutual(own, other certificates) string {
	return fmt.Sprintf("crt %s ca-file %s verify required ssl-min-ver TLSv1.3 ciphersuites TLS_AES_128_GCM_SHA256", own.Leaf, other.Bundle)
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

func (p *pair) startRole(ctx context.Context, at side, c roleConfig, role string) error {
	config, err := json.Marshal(c)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	return p.start(at.command(ctx, self), roleVariable+"="+role, configVariable+"="+string(config))
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
	p.stop()
	for _, output := range p.errors {
		err = fmt.Errorf("%w\n%s", err, output)
	}
	return nil, err
}

func (p *pair) stop() {
	for _, cmd := range p.processes {
		_ = cmd.Process.Signal(syscall.SIGTERM) // for the profile
		killed := time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait()
		killed.Stop()
	}
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
