// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// testScale: services of every sort are imported as they must be, also after their records have changed for a while, and
// each figure is there.
func (s *shared) testScale(t *testing.T) {
	b := s.newBench(t, 40)
	if err := scale(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	services := made(b.size, fewSpeakers)
	perEndpoint := "memory above idle per imported endpoint, %d of them, KB"
	b.figures(t,
		fmt.Sprintf(perEndpoint, endpointsOf(services[:4])), fmt.Sprintf(perEndpoint, endpointsOf(services[:16])), fmt.Sprintf(perEndpoint, endpointsOf(services)),
		fmt.Sprintf("changes a second with 7 members, 40 services and %d endpoints; reference: wanted", endpointsOf(services)),
		"watch events a second to 6 other watchers",
		"lag from the hub to the slice, p50, ms", "the same, p99, ms", "the same, max, ms",
		"keys by which the agent's queues have grown",
		"memory at the end, MB; reference: at the beginning of the changes",
		"CPU of the API servers, % of all that was used", "CPU of the etcds, % of all that was used", "CPU of the harness, % of all that was used",
		"CPU of the agent, % of all that was used; reference: the smallest of the others",
		"wrong imports of 40 that were compared with what had been written to the hub",
	)
	if row := b.rows[len(b.rows)-1]; row.Tombolo != 0 {
		t.Errorf("%v imports are wrong", row.Tombolo)
	}
	if changes, events := b.rows[3].Tombolo, b.rows[4].Tombolo; events <= 0 { // how many come in so short a time says nothing
		t.Errorf("6 watchers get %v events a second of %v changes", events, changes)
	}
}

// made returns services as the scale has them.
func made(services, speakers int) []*mixed {
	x := &mixer{addresses: map[*member]int{}}
	for i := range speakers {
		x.speakers = append(x.speakers, &member{id: clusterset.ClusterID(fmt.Sprintf("m%02d", i)), number: i + 2})
	}
	var result []*mixed
	for i := range services {
		result = append(result, x.newMixed(i))
	}
	return result
}

// TestMixed: the full size has the endpoints that it is about, and services of every sort.
func TestMixed(t *testing.T) {
	services := made(scaleSize, scaleSpeakers)
	if n := endpointsOf(services); n < 250_000 || n > 260_000 {
		t.Errorf("%d endpoints are imported", n)
	}
	exporters, sorts, addresses := map[int]int{}, map[string]int{}, map[string]bool{}
	for _, s := range services {
		exporters[len(s.contributions)]++
		sorts[fmt.Sprintf("%s %v %d", s.kind, s.families, len(s.ports))]++
		for _, c := range s.contributions {
			for _, p := range c.slices {
				for _, g := range p.record.Spec.Groups {
					if len(g.Addresses) > 100 {
						t.Errorf("%s has more endpoints than Kubernetes puts into a slice", p.record.Name)
					}
					for _, a := range g.Addresses {
						if addresses[string(a)] {
							t.Fatalf("%s is there twice", a)
						}
						addresses[string(a)] = true
					}
				}
			}
		}
	}
	if len(exporters) != 3 || len(sorts) != 12 {
		t.Errorf("numbers of exporters: %v, sorts of services: %v", exporters, sorts)
	}
	for name, n := range sorts {
		if n < 10 {
			t.Errorf("there are only %d services of sort %s", n, name)
		}
	}
}

// TestLacking: whatever is missing or too much is found.
func TestLacking(t *testing.T) {
	s := made(1, 1)[0]
	want := s.wanted()
	if len(want) != 5 || !slices.IsSorted(want) {
		t.Fatalf("a service of one endpoint has the lines %q", want)
	}
	other := slices.Clone(want)
	other[0] = "another"
	if got := lacking(want, other); len(got) != 1 || got[0] != want[0] {
		t.Errorf("missing: %q", got)
	}
	if got := lacking(other, want); len(got) != 1 || got[0] != "another" {
		t.Errorf("too much: %q", got)
	}
	if got := lacking(want, want); got != nil {
		t.Errorf("the same lines differ by %q", got)
	}
	s.contributions[0].slices[0].record.Spec.Groups[0].Addresses[0] = "10.2.255.255"
	if slices.Equal(want, s.wanted()) {
		t.Error("another address makes no difference")
	}
}

// sliceOf returns one as an importer has it, with these addresses.
func sliceOf(addresses ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{}
	for _, a := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{a}})
	}
	return slice
}

// TestLags: a change has arrived with itself or with a later one of the same slice, whether the hub's answer or the
// importer's watch comes first.
func TestLags(t *testing.T) {
	l := &lags{awaited: map[string]*onItsWay{}, queues: map[*published][]*onItsWay{}}
	p, q := &published{}, &published{}
	start := time.Now()
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	overtaken, overtaking, early, elsewhere := l.expect(p, "1"), l.expect(p, "2"), l.expect(p, "3"), l.expect(q, "4")
	l.took(overtaken, at(0))
	l.took(overtaking, at(30))
	l.see(sliceOf("9", "2"), at(100))
	l.see(sliceOf("3"), at(110))
	l.took(early, at(120))
	l.see(sliceOf("1", "2", "3"), at(130)) // an old state again
	if l.open != 1 {
		t.Errorf("%d changes are on their way", l.open)
	}
	l.took(elsewhere, at(140))
	l.see(sliceOf("4"), at(142))
	all, err := l.all(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []float64
	for _, a := range all {
		got = append(got, a.lag)
	}
	if diff := cmp.Diff([]float64{100, 70, 0, 2}, got); diff != "" {
		t.Errorf("lags (-want +got):\n%s", diff)
	}
}

// TestLowered: the rate goes down where changes come late or the machine is full, and only there.
func TestLowered(t *testing.T) {
	for name, c := range map[string]struct{ rate, made, busy, want float64 }{
		"carried":                  {100, 99, 0.8, 100},
		"just carried":             {100, 95, 0.85, 100},
		"too few made":             {100, 60, 0.7, 57},
		"full":                     {100, 100, 1, 80.75},
		"too few made and full":    {100, 50, 1, 47.5},
		"next to nothing was made": {100, 0.1, 1, 1},
	} {
		if got := lowered(c.rate, c.made, c.busy); fmt.Sprintf("%.2f", got) != fmt.Sprintf("%.2f", c.want) {
			t.Errorf("%s: on with %v changes a second, not %v", name, got, c.want)
		}
	}
}

// TestEnds: what grows is seen, and one outlier is not taken for growth.
func TestEnds(t *testing.T) {
	var all []reading
	for i := range 60 {
		all = append(all, reading{waiting: float64(i), resident: 7})
	}
	all[59].resident = 1000
	first, last := ends(all, func(r reading) float64 { return r.waiting })
	if first != 5.5 || last != 53.5 {
		t.Errorf("from %v to %v keys", first, last)
	}
	first, last = ends(all, func(r reading) float64 { return r.resident })
	if first != 7 || last != 7 {
		t.Errorf("from %v to %v MB", first, last)
	}
}

func TestAddUp(t *testing.T) {
	const text = `# HELP depth of queues
depth{name="a",controller="x"} 2
depth{name="b",controller="x"} 3.5
depth_total{name="a"} 100
plain 1e+06
`
	for name, c := range map[string]struct {
		metric string
		having []string
		want   float64
	}{
		"all":           {metric: "depth", want: 5.5},
		"some":          {metric: "depth", having: []string{`name="b"`}, want: 3.5},
		"both labels":   {metric: "depth", having: []string{`controller="x"`, `name="a"`}, want: 2},
		"no labels":     {metric: "plain", want: 1e6},
		"none":          {metric: "other"},
		"no such label": {metric: "depth", having: []string{`name="c"`}},
	} {
		if got, err := addUp(strings.NewReader(text), c.metric, c.having...); err != nil || got != c.want {
			t.Errorf("%s: %v, %v, want %v", name, got, err, c.want)
		}
	}
	if _, err := addUp(strings.NewReader("depth{} much\n"), "depth"); err == nil {
		t.Error("what is no number is read as one")
	}
}

// TestShares: the time of each sort is that of all its processes.
func TestShares(t *testing.T) {
	before := shares{{sortAgent, "a", time.Second}, {sortEtcd, "a", time.Second}, {sortEtcd, "hub", 2 * time.Second}}
	after := shares{{sortAgent, "a", 2 * time.Second}, {sortEtcd, "a", 3 * time.Second}, {sortEtcd, "hub", 3 * time.Second}}
	used := after.since(before)
	if got := used.String(); got != "agent a 1.0 s (25%), etcd a 2.0 s (50%), etcd hub 1.0 s (25%)" {
		t.Error(got)
	}
	if got := used.percent(sortEtcd); got != 75 {
		t.Errorf("the etcds have used %v%%", got)
	}
	if got := used.percent(sortHarness); got != 0 {
		t.Errorf("nobody has used %v%%", got)
	}
}

// TestDisagreements: what a younger exporter says otherwise is not expected of the import.
func TestDisagreements(t *testing.T) {
	base := func() (*mixed, *contribution) {
		s := made(1, 1)[0]
		s.ports = append(s.ports, s.ports[0])
		s.ports[1].Name, s.ports[1].Port = "https", 443
		young := s.contribution(&member{id: "young", number: 9}, 1, time.Now())
		return s, young
	}
	for about, want := range map[disagreement][]string{
		otherName: {"http:8080", "https:8443"}, otherNumber: {"https:8443"}, otherAffinity: {"http:8080", "https:8443"}, otherKind: {"http:8080", "https:8443"},
	} {
		s, c := base()
		before := c.record.DeepCopy()
		s.disagree(c, about)
		if cmp.Equal(before.Spec, c.record.Spec) {
			t.Errorf("disagreement %d is none", about)
		}
		if got := c.slice(s, corev1.IPv4Protocol).listens; !slices.Equal(want, got) {
			t.Errorf("disagreement %d: endpoints are imported on %v, want %v", about, got, want)
		}
		if s.kind != mcsv1beta1.ClusterSetIP || s.ports[0].Name != "http" || s.ports[0].Port != 80 {
			t.Errorf("disagreement %d changes what the oldest exporter says", about)
		}
	}
}
