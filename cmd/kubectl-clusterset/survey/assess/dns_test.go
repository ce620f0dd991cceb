// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package assess

import (
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/memberdns"
	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// TestProblemOfDNS: a stale forward is an error. Without imports, a missing one is no problem, and neither is what is not known.
func TestProblemOfDNS(t *testing.T) {
	t.Parallel()
	imported := []mcsv1beta1.ServiceImport{{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterset.LabelManagedBy: clusterset.ManagedBy}}}}
	for name, test := range map[string]struct {
		state   memberdns.State
		imports []mcsv1beta1.ServiceImport
		want    string
	}{
		"stale":           {memberdns.Stale, nil, "error DNSStale west: It forwards. Queries that are sent there are not answered. -> Run: kubectl repair"},
		"not set":         {memberdns.NotSet, imported, "warning DNSNotSet west: It forwards. Names of the clusterset do not resolve in this cluster. -> Run: kubectl repair"},
		"not set, unused": {memberdns.NotSet, make([]mcsv1beta1.ServiceImport, 1), ""},
		"not known":       {memberdns.NotKnown, imported, ""},
		"forwarded":       {memberdns.Forwarded, imported, ""},
		"not read":        {"", imported, ""},
	} {
		a, got := &assessment{}, ""
		a.problemOfDNS(survey.MemberObjects{ID: "west", DNS: memberdns.Configuration{State: test.state, Message: "it forwards", Next: "kubectl repair"}, Imports: test.imports})
		for _, p := range a.problems {
			got += fmt.Sprintf("%s %s %s: %s -> %s", p.Severity, p.Reason, p.Member, p.Message, p.Next)
		}
		check.Equal(t, name, test.want, got)
	}
}
