// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const webName = "web-service.shop.svc.clusterset.local."

// TestQuestions: everything that can be asked about the services there are, and what the answers must be, written down by
// hand.
//
// spec: N2, N3, N6
func TestQuestions(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*World)
		want   map[Question]Answer
	}{
		"one address for all": {
			func(*World) {},
			map[Question]Answer{
				{webName, "A"}:                   {"NOERROR", "10.3.0.99"},
				{webName, "AAAA"}:                {"NOERROR", ""},
				{"_http._tcp." + webName, "SRV"}: {"NOERROR", "80 " + webName},
			},
		},
		"headless": {
			headless,
			map[Question]Answer{
				{webName, "A"}:                   {"NOERROR", "10.1.0.1,10.2.0.1"},
				{webName, "AAAA"}:                {"NOERROR", ""},
				{"10-1-0-1.a." + webName, "A"}:   {"NOERROR", "10.1.0.1"},
				{"db-0.b." + webName, "A"}:       {"NOERROR", "10.2.0.1"},
				{"_http._tcp." + webName, "SRV"}: {"NOERROR", "8080 10-1-0-1.a." + webName},
			},
		},
		"headless without a ready endpoint": {
			func(w *World) {
				headless(w)
				for i := range 2 {
					for j := range w.Clusters[i].Slices {
						w.Clusters[i].Slices[j].Endpoints[0].Conditions.Ready = new(false)
					}
				}
			},
			map[Question]Answer{{webName, "A"}: {"NXDOMAIN", ""}, {webName, "AAAA"}: {"NXDOMAIN", ""}},
		},
		"not exported": {
			func(w *World) { w.Clusters[0].Exports, w.Clusters[1].Exports = nil, nil },
			map[Question]Answer{{webName, "A"}: {"NXDOMAIN", ""}, {webName, "AAAA"}: {"NXDOMAIN", ""}},
		},
		"another user's": {
			func(w *World) { w.Clusters[2].Imports[0].Labels = nil }, map[Question]Answer{},
		},
		"a Service beside it that is not exported": {
			func(w *World) {
				w.Clusters[2].Services = append(w.Clusters[2].Services, corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "x"}})
				w.Clusters[2].Imports[0].Labels = nil
			},
			map[Question]Answer{{"x.shop.svc.clusterset.local.", "A"}: {"NXDOMAIN", ""}, {"x.shop.svc.clusterset.local.", "AAAA"}: {"NXDOMAIN", ""}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := good()
			tc.change(&w)
			got, all := map[Question]Answer{}, w.answers(w.Clusters[2])
			for _, q := range w.Questions("c") {
				got[q] = all.answer(q)
			}
			if !maps.Equal(got, tc.want) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// headless makes the service of both exporters headless; the endpoint of the second has a name.
func headless(w *World) {
	for i := range 2 {
		w.Clusters[i].Services[0].Spec.ClusterIP = corev1.ClusterIPNone
	}
	w.Clusters[1].Slices[0].Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.2.0.1"}, Hostname: new("db-0")}}
}

// TestCompareAnswers: a wrong answer is found, a right one is not.
func TestCompareAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer Answer
		want   []Finding
	}{
		"right": {Answer{"NOERROR", "10.3.0.99"}, nil},
		"another address": {Answer{"NOERROR", "10.3.0.98"}, []Finding{
			{Answered, "c", web, webName + " A: is {NOERROR 10.3.0.98}, must be {NOERROR 10.3.0.99}"},
		}},
		"no such name": {Answer{"NXDOMAIN", ""}, []Finding{
			{Answered, "c", web, webName + " A: is {NXDOMAIN }, must be {NOERROR 10.3.0.99}"},
		}},
	} {
		w := good()
		w.Clusters[2].Answers = map[Question]Answer{{webName, "A"}: tc.answer}
		got := w.Compare()
		if len(got) != len(tc.want) || len(got) > 0 && got[0] != tc.want[0] {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
