// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dns_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/miekg/dns"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
)

const zone = "clusterset.local."

// The stanzas that are compared. CoreDNS' own is what kubeadm writes, for the clusterset's zone as well.
const (
	ours = `clusterset clusterset.local {
		kubeconfig %s
		startup_timeout 1m
	}`
	theirs = `kubernetes cluster.local clusterset.local {
		kubeconfig %s
		pods insecure
		multicluster clusterset.local
		startup_timeout 1m
	}`
)

var seed = flag.Uint64("seed", 0, "the seed of the content and the questions; 0: another one each time")

// TestContent asks for names of every shape. Its parts share an API server, which costs more to start than most of what is asked.
func TestContent(t *testing.T) { //nolint:tparallel // the last part changes what the others ask for
	t.Parallel()
	c := newContent(chosenSeed(t))
	questions := c.questions()
	w := c.serve(t)
	t.Run("Differences", func(t *testing.T) { c.testDifferences(t, w, questions) })
	t.Run("Unbound", w.testUnbound)
	t.Run("TwoInstances", func(t *testing.T) { c.testTwoInstances(t, w, questions) })
}

// testDifferences asks our plugin and CoreDNS' own the same questions about the same content. They differ in what the
// table of differences says, and in nothing else.
//
// spec: N1, N2, N3, N4, N5, N6
func (c *content) testDifferences(t *testing.T, w world, questions []question) {
	kubeconfig := w.cluster.Kubeconfig()
	we := newLine(t, startProgram(t, fmt.Sprintf(ours, kubeconfig)).tcp)
	they := newLine(t, startProgram(t, fmt.Sprintf(theirs, kubeconfig)).tcp)
	t.Logf("%d objects, %d names, %d questions", len(c.objects), len(questions)/len(asked), len(questions))
	reasons := expanded(t)
	seen := map[difference]int{}
	strange := map[difference]string{}
	for same := range slices.Chunk(questions, len(asked)) {
		our, their := we.ask(t, same...), they.ask(t, same...)
		for i, q := range same {
			for _, d := range compare(our[i], their[i]) {
				d.shape, d.kind = c.shape(q.name), dns.TypeToString[q.kind]
				seen[d]++
				if reasons[d] == "" && strange[d] == "" {
					strange[d] = fmt.Sprintf("%s\nours:\n%s\nCoreDNS' own:\n%s", q, our[i], their[i])
				}
			}
		}
	}
	for _, d := range slices.SortedFunc(maps.Keys(strange), difference.compare) {
		t.Errorf("%d differences that no entry explains, with %q; the first:\n%s", seen[d], d, strange[d])
	}
	for d := range reasons {
		if seen[d] == 0 {
			t.Errorf("no question shows the difference %q", d)
		}
	}
}

// chosenSeed returns the seed of the content and the questions, and tells it.
func chosenSeed(t *testing.T) uint64 {
	t.Helper()
	chosen := cmp.Or(*seed, rand.Uint64())
	t.Logf("-seed=%d", chosen)
	return chosen
}

// difference is how two replies to a question differ.
type difference struct {
	shape        shape
	kind         string
	in           string
	ours, theirs string
}

func (d difference) compare(other difference) int {
	return strings.Compare(fmt.Sprint(d), fmt.Sprint(other))
}

// serve starts an API server with the content.
func (c *content) serve(t *testing.T) world {
	t.Helper()
	w := start(t)
	if err := membership.InstallCRDs(t.Context(), w.cluster); err != nil {
		t.Fatal(err)
	}
	for _, name := range c.namespaces {
		w.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	w.create(t, c.objects...)
	return w
}

// compare returns how two replies differ. Where one has records and the other none, that is the difference; where both
// agree about that, each section is compared.
func compare(ours, theirs *dns.Msg) []difference {
	var all []difference
	add := func(in, our, their string) {
		if our != their {
			all = append(all, difference{in: in, ours: our, theirs: their})
		}
	}
	if ours == nil || theirs == nil {
		add("", outcome(ours), outcome(theirs))
		return all
	}
	add("AA", fmt.Sprint(ours.Authoritative), fmt.Sprint(theirs.Authoritative))
	add("RA, TC", fmt.Sprint(ours.RecursionAvailable, ours.Truncated), fmt.Sprint(theirs.RecursionAvailable, theirs.Truncated))
	if our, their := outcome(ours), outcome(theirs); our != their {
		add("", our, their)
		return all
	}
	for _, section := range []struct {
		in           string
		ours, theirs []dns.RR
	}{
		{"answer", ours.Answer, theirs.Answer}, {"authority", ours.Ns, theirs.Ns}, {"additional", ours.Extra, theirs.Extra},
	} {
		all = append(all, contrast(section.in, section.ours, section.theirs)...)
	}
	return all
}

// outcome returns the code of a reply, and of NOERROR whether there are records.
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

// contrast returns how two sections differ. The order of records is nothing, and neither is the case of names (RFC 4343),
// but that the owner of an answer is the question in its own case: resolvers that mix it (0x20) insist. Serial numbers and weights are looked at where they are the answer, and apart from all else.
func contrast(in string, ours, theirs []dns.RR) []difference {
	var all []difference
	if our, their := texts(ours), texts(theirs); !slices.Equal(our, their) {
		all = append(all, difference{in: in, ours: strings.Join(our, "\n"), theirs: strings.Join(their, "\n")})
	}
	if in != "answer" {
		return all
	}
	if our, their := owners(ours), owners(theirs); our != their {
		all = append(all, difference{in: "answer, its owner", ours: our, theirs: their})
	}
	if our, their := numbers(ours), numbers(theirs); our != their {
		all = append(all, difference{in: in + ", its numbers", ours: our, theirs: their})
	}
	return all
}

// texts returns the records in order, without serial numbers and weights.
func texts(records []dns.RR) []string {
	var all []string
	for _, r := range records {
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
	return all
}

// owners tells the owners of records, each once, in their case.
func owners(records []dns.RR) string {
	var all []string
	for _, r := range records {
		all = append(all, r.Header().Name)
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// numbers tells serial numbers and weights.
func numbers(records []dns.RR) string {
	weights := map[uint16]bool{}
	for _, r := range records {
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
