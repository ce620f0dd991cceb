// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/trace"
	"github.com/tombolo-mcs/tombolo/e2e/framework/world"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var (
	seed  = flag.Uint64("seed", 0, "seed of the draws; the time where 0")
	draws = flag.Int("draws", 10, "how many faults to draw; each kind is drawn before any is drawn again")
)

// verdict is what a trace should say.
type verdict struct {
	cluster clusterset.ClusterID
	hop     trace.Hop
}

// TestTrace breaks one of two services at a hop that is drawn, time and again. The trace must name the hop and its cluster
// as the first that is broken, and must not blame the other service, unless the fault has hit it as well.
func TestTrace(t *testing.T) { //nolint:tparallel // one fault after the other
	t.Parallel()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("-seed=%d", *seed)
	random := rand.New(rand.NewPCG(*seed, 0))
	w := newEnv(t)
	var wrong, blamed int
	for i := range *draws {
		if i%len(faults) == 0 {
			random.Shuffle(len(faults), func(a, b int) { faults[a], faults[b] = faults[b], faults[a] })
		}
		fault := faults[i%len(faults)]
		t.Run(fmt.Sprintf("%d %s", i+1, fault.name), func(t *testing.T) {
			s := w.stage(t, fmt.Sprintf("draw-%d", i+1), i+1, fault.shape(random))
			fault.inject(t, s)
			traced, named := w.comesTo(t, s.broken, func(traced trace.Result) bool {
				got := traced.Broken()
				return got != nil && got.Hop == fault.want.hop && got.Cluster == fault.want.cluster && got.Fix != ""
			})
			if !named {
				wrong++
				t.Errorf("want %+v, got\n%s", fault.want, show(traced))
			}
			if broken := traced.Broken(); broken != nil {
				t.Logf("%s, %s: %s\nfix: %s", broken.Hop, broken.Cluster, broken.Found, broken.Fix)
			}
			if fault.scope == allServices {
				return
			}
			traced, healthy := w.comesTo(t, s.working, func(traced trace.Result) bool { return traced.Broken() == nil })
			if !healthy {
				blamed++
				t.Errorf("the other service is blamed:\n%s", show(traced))
			}
		})
	}
	t.Logf("%d faults of %d kinds: %d not named, %d times a healthy service was blamed", *draws, min(*draws, len(faults)), wrong, blamed)
}

func show(traced trace.Result) string {
	var b strings.Builder
	for _, step := range traced.Steps {
		fmt.Fprintf(&b, "  %-6s %-2s %-15s %s [%s]\n", step.State, step.Cluster, step.Hop, step.Found, step.Fix)
	}
	return b.String()
}

// scene is where a fault is injected: a namespace with two services that a exports and b imports.
type scene struct {
	*env
	broken, working clusterset.ServiceKey
	// ends are the endpoints of broken, by their slice.
	ends *discoveryv1.EndpointSlice
	// network is the part of a's range that the endpoints have.
	network int
}

// shape is the type of a service.
type shape string

const (
	clusterIP shape = "ClusterIP"
	headless  shape = "headless"
)

// stage exports two services, and returns when a trace finds nothing wrong with either.
func (w *env) stage(t *testing.T, namespace string, network int, kind shape) *scene {
	t.Helper()
	world.CreateNamespace(t, namespace, w.a, w.b)
	s := &scene{
		env: w, network: network,
		broken:  clusterset.ServiceKey{Namespace: namespace, Name: "broken"},
		working: clusterset.ServiceKey{Namespace: namespace, Name: "working"},
	}
	s.ends = s.export(t, s.broken, kind, 1)
	s.export(t, s.working, kind, 2)
	w.works(t, s.broken, s.working)
	return s
}

// export exports a Service of a with one endpoint, and returns its slice.
func (s *scene) export(t *testing.T, key clusterset.ServiceKey, kind shape, host int) *discoveryv1.EndpointSlice {
	t.Helper()
	service := world.Service(key, world.Port("http", 80))
	if kind == headless {
		service = world.Headless(key, world.Port("http", 80))
	}
	ends := s.slice(key, "1", host)
	s.a.ExportService(t, service, ends)
	return ends
}

// slice returns one with a single endpoint.
func (s *scene) slice(key clusterset.ServiceKey, suffix string, host int) *discoveryv1.EndpointSlice {
	return world.Slice(world.Service(key, world.Port("http", 80)), suffix, fmt.Sprintf("10.1.%d.%d", s.network, host))
}

// shape returns a type of service for which the fault makes sense.
func (f fault) shape(random *rand.Rand) shape {
	kinds := slices.DeleteFunc([]shape{clusterIP, headless}, func(s shape) bool { return f.only != "" && s != f.only })
	return kinds[random.IntN(len(kinds))]
}
