// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tombolo-mcs/tombolo/e2e/framework/audit"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
	"github.com/tombolo-mcs/tombolo/pkg/hub"
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
		case importer, nobody, identity, quota, pacer:
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

// tells checks that what is refused of a service's records, as the command reads them, says all of some texts.
func (w *env) tells(t *testing.T, k key, texts ...string) {
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
