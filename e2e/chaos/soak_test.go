// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// usage is what an agent needs to live, by the names of its metrics.
type usage map[string]float64

// What is measured of an agent, and how much more of it there may be in the last third of a soak than in the first: a
// share, and a little that means nothing.
var allowances = map[string]struct{ share, little float64 }{
	"go_goroutines":                 {1.1, 10},
	"go_memstats_heap_alloc_bytes":  {1.25, 4 << 20}, // after a collection of garbage
	"process_resident_memory_bytes": {1.25, 16 << 20},
}

// TestSoak makes random faults and changes for SOAK_TIME, and finds nothing wrong, and that agents that never end need no
// more memory and goroutines in the end than in the beginning. It runs with make soak.
func TestSoak(t *testing.T) {
	length := duration(t, "SOAK_TIME")
	if length == 0 {
		t.Skip("make soak runs it")
	}
	seed := seed(t)
	t.Logf("CHAOS_SEED=%d", seed)
	w := worldWithServices(t, seed)
	for _, m := range w.members {
		lab.Must(t, m.agent.serveMetrics())
	}
	table := w.begin(t)
	faults := slices.DeleteFunc(chosen(t), func(f fault) bool { return f.restarts })
	samples := map[string][]usage{}
	for end := time.Now().Add(length); time.Now().Before(end) && !t.Failed(); {
		w.inject(t, faults[w.random.IntN(len(faults))], table)
		for _, m := range w.members {
			now, err := m.agent.usage(t.Context())
			lab.Must(t, err)
			samples[m.id] = append(samples[m.id], now)
		}
	}
	t.Logf("CHAOS_SEED=%d\n%s", seed, printed(table))
	for _, m := range w.members {
		if m.agent.ends() > 0 {
			t.Errorf("the agent of %s has ended %d times", m.id, m.agent.ends())
		}
		for _, finding := range grown(samples[m.id]) {
			t.Errorf("agent of %s: %s", m.id, finding)
		}
		t.Logf("agent of %s, first and last: %v, %v", m.id, samples[m.id][0], samples[m.id][len(samples[m.id])-1])
	}
}

// grown says of what there is more in the last third of samples than in the first, by their medians, and more than is
// allowed.
func grown(samples []usage) []string {
	third := len(samples) / 3
	if third < 2 {
		return []string{fmt.Sprintf("%d samples are too few to compare", len(samples))}
	}
	var found []string
	for name, allowance := range allowances {
		first, last := median(samples[:third], name), median(samples[len(samples)-third:], name)
		if last > first*allowance.share+allowance.little {
			found = append(found, fmt.Sprintf("%s has grown from %.0f to %.0f", name, first, last))
		}
	}
	slices.Sort(found)
	return found
}

func median(samples []usage, name string) float64 {
	sorted := slices.SortedFunc(slices.Values(samples), func(a, b usage) int { return cmp.Compare(a[name], b[name]) })
	return sorted[len(sorted)/2][name]
}

// TestGrown: what stays within its bounds is flat, what does not is named.
func TestGrown(t *testing.T) {
	t.Parallel()
	series := func(goroutines ...float64) []usage {
		var result []usage
		for _, n := range goroutines {
			result = append(result, usage{"go_goroutines": n})
		}
		return result
	}
	for name, tc := range map[string]struct {
		samples []usage
		want    []string
	}{
		"flat":               {series(100, 110, 90, 100, 120, 105), nil},
		"one more at a time": {series(100, 130, 160, 190, 220, 250), []string{"go_goroutines has grown from 130 to 250"}},
		"once high":          {series(100, 100, 100, 900, 100, 100, 900, 100, 100), nil},
		"too few":            {series(1, 2, 3), []string{"3 samples are too few to compare"}},
	} {
		if got := grown(tc.samples); !slices.Equal(got, tc.want) {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

// serveMetrics has an agent that does not run yet serve its metrics and profiles.
func (a *agent) serveMetrics() error {
	free, err := lab.FreeAddresses(2)
	if err != nil {
		return err
	}
	a.metrics, a.profiles = free[0], free[1]
	a.args = append(a.args, "--metrics-bind-address="+a.metrics, "--pprof-address="+a.profiles)
	return nil
}

// usage returns what the agent needs now, when it has collected its garbage.
func (a *agent) usage(ctx context.Context) (usage, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if _, err := lab.Get(ctx, http.DefaultClient, "http://"+a.profiles+"/debug/pprof/heap?gc=1"); err != nil {
		return nil, err
	}
	text, err := lab.Get(ctx, http.DefaultClient, "http://"+a.metrics+"/metrics")
	if err != nil {
		return nil, err
	}
	result := usage{}
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if _, wanted := allowances[name]; wanted {
			if result[name], err = strconv.ParseFloat(value, 64); err != nil {
				return nil, err
			}
		}
	}
	if len(result) != len(allowances) {
		return nil, fmt.Errorf("%s reports %v only", a.name, result)
	}
	return result, nil
}
