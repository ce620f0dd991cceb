// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/miekg/dns"
)

// errNotUp says that there is no demo to look into.
var errNotUp = errors.New("no demo is running: start one with make demo-up")

// running returns the state of the demo that up left running.
func running() (state, error) {
	h, err := newHome()
	if err != nil {
		return state{}, err
	}
	switch lock, err := h.claim(); {
	case err == nil:
		return state{}, errors.Join(errNotUp, lock.Close())
	case !errors.Is(err, errRuns):
		return state{}, err
	}
	s, err := h.read()
	if err == nil && s.Guide == "" {
		err = errNotUp
	}
	return s, err
}

// env prints, for a shell to evaluate, where the clusters and the DNS of cluster-b are.
func env() error {
	s, err := running()
	if err != nil {
		return err
	}
	fmt.Printf("export HUB=%s A=%s B=%s DNS=%s\n", s.Hub, s.A, s.B, s.DNS)
	return nil
}

// ask asks the DNS of cluster-b for a name and prints what it answers, for those who have no dig.
func ask(ctx context.Context, name, kind string) error {
	s, err := running()
	if err != nil {
		return err
	}
	code, known := dns.StringToType[strings.ToUpper(kind)]
	if !known {
		return fmt.Errorf("%q is no type of DNS records such as A, AAAA or SRV", kind)
	}
	a, err := (&member{dns: s.DNS}).ask(ctx, question{dns.Fqdn(name), code})
	if err != nil {
		return err
	}
	for _, line := range a.lines() {
		fmt.Println(line)
	}
	return nil
}
