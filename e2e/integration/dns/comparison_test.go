// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

var (
	seed   = flag.Uint64("seed", 0, "the seed of the content and the queries; 0: another one each time")
	update = flag.Bool("update", false, "write the table of differences")
)

// listOfDifferences is the table of all differences.
const listOfDifferences = "testdata/differences.txt"

// TestDifferences sends the plugin and CoreDNS' own the same queries about the same content. The replies differ as the table of
// differences describes, and in nothing else.
//
// spec: N1, N2, N3, N4, N5, N6
func TestDifferences(t *testing.T) {
	t.Parallel()
	chosen := cmp.Or(*seed, rand.Uint64())
	t.Logf("-seed=%d", chosen)
	content := newContent(chosen)
	queries := content.queries()
	t.Logf("%d objects, %d names, %d queries", len(content.objects), len(queries)/len(queryTypes), len(queries))

	c := startCluster(t)
	c.installCRDs(t)
	for _, name := range content.namespaces {
		c.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	c.create(t, content.objects...)
	const transfer = "transfer {\nto *\n}\n"
	ours := newConnection(t, startCoreDNS(t, transfer+c.clusterset()))
	theirs := newConnection(t, startCoreDNS(t, transfer+c.kubernetes("cluster.local clusterset.local", "multicluster clusterset.local")))

	documented := documentedDifferences(t)
	seen, unexplained := map[difference]int{}, map[difference]string{}
	for batch := range slices.Chunk(queries, len(queryTypes)) {
		our, their := ours.ask(t, batch...), theirs.ask(t, batch...)
		for i, q := range batch {
			for _, d := range compare(our[i], their[i]) {
				d.shape, d.qtype = content.shape(q.name), dns.TypeToString[q.qtype]
				seen[d]++
				if !documented[d] && unexplained[d] == "" {
					unexplained[d] = fmt.Sprintf("%s\nours:\n%s\nCoreDNS' own:\n%s", q, our[i], their[i])
				}
			}
		}
	}
	for d, first := range unexplained {
		t.Errorf("%d differences without an entry, %q; the first:\n%s", seen[d], d, first)
	}
	for d := range documented {
		if seen[d] == 0 {
			t.Errorf("no query shows the difference %q", d)
		}
	}
	if denied := ours.transferredAndDenied(t); len(denied) > 0 {
		t.Errorf("in a transfer, but not in replies: %v", denied)
	}
	if denied := theirs.transferredAndDenied(t); len(denied) == 0 {
		t.Error("CoreDNS' own has a record for each name of a transfer: the README says otherwise")
	}
}

type difference struct {
	shape        shape
	qtype        string
	ours, theirs string
}

func documentedDifferences(t *testing.T) map[difference]bool {
	t.Helper()
	all := map[difference]bool{}
	for _, e := range entries {
		for _, s := range e.shapes {
			for _, o := range e.outcomes {
				for qtype := range strings.FieldsSeq(o.types) {
					d := difference{s, qtype, o.ours, o.theirs}
					if all[d] {
						t.Errorf("two entries have the difference %q", d)
					}
					all[d] = true
				}
			}
		}
	}
	return all
}

// compare returns how two replies differ. If only one of them has records, that is the difference. Otherwise each section is
// compared.
func compare(ours, theirs *dns.Msg) []difference {
	if ours == nil || theirs == nil {
		return differing(outcome(ours), outcome(theirs))
	}
	all := differing(flags(ours), flags(theirs))
	if our, their := outcome(ours), outcome(theirs); our != their {
		return append(all, differing(our, their)...)
	}
	return slices.Concat(all,
		differing(records(ours.Answer), records(theirs.Answer)),
		differing(owners(ours.Answer), owners(theirs.Answer)),
		differing(numbers(ours.Answer), numbers(theirs.Answer)),
		differing("authority:"+records(ours.Ns), "authority:"+records(theirs.Ns)),
		differing("additional:"+records(ours.Extra), "additional:"+records(theirs.Extra)))
}

func differing(ours, theirs string) []difference {
	if ours == theirs {
		return nil
	}
	return []difference{{ours: ours, theirs: theirs}}
}

// outcome returns the code of a reply; for NOERROR, whether there are records.
func outcome(m *dns.Msg) string {
	switch {
	case m == nil:
		return "no reply"
	case m.Rcode != dns.RcodeSuccess:
		return dns.RcodeToString[m.Rcode]
	case len(m.Answer) == 0:
		return "NODATA"
	}
	return "records"
}

func flags(m *dns.Msg) string {
	return fmt.Sprintf("AA %t, RA %t, TC %t", m.Authoritative, m.RecursionAvailable, m.Truncated)
}

// records returns a section as text: sorted, in lower case, without serial numbers and weights, which numbers returns.
func records(section []dns.RR) string {
	var all []string
	for _, r := range section {
		same := dns.Copy(r)
		switch same := same.(type) {
		case *dns.SOA:
			same.Serial = 0
		case *dns.SRV:
			same.Weight = 0
		}
		all = append(all, strings.ToLower(same.String()))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// owners returns the owners of records, each once. Their case must be that of the query: resolvers that mix it (0x20) insist.
func owners(section []dns.RR) string {
	var all []string
	for _, r := range section {
		all = append(all, r.Header().Name)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// numbers describes serial numbers and weights.
func numbers(section []dns.RR) string {
	weights := map[uint16]bool{}
	for _, r := range section {
		switch r := r.(type) {
		case *dns.SOA:
			return map[bool]string{true: "serial number 0", false: "serial number"}[r.Serial == 0]
		case *dns.SRV:
			weights[r.Weight] = true
		}
	}
	switch {
	case len(weights) == 0:
		return ""
	case len(weights) == 1 && weights[100]:
		return "weight 100"
	case len(weights) == 1:
		return "a share of 100 as weight"
	}
	return "unequal weights"
}

// transferredAndDenied returns the names and types in a zone transfer for which a query finds no records.
func (c *connection) transferredAndDenied(t *testing.T) []query {
	t.Helper()
	envelopes, err := (&dns.Transfer{DialTimeout: waitLimit, ReadTimeout: waitLimit, WriteTimeout: waitLimit}).In(new(dns.Msg).SetAxfr(zone), c.address)
	lab.Must(t, err)
	listed := map[query]bool{}
	for e := range envelopes {
		lab.Must(t, e.Error)
		for _, r := range e.RR {
			listed[query{r.Header().Name, r.Header().Rrtype}] = true
		}
	}
	if len(listed) < 50 {
		t.Errorf("only %d names and types in a transfer", len(listed))
	}
	var denied []query
	for batch := range slices.Chunk(slices.Collect(maps.Keys(listed)), 10) {
		for i, reply := range c.ask(t, batch...) {
			if reply != nil && len(reply.Answer) == 0 {
				denied = append(denied, batch[i])
			}
		}
	}
	return denied
}

// TestListOfDifferences: the file to which the plugin's README refers lists the entries.
func TestListOfDifferences(t *testing.T) {
	var want strings.Builder
	want.WriteString("| Names | Types | Here | CoreDNS' own | Why |\n| --- | --- | --- | --- | --- |\n")
	for _, e := range entries {
		for _, o := range e.outcomes {
			want.WriteString(e.row(o))
		}
	}
	if *update {
		lab.Must(t, os.WriteFile(listOfDifferences, []byte(want.String()), 0o600))
		return
	}
	got, err := os.ReadFile(listOfDifferences)
	lab.Must(t, err)
	if diff := gocmp.Diff(want.String(), string(got)); diff != "" {
		t.Errorf("run this test with -update (-want +got):\n%s", diff)
	}
}

// row returns a row of the table in Markdown.
func (e entry) row(o outcomes) string {
	types := strings.ReplaceAll(o.types, " ", ", ")
	switch o.types {
	case everyType:
		types = "all but SOA"
	case everyTypeBut("TXT"):
		types = "all but SOA and TXT"
	}
	cell := func(outcome string) string {
		if strings.Contains(outcome, "\t") { // a record
			return "`" + strings.ReplaceAll(outcome, "\t", " ") + "`"
		}
		return outcome
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s |\n", e.names, types, cell(o.ours), cell(o.theirs), e.reason)
}
