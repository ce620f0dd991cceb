// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/google/go-cmp/cmp"

	"github.com/tombolo-mcs/tombolo/e2e/framework/audit"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/internal/hub"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// shown checks that what the hub refused of these acts shows there: in its audit log, by the name that the attempt gave
// itself, and where a policy refused it in the metric of its API server.
func (w *env) shown(t *testing.T, acts []act, s setup, before map[string]int) {
	t.Helper()
	answers, err := audit.Answers(w.Hub.AuditLog())
	lab.Must(t, err)
	refused := map[string]audit.Answer{} // the last one, by the attempt
	for _, a := range answers {
		if a.Code >= http.StatusBadRequest && a.Code != http.StatusConflict {
			refused[a.UserAgent] = a
		}
	}
	denials := map[string]int{}
	for _, a := range acts {
		want, got := a.refuser(s), refused[agentOf(a.slug())]
		switch want.by {
		case rights:
			if !got.Refused || got.Code != http.StatusForbidden {
				t.Errorf("%s, %s: the audit log says %+v, not that it is forbidden", a.name, s.name, got)
			}
		case server, schemas, policies:
			if got.Refused || got.Code != http.StatusUnprocessableEntity {
				t.Errorf("%s, %s: the audit log says %+v, not that it is invalid", a.name, s.name, got)
			}
			if want.by == policies {
				denials[want.policy]++
			}
		case importer, noLayer, identity, quota, pacer:
		}
	}
	after, err := w.Hub.Denials(t.Context())
	lab.Must(t, err)
	for policy, want := range denials {
		if got := after[policy] - before[policy]; got < want {
			t.Errorf("policy %s has denied %d requests by the metric, want %d", policy, got, want)
		}
	}
}

// logged checks that the audit log has answers with a status to an attempt.
func (w *env) logged(t *testing.T, slug string, code int) {
	t.Helper()
	answers, err := audit.Answers(w.Hub.AuditLog())
	lab.Must(t, err)
	if !slices.ContainsFunc(answers, func(a audit.Answer) bool { return a.UserAgent == agentOf(slug) && a.Code == code }) {
		t.Errorf("the audit log does not say that %s got %d", slug, code)
	}
}

// reports checks that what is refused of a service's records, as the command reads them, says all of some texts.
func (w *env) reports(t *testing.T, k key, texts ...string) {
	t.Helper()
	seen, err := hub.Read(t.Context(), w.HubClient)
	lab.Must(t, err)
	refused := fmt.Sprint(errors.Join(seen.Store("c", clusterset.AddressRanges{}).Service(k).Refused...))
	for _, text := range texts {
		if !strings.Contains(refused, text) {
			t.Errorf("refused of %s, without %q: %s", k, text, refused)
		}
	}
}

var heads = []string{"Act", "Refused by", "Shown in", "Without policies, by", "Shown in", "Nor schemas, by"}

// rows returns what becomes of each act on each hub.
func rows() [][]string {
	var result [][]string
	for _, a := range append(everything(), lasting()...) {
		last := ""
		if a.refuser(withoutPolicies).by == schemas {
			last = a.outcome(withoutSchemas)
		}
		result = append(result, []string{
			a.name, a.outcome(asReleased), a.shown(asReleased), a.outcome(withoutPolicies), a.shown(withoutPolicies), last,
		})
	}
	return result
}

// closing returns the table for those who run the test.
func closing(t *testing.T) string {
	t.Helper()
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{heads}, rows()...) {
		_, err := table.Write([]byte(strings.Join(row, "\t") + "\n"))
		lab.Must(t, err)
	}
	lab.Must(t, table.Flush())
	return text.String()
}

// TestDocument: testdata/acts.txt, to which docs/security.md refers, has all acts, and what becomes of them.
func TestDocument(t *testing.T) {
	t.Parallel()
	const document = "testdata/acts.txt"
	got, err := os.ReadFile(document)
	lab.Must(t, err)
	var want []string
	for _, row := range append([][]string{heads, strings.Split(strings.Repeat("---,", len(heads)-1)+"---", ",")}, rows()...) {
		want = append(want, strings.TrimRight("| "+strings.Join(row, " | "), " ")+" |")
	}
	if diff := cmp.Diff(strings.Join(want, "\n")+"\n", string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s\nThe table as it is to be:\n%s", document, diff, strings.Join(want, "\n"))
	}
}
