// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// zone is the domain of the clusterset.
const zone = "clusterset.local."

// portAttempts bounds the search for a port that nobody takes in the moment before CoreDNS does.
const portAttempts = 5

// corefiles serve a cluster's own names and the clusterset's, with the plugin that DNS names in the environment: ours, or
// CoreDNS' own. Nothing is cached, so that what the demo asks is answered from what the API server has told.
var corefiles = map[string]string{
	"clusterset": `.:%[1]d {
	bind 127.0.0.1
	errors
	log
	clusterset clusterset.local {
		kubeconfig %[2]s
		startup_timeout 1m
	}
	kubernetes cluster.local {
		kubeconfig %[2]s
		startup_timeout 1m
	}
}
`,
	"kubernetes": `.:%[1]d {
	bind 127.0.0.1
	errors
	log
	kubernetes cluster.local clusterset.local {
		kubeconfig %[2]s
		multicluster clusterset.local
		startup_timeout 1m
	}
}
`,
}

// corefile returns the Corefile of a CoreDNS that listens on a port.
func corefile(port int, kubeconfig string) ([]byte, error) {
	plugin := cmp.Or(os.Getenv("DNS"), "clusterset")
	text, ok := corefiles[plugin]
	if !ok {
		return nil, fmt.Errorf("DNS=%s: must be clusterset, the plugin of ours, or kubernetes, CoreDNS' own", plugin)
	}
	return fmt.Appendf(nil, text, port, kubeconfig), nil
}

// startCoreDNS starts the CoreDNS of a member and returns when it answers, which it does once it knows the cluster.
func (m *member) startCoreDNS(ctx context.Context) error {
	path, err := findProgram("coredns")
	if err != nil {
		return err
	}
	for range portAttempts {
		port, err := lab.FreePort()
		if err != nil {
			return err
		}
		text, err := corefile(port, m.cluster.Kubeconfig())
		if err != nil {
			return err
		}
		file := filepath.Join(m.folder(), "Corefile")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			return err
		}
		p, err := startProgram(m.folder(), path, "-conf", file)
		if err != nil {
			return err
		}
		m.programs = append(m.programs, p)
		m.dns = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if err = m.awaitDNS(ctx, p); err == nil {
			return nil
		}
		if p.ended() == nil || lab.IsPortFree(port) {
			return err
		}
		m.programs = m.programs[:len(m.programs)-1] // somebody else has the port
	}
	return errors.New("no port for CoreDNS: others take each that is found free")
}

// awaitDNS returns when CoreDNS answers.
func (m *member) awaitDNS(ctx context.Context, p *program) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, patience, true, func(ctx context.Context) (bool, error) {
		if err := p.ended(); err != nil {
			return false, err
		}
		var got answer
		got, last = m.ask(ctx, question{"dns-version." + zone, dns.TypeTXT})
		return last == nil && got.code == dns.RcodeSuccess, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("%s does not answer (%w): %w", p.name, last, err)
	}
	return err
}
