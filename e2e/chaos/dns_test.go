// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/tombolo-mcs/tombolo/e2e/chaos/oracle"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// corefile has nothing cached, so that what is asked is answered from what the API server has reported.
const corefile = `.:%d {
	bind 127.0.0.1
	errors
	clusterset clusterset.local {
		kubeconfig %s
		startup_timeout 1m
	}
}
`

type resolver struct {
	*agent // it is run like one

	member  *member
	address string
}

// startDNS starts a member's CoreDNS and returns when it answers.
func (w *world) startDNS(t *testing.T, m *member, path string) {
	t.Helper()
	w.resolver = &resolver{agent: &agent{path: path, folder: m.folder(), name: "coredns"}, member: m}
	t.Cleanup(func() { lab.Must(t, w.resolver.kill()) })
	var last error
	for range 5 { // another user may be quicker to take the port
		lab.Must(t, w.resolver.listenSomewhere())
		lab.Must(t, w.resolver.start())
		if last = w.resolver.awaitVersion(t.Context()); last == nil {
			return
		}
		lab.Must(t, w.resolver.kill())
	}
	t.Fatalf("CoreDNS does not answer: %v\n%s", last, w.resolver.tail(20))
}

// listenSomewhere gives CoreDNS a port that is free for UDP and TCP.
func (r *resolver) listenSomewhere() error {
	port, err := lab.FreePort()
	if err != nil {
		return err
	}
	r.address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	path := filepath.Join(r.folder, "Corefile")
	r.args = []string{"-conf", path}
	return os.WriteFile(path, fmt.Appendf(nil, corefile, port, r.member.cluster.Kubeconfig()), 0o600)
}

// awaitVersion returns when CoreDNS has reported which version of the specification it follows.
func (r *resolver) awaitVersion(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return eventually(ctx, func(ctx context.Context) error {
		reply, err := r.exchange(ctx, "dns-version.clusterset.local.", dns.TypeTXT)
		if err == nil && reply.Rcode != dns.RcodeSuccess {
			return errors.New(dns.RcodeToString[reply.Rcode])
		}
		return err
	})
}

func (r *resolver) exchange(ctx context.Context, name string, kind uint16) (*dns.Msg, error) {
	question := new(dns.Msg)
	question.SetQuestion(name, kind)
	reply, _, err := (&dns.Client{Net: "udp", Timeout: 2 * time.Second}).ExchangeContext(ctx, question, r.address)
	if err == nil && reply.Truncated {
		reply, _, err = (&dns.Client{Net: "tcp", Timeout: 2 * time.Second}).ExchangeContext(ctx, question, r.address)
	}
	return reply, err
}

// ask adds the answers of the member's DNS to what is seen, to all that can be asked there.
func (r *resolver) ask(ctx context.Context, seen *oracle.World) error {
	i := slices.IndexFunc(seen.Clusters, func(c oracle.Cluster) bool { return c.ID == r.member.id })
	answers := map[oracle.Question]oracle.Answer{}
	for _, q := range seen.Questions(r.member.id) {
		reply, err := r.exchange(ctx, q.Name, dns.StringToType[q.Type])
		if err != nil {
			return fmt.Errorf("ask for %s %s: %w", q.Name, q.Type, err)
		}
		var records []string
		for _, record := range reply.Answer {
			records = append(records, data(record))
		}
		slices.Sort(records)
		answers[q] = oracle.Answer{Code: dns.RcodeToString[reply.Rcode], Records: strings.Join(records, ",")}
	}
	seen.Clusters[i].Answers = answers
	return nil
}

// data returns what a record says: an address, or port and target.
func data(record dns.RR) string {
	switch r := record.(type) {
	case *dns.A:
		return r.A.String()
	case *dns.AAAA:
		return r.AAAA.String()
	case *dns.SRV:
		return fmt.Sprintf("%d %s", r.Port, r.Target)
	}
	return record.String()
}
