// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/util/wait"
)

// question is what DNS is asked.
type question struct {
	name string // with the final dot
	kind uint16 // dns.TypeA and so on
}

// answer is what DNS says: the values of the records in order, as in "10.0.0.1" or, for SRV, "80 web.demo.svc.".
type answer struct {
	code   int
	values []string
}

func (q question) String() string {
	return fmt.Sprintf("%-4s %s", dns.TypeToString[q.kind], strings.TrimSuffix(q.name, "."))
}

func (a answer) String() string {
	if a.code != dns.RcodeSuccess {
		return dns.RcodeToString[a.code]
	}
	if len(a.values) == 0 {
		return "no records"
	}
	return strings.Join(a.values, ", ")
}

// lines returns what String does, or a line for each value where that would be too long for one.
func (a answer) lines() []string {
	if text := a.String(); len(a.values) < 2 || len(text) < 48 {
		return []string{text}
	}
	return a.values
}

func (a answer) equal(b answer) bool {
	return a.code == b.code && slices.Equal(a.values, b.values)
}

// records returns the answer that has these values.
func records(values ...string) answer {
	return answer{code: dns.RcodeSuccess, values: slices.Sorted(slices.Values(values))}
}

// nameError says that a name does not exist.
var nameError = answer{code: dns.RcodeNameError}

// ask sends a question to the member's CoreDNS over UDP, and over TCP where the answer is too long for that.
func (m *member) ask(ctx context.Context, q question) (answer, error) {
	message := new(dns.Msg).SetQuestion(q.name, q.kind)
	reply, _, err := (&dns.Client{}).ExchangeContext(ctx, message, m.dns)
	if err == nil && reply.Truncated {
		reply, _, err = (&dns.Client{Net: "tcp"}).ExchangeContext(ctx, message, m.dns)
	}
	if err != nil {
		return answer{}, fmt.Errorf("asking %s for %s: %w", m.dns, q, err)
	}
	result := answer{code: reply.Rcode}
	for _, record := range reply.Answer {
		switch r := record.(type) {
		case *dns.A:
			result.values = append(result.values, r.A.String())
		case *dns.AAAA:
			result.values = append(result.values, r.AAAA.String())
		case *dns.SRV:
			result.values = append(result.values, fmt.Sprintf("%d %s", r.Port, strings.TrimSuffix(r.Target, ".")))
		case *dns.TXT:
			result.values = append(result.values, r.Txt...)
		}
	}
	slices.Sort(result.values)
	return result, nil
}

// expectDNS asks until the answer is the one wanted, and gives up after a time: then the error tells the last answer.
func (m *member) expectDNS(ctx context.Context, q question, want answer, atMost time.Duration) error {
	var got answer
	var heard bool // the last question may be cut off by the end of the time
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollInterval, atMost, true, func(ctx context.Context) (bool, error) {
		a, err := m.ask(ctx, q)
		if err == nil {
			got, heard = a, true
		}
		last = err
		return err == nil && got.equal(want), nil
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !heard:
		return last
	}
	return fmt.Errorf("%w: DNS in %s, asked for %s\n  expected: %s\n  answered: %s", errWrong, m.name, q, want, got)
}

// errWrong is the cause of all errors about what the demo shows, as opposed to how it is run.
var errWrong = errors.New("not as it should be")
