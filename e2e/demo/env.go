// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tombolo-mcs/tombolo/e2e/framework/background"
)

// env prints, for a shell to evaluate, where the clusters and the DNS of cluster-b are.
func env(l *background.Lab) error {
	s, err := running(l)
	if err != nil {
		return err
	}
	words := []string{"export"}
	for _, name := range slices.Sorted(maps.Keys(s.Variables)) {
		words = append(words, name+"="+s.Variables[name])
	}
	fmt.Println(strings.Join(words, " "))
	return nil
}

// running returns the state of the demo that up left running.
func running(l *background.Lab) (background.State, error) {
	s, err := l.Running()
	if errors.Is(err, background.ErrNotUp) {
		return s, fmt.Errorf("%w: start one with make demo-up", err)
	}
	return s, err
}

// askPatience is how long a DNS server may take for an answer.
const askPatience = 15 * time.Second

// ask asks the DNS of cluster-b for a name and prints what it answers, for those who have no dig.
func ask(ctx context.Context, l *background.Lab, name, kind string) error {
	s, err := running(l)
	if err != nil {
		return err
	}
	code, known := dns.StringToType[strings.ToUpper(kind)]
	if !known {
		return fmt.Errorf("%q is no type of DNS records such as A, AAAA or SRV", kind)
	}
	var a answer
	var last error
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, askPatience, true, func(ctx context.Context) (bool, error) {
		a, last = (&member{dns: s.Variables["DNS"]}).ask(ctx, question{dns.Fqdn(name), code})
		return last == nil, nil
	})
	if err != nil {
		return errors.Join(last, err)
	}
	for _, line := range a.lines() {
		fmt.Println(line)
	}
	return nil
}
