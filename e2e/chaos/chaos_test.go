// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "tombolo-chaos-")
	if err != nil {
		panic(err)
	}
	programFolder = folder
	m.Run()
	if err := os.RemoveAll(folder); err != nil {
		panic(err)
	}
}

// fault is something that goes wrong, under steady change.
type fault struct {
	name string
	// during makes it happen and ends it. It returns an error where the fault did not take effect, or could not be made.
	during func(context.Context, *world) error
	// calm says that nothing else changes meanwhile.
	calm bool
	// restarts says that agents are ended and started.
	restarts bool
}

// row is what is known of a fault at the end.
type row struct {
	times      []time.Duration // from the fault's end until all is well
	lasted     time.Duration   // all in all, the faults themselves included
	violations int
}

// TestChaos injects each fault once, in an order that the seed gives. With CHAOS_TIME it injects faults, round after round,
// until that time is over, so that a short time gives a random part of them. It runs with make chaos.
//
// spec: E1, E3, I2, I5, I7, D2, D7, D9, N2, N3, N6
func TestChaos(t *testing.T) {
	t.Parallel()
	if os.Getenv("CHAOS") == "" {
		t.Skip("make chaos runs it")
	}
	if len(chosen(t)) == 0 {
		t.Skip("CHAOS_FAULTS names only faults of gateways")
	}
	seed := seed(t)
	t.Logf("CHAOS_SEED=%d", seed)
	w := worldWithServices(t, seed)
	table := w.begin(t)
	defer func() { t.Logf("CHAOS_SEED=%d\n%s", seed, printed(table)) }()
	limit, begin := duration(t, "CHAOS_TIME"), time.Now()
	over := func() bool { return t.Failed() || limit > 0 && time.Since(begin) > limit }
	for round := 0; !over() && (round == 0 || limit > 0); round++ {
		order := chosen(t)
		w.random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, f := range order {
			if !over() {
				w.inject(t, f, table)
			}
		}
	}
}

// worldWithServices returns a world of three members in which services are exported, without agents.
func worldWithServices(t *testing.T, seed uint64) *world {
	t.Helper()
	path, err := program()
	lab.Must(t, err)
	w := newWorld(t, path, rand.New(rand.NewPCG(seed, 0)), "a", "b", "c")
	lab.Must(t, w.createServices(t.Context()))
	return w
}

// begin starts the agents and a DNS, and returns the table of faults when all is well for the first time.
func (w *world) begin(t *testing.T) map[string]*row {
	t.Helper()
	for _, m := range w.members {
		lab.Must(t, m.agent.start())
	}
	path, err := coreDNS()
	lab.Must(t, err)
	w.startDNS(t, w.members[1], path)
	table := map[string]*row{}
	w.recover(t, "the start", table)
	return table
}

// inject has a fault happen while services change, and checks the result when nothing changes any more.
func (w *world) inject(t *testing.T, f fault, table map[string]*row) {
	t.Helper()
	begin := time.Now()
	t.Logf("%s: %s", begin.Format(time.TimeOnly), f.name)
	c := &churn{cancel: func() {}}
	if !f.calm {
		c = w.startChurn(t.Context())
		defer c.cancel() // if the fault ends the test
	}
	if err := f.during(t.Context(), w); err != nil {
		t.Errorf("%s: %v", f.name, err)
	}
	if err := c.stop(); err != nil {
		t.Errorf("%s: %v", f.name, err)
	}
	if !f.calm && c.changes.Load() == 0 {
		t.Errorf("%s: nothing changed meanwhile", f.name)
	}
	w.recover(t, f.name, table)
	table[f.name].lasted += time.Since(begin)
}

// recover waits until all is well again and notes how long that took.
func (w *world) recover(t *testing.T, name string, table map[string]*row) {
	t.Helper()
	took, never, wrong, err := w.settled(t.Context())
	lab.Must(t, err)
	for _, found := range slices.Concat(never, wrong) {
		t.Errorf("%s: %s", name, found)
	}
	if table[name] == nil {
		table[name] = &row{}
	}
	table[name].times = append(table[name].times, took)
	table[name].violations += len(never) + len(wrong)
}

func printed(table map[string]*row) string {
	lines := []string{fmt.Sprintf("%-55s %8s %12s %12s %10s %8s", "fault", "injected", "recover p50", "recover max", "violations", "lasted")}
	for _, name := range slices.Sorted(maps.Keys(table)) {
		r := table[name]
		slices.Sort(r.times)
		p50, most := r.times[len(r.times)/2], r.times[len(r.times)-1]
		lines = append(lines, fmt.Sprintf("%-55s %8d %11.1fs %11.1fs %10d %7.0fs",
			name, len(r.times), p50.Seconds(), most.Seconds(), r.violations, r.lasted.Seconds()))
	}
	return strings.Join(lines, "\n")
}

// chosen returns the faults that CHAOS_FAULTS names, separated by commas, besides those of gateways; all if it is empty.
func chosen(t *testing.T) []fault {
	t.Helper()
	names, known := os.Getenv("CHAOS_FAULTS"), faultNames()
	for name := range strings.SplitSeq(names, ",") {
		if names != "" && !slices.Contains(known, name) {
			t.Fatalf("CHAOS_FAULTS: there is no fault %q; there are:\n%s", name, strings.Join(known, "\n"))
		}
	}
	return namedIn(names, faults(), func(f fault) string { return f.name })
}

// faultNames returns the names of all faults, those of gateways too.
func faultNames() (names []string) {
	for _, f := range faults() {
		names = append(names, f.name)
	}
	for _, f := range gatewayFaults() {
		names = append(names, f.name)
	}
	return names
}

func seed(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("CHAOS_SEED")
	if text == "" {
		return rand.Uint64()
	}
	value, err := strconv.ParseUint(text, 10, 64)
	lab.Must(t, err)
	return value
}

// duration returns the value of CHAOS_TIME or SOAK_TIME, zero if it is empty.
func duration(t *testing.T, variable string) time.Duration {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return 0
	}
	value, err := time.ParseDuration(text)
	lab.Must(t, err)
	return value
}
