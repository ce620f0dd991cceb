// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// askTimeout is how long a DNS server may take for an answer.
const askTimeout = 15 * time.Second

// corefiles serve a cluster's own names and the clusterset's, by the plugin that serves the latter. Nothing is cached, so
// that answers follow the API server at once.
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

// fqdn returns a name of the demo's namespace in the clusterset's zone.
func fqdn(name string) string { return name + "." + namespace + ".svc.clusterset.local" }

// exchange sends a question to a DNS server, over UDP, or TCP if the answer is too long for that. It returns the values of the
// records in order, as in "10.0.0.1" or, for SRV, "80 web.demo.svc.clusterset.local"; if the code is no success, that.
func exchange(ctx context.Context, server, name string, kind uint16) ([]string, error) {
	message := new(dns.Msg).SetQuestion(dns.Fqdn(name), kind)
	reply, _, err := (&dns.Client{}).ExchangeContext(ctx, message, server)
	if err == nil && reply.Truncated {
		reply, _, err = (&dns.Client{Net: "tcp"}).ExchangeContext(ctx, message, server)
	}
	if err != nil {
		return nil, fmt.Errorf("ask %s for %s: %w", server, name, err)
	}
	if reply.Rcode != dns.RcodeSuccess {
		return []string{dns.RcodeToString[reply.Rcode]}, nil
	}
	var values []string
	for _, record := range reply.Answer {
		switch r := record.(type) {
		case *dns.A:
			values = append(values, r.A.String())
		case *dns.AAAA:
			values = append(values, r.AAAA.String())
		case *dns.SRV:
			values = append(values, fmt.Sprintf("%d %s", r.Port, strings.TrimSuffix(r.Target, ".")))
		case *dns.TXT:
			values = append(values, r.Txt...)
		}
	}
	slices.Sort(values)
	return values, nil
}

// ask prints what the DNS of the demo's cluster-b answers, for those who have no dig.
func ask(ctx context.Context, name, kind string) error {
	l, err := newInstance("demo")
	if err != nil {
		return err
	}
	s, err := l.running()
	if err != nil {
		return err
	}
	code, known := dns.StringToType[strings.ToUpper(kind)]
	if !known {
		return fmt.Errorf("%q is no type of DNS records such as A, AAAA or SRV", kind)
	}
	var values []string
	err = lab.Await(ctx, interval, askTimeout, func(ctx context.Context) (err error) {
		values, err = exchange(ctx, s.Variables["DNS"], name, code)
		return err
	})
	if err != nil {
		return err
	}
	if len(values) == 0 {
		values = []string{"no records"}
	}
	fmt.Println(strings.Join(values, "\n"))
	return nil
}
