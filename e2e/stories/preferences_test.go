// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/preference"
)

// preferencesFailOver: cluster a prefers its own pods of a service that b exports too. When its last pod ends, b serves, and when a has
// pods again, they serve after the delay. No request fails.
func preferencesFailOver(s *scene) {
	a, b := s.in("a"), s.in("b")
	a.offer("web", 2)
	b.offer("web", 2)
	for _, p := range s.members() {
		p.awaitAnswers("tcp4", s.name("web"), 80, "a", "b")
	}
	a.create(&policyv1alpha1.ServiceImportRoutingPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "locality"},
		Spec:       policyv1alpha1.ServiceImportRoutingPolicySpec{Sources: []policyv1alpha1.Source{{SameCluster: true}, {Any: true}}},
	})
	a.awaitAnswers("tcp4", s.name("web"), 80, "a")
	load := a.load("tcp4", s.name("web"), 80, 20)
	a.scale("web", 0)
	a.awaitAnswers("tcp4", s.name("web"), 80, "b")
	begin := time.Now()
	a.scale("web", 2)
	a.awaitAnswers("tcp4", s.name("web"), 80, "a")
	if took := time.Since(begin); took < preference.ReturnDelay {
		s.Errorf("cluster a serves again after %s", took)
	}
	b.expectAnswers("tcp4", s.name("web"), 80, "a", "b") // the policy is for a only
	total := load.endClean()
	s.Logf("%+v", total)
	if total.ByCluster["a"] == 0 || total.ByCluster["b"] == 0 {
		s.Errorf("%v answered, want both", total.ByCluster)
	}
}
