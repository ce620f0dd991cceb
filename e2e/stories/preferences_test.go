// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/internal/preference"
	hubv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/hub/v1alpha1"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// prefer creates the policy of an example in the namespace of the scene. Its clusters east and west are a and b.
func (p *place) prefer(example string) {
	p.Helper()
	root, err := lab.Root()
	lab.Must(p, err)
	text, err := os.ReadFile(filepath.Join(root, "examples", example, "policy.yaml"))
	lab.Must(p, err)
	policy := &policyv1alpha1.ServiceImportRoutingPolicy{}
	lab.Must(p, yaml.UnmarshalStrict([]byte(strings.NewReplacer("[east]", "[a]", "[west]", "[b]").Replace(string(text))), policy))
	policy.Namespace = p.namespace
	p.create(policy)
}

// preferencesFailOver: cluster a prefers its own pods of a service that b exports too. When its last pod ends, b serves, and when a has
// pods again, they serve after the delay. No request fails.
func preferencesFailOver(s *scene) {
	a, b := s.in("a"), s.in("b")
	a.offer("web", 2)
	b.offer("web", 2)
	for _, p := range s.members() {
		p.awaitAnswers("tcp4", s.name("web"), 80, "a", "b")
	}
	a.prefer("locality-first")
	a.failsOver("web")
	b.expectAnswers("tcp4", s.name("web"), 80, "a", "b") // the policy is for a only
}

// passiveClusterServesAlone: all clusters use a alone, and b alone while a has no pods. No request of b fails.
func passiveClusterServesAlone(s *scene) {
	a, b := s.in("a"), s.in("b")
	for _, p := range s.members() {
		p.offer("database", 1)
		p.prefer("active-passive")
	}
	for _, p := range s.members() {
		p.awaitImport("database", "a", "b")
		p.awaitAnswers("tcp4", s.name("database"), 80, "a")
	}
	b.failsOver("database")
	a.awaitAnswers("tcp4", s.name("database"), 80, "a")
}

// failsOver expects that a serves alone for the clients of this cluster, then b while a has no pods, then a after the delay. No request
// fails.
func (p *place) failsOver(service string) {
	p.Helper()
	a, host := p.in("a"), p.name(service)
	p.awaitAnswers("tcp4", host, 80, "a")
	load, replicas := p.load("tcp4", host, 80, 20), len(a.pods(service))
	a.scale(service, 0)
	p.awaitAnswers("tcp4", host, 80, "b")
	begin := time.Now()
	a.scale(service, int32(replicas))
	p.awaitAnswers("tcp4", host, 80, "a")
	if took := time.Since(begin); took < preference.ReturnDelay {
		p.Errorf("cluster a serves again after %s", took)
	}
	total := load.endClean()
	p.Logf("%+v", total)
	if total.ByCluster["a"] == 0 || total.ByCluster["b"] == 0 {
		p.Errorf("%v answered, want both", total.ByCluster)
	}
}

// dataStaysInTheEU: cluster a is in the EU, and b is not. With the policy, only a serves the clients of b. While a has no pods, nothing
// serves them, although b has pods of its own.
func dataStaysInTheEU(s *scene) {
	a, b := s.in("a"), s.in("b")
	region := func(ctx context.Context, value string) {
		patch := fmt.Sprintf(`{"spec":{"properties":{"region":%s}}}`, value)
		_, err := s.Kubectl(ctx, "", "--context", s.Hub.Name, "-n", clusterset.ClusterID("a").HubNamespace(),
			"patch", "member/"+hubv1alpha1.MemberName, "--type", "merge", "--patch", patch)
		lab.Must(s, err)
	}
	region(s.Context(), `"eu"`)
	s.Cleanup(func() { region(context.Background(), "null") })
	for _, p := range s.members() {
		p.offer("web", 1)
	}
	b.awaitAnswers("tcp4", s.name("web"), 80, "a", "b")
	b.prefer("data-in-the-eu")
	b.awaitAnswers("tcp4", s.name("web"), 80, "a")
	a.scale("web", 0)
	b.awaitNoAnswer("tcp4", s.name("web"), 80)
	b.expectNoAnswer("tcp4", s.name("web"), 80)
	b.expectAnswers("tcp4", localName(s, "web"), 80, "b")
	a.scale("web", 1)
	b.awaitAnswers("tcp4", s.name("web"), 80, "a")
}
