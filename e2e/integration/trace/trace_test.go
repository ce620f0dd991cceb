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

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

var (
	seed  = flag.Uint64("seed", 0, "seed of the draws; the time where 0")
	draws = flag.Int("draws", 10, "how many faults to draw; each kind is drawn before any is drawn again")
)

// verdict is what a trace should say.
type verdict struct {
	cluster clusterset.ClusterID
	hop     survey.Hop
}

// TestTrace breaks one of two services at a hop that is drawn, time and again. The trace must name the hop and its cluster
// as the first that is broken, and must not blame the other service, unless the fault has hit it as well.
func TestTrace(t *testing.T) {
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
			want := fault.inject(t, s)
			traced, named := w.comesTo(t, s.sick, func(traced survey.TraceResult) bool {
				got := traced.Broken()
				return got != nil && got.Hop == want.hop && got.Cluster == want.cluster && got.Fix != ""
			})
			if !named {
				wrong++
				t.Errorf("want %+v, got\n%s", want, show(traced))
			}
			if broken := traced.Broken(); broken != nil {
				t.Logf("%s, %s: %s\nfix: %s", broken.Hop, broken.Cluster, broken.Found, broken.Fix)
			}
			if fault.scope == allServices {
				return
			}
			traced, healthy := w.comesTo(t, s.well, func(traced survey.TraceResult) bool { return traced.Broken() == nil })
			if !healthy {
				blamed++
				t.Errorf("the other service is blamed:\n%s", show(traced))
			}
		})
	}
	t.Logf("%d faults of %d kinds: %d not named, %d times a healthy service was blamed", *draws, min(*draws, len(faults)), wrong, blamed)
}

func show(traced survey.TraceResult) string {
	var b strings.Builder
	for _, step := range traced.Steps {
		fmt.Fprintf(&b, "  %-6s %-2s %-15s %s [%s]\n", step.State, step.Cluster, step.Hop, step.Found, step.Fix)
	}
	return b.String()
}

// scene is where a fault is injected: a namespace with two services that a exports and b imports.
type scene struct {
	*env
	sick, well clusterset.ServiceKey
	// ends are the endpoints of sick, by their slice.
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
	for _, m := range []*member{w.a, w.b} {
		lab.Must(t, m.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	}
	s := &scene{
		env: w, network: network,
		sick: clusterset.ServiceKey{Namespace: namespace, Name: "sick"}, well: clusterset.ServiceKey{Namespace: namespace, Name: "well"},
	}
	s.ends = s.export(t, s.sick, kind, 1)
	s.export(t, s.well, kind, 2)
	w.works(t, s.sick, s.well)
	return s
}

// export creates a Service of a, its slice and its export.
func (s *scene) export(t *testing.T, key clusterset.ServiceKey, kind shape, host int) *discoveryv1.EndpointSlice {
	t.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}}},
	}
	if kind == headless {
		service.Spec.ClusterIP = corev1.ClusterIPNone
	}
	lab.Must(t, s.a.Create(t.Context(), service))
	ends := s.slice(key, "1", host)
	lab.Must(t, s.a.Create(t.Context(), ends))
	lab.Must(t, s.a.Create(t.Context(), &mcsv1beta1.ServiceExport{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}))
	return ends
}

// slice returns one with a single endpoint.
func (s *scene) slice(key clusterset.ServiceKey, suffix string, host int) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name + "-" + suffix, Labels: map[string]string{discoveryv1.LabelServiceName: key.Name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}},
		Endpoints: []discoveryv1.Endpoint{{
			Addresses: []string{fmt.Sprintf("10.1.%d.%d", s.network, host)}, Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		}},
	}
}

// shape returns a type of service for which the fault makes sense.
func (f fault) shape(random *rand.Rand) shape {
	kinds := slices.DeleteFunc([]shape{clusterIP, headless}, func(s shape) bool { return f.only != "" && s != f.only })
	return kinds[random.IntN(len(kinds))]
}
