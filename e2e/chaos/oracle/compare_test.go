// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	mcsv1beta1 "sigs.k8s.io/mcs-api/pkg/apis/v1beta1"
)

// TestNoFindings: in a world that is as it must be there is nothing to find.
func TestNoFindings(t *testing.T) {
	t.Parallel()
	for _, f := range good().Compare() {
		t.Error(f)
	}
}

// TestCompare: whatever is not as it must be is found, under the rule that it breaks, where it is. These worlds are
// written down by hand as well.
func TestCompare(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		spoil func(w *World, c *Cluster) // c imports
		want  []string
	}{
		"no import": {func(_ *World, c *Cluster) { c.Imports = nil }, []string{"imported c"}},
		"an import where the namespace is denied": {
			func(_ *World, c *Cluster) { c.Denied = []string{"shop"} }, []string{"derived c", "endpoints c", "imported c"},
		},
		"other ports":     {func(_ *World, c *Cluster) { c.Imports[0].Spec.Ports[0].Port = 8 }, []string{"imported c"}},
		"null ports":      {func(_ *World, c *Cluster) { c.Imports[0].Spec.Ports = nil }, []string{"imported c"}},
		"other addresses": {func(_ *World, c *Cluster) { c.Imports[0].Spec.IPs[0] = "10.3.0.98" }, []string{"imported c"}},
		"other families":  {func(_ *World, c *Cluster) { c.Imports[0].Spec.IPFamilies[0] = corev1.IPv6Protocol }, []string{"imported c"}},
		"other affinity": {
			func(_ *World, c *Cluster) { c.Imports[0].Spec.SessionAffinity = corev1.ServiceAffinityClientIP }, []string{"imported c"},
		},
		"a label of Kubernetes": {
			func(_ *World, c *Cluster) { c.Imports[0].Labels["app.kubernetes.io/instance"] = "z" }, []string{"imported c"},
		},
		"a label of a domain that is not admitted": {
			func(_ *World, c *Cluster) { c.Imports[0].Labels["argocd.argoproj.io/instance"] = "y" }, []string{"imported c"},
		},
		"an exporter not named": {
			func(_ *World, c *Cluster) { c.Imports[0].Status.Clusters = c.Imports[0].Status.Clusters[:1] }, []string{"imported c"},
		},
		"not ready":            {func(_ *World, c *Cluster) { c.Imports[0].Status.Conditions[0].Status = "False" }, []string{"imported c"}},
		"an older generation":  {func(_ *World, c *Cluster) { c.Imports[0].Generation = 2 }, []string{"imported c"}},
		"a second derived one": {func(_ *World, c *Cluster) { addDerived(c) }, []string{"derived c"}},
		"a selector": {
			func(_ *World, c *Cluster) { c.Services[0].Spec.Selector = map[string]string{"app": "web"} }, []string{"derived c"},
		},
		"another name for it": {
			func(_ *World, c *Cluster) { c.Services[0].Name = "derived-1" }, []string{"derived c", "endpoints c", "imported c"},
		},
		"the unnamed port without a name": {func(_ *World, c *Cluster) { c.Services[0].Spec.Ports[1].Name = "" }, []string{"derived c"}},
		"an endpoint missing":             {func(_ *World, c *Cluster) { c.Slices = c.Slices[1:] }, []string{"endpoints c"}},
		"an endpoint from outside": {
			func(_ *World, c *Cluster) { c.Slices[0].Endpoints[0].Addresses[0] = "10.9.0.1" }, []string{"endpoints c"},
		},
		"an endpoint at a port that lost": {
			func(_ *World, c *Cluster) { c.Slices[1].Ports = slicePorts("http", "unnamed", "") }, []string{"endpoints c"},
		},
		"the unnamed port not by the name in the import": {
			func(_ *World, c *Cluster) { c.Slices[1].Ports = slicePorts("unnamed") }, []string{"endpoints c"},
		},
		"another readiness": {
			func(_ *World, c *Cluster) { c.Slices[1].Endpoints[0].Conditions.Ready = new(true) }, []string{"endpoints c"},
		},
		"a hint that was not asked for": {func(_ *World, c *Cluster) { c.Slices[1].Endpoints[0].Zone = new("z") }, []string{"endpoints c"}},
		"no conflict reported": {
			func(w *World, _ *Cluster) {
				w.Clusters[1].Exports[0].Status.Conditions[2] = metav1.Condition{Type: "Conflict", Status: "False", Reason: "NoConflicts"}
			},
			[]string{"conditions b"},
		},
		"the oldest does not report it": {
			func(w *World, _ *Cluster) { w.Clusters[0].Exports[0].Status.Conditions = nil }, []string{"conditions a"},
		},
		"no record":          {func(w *World, _ *Cluster) { w.Records = w.Records[:1] }, []string{"published b"}},
		"an inactive record": {func(w *World, _ *Cluster) { w.Records[1].Spec.Inactive = true }, []string{"published b"}},
		"an inactive record of a service without an export": {func(w *World, _ *Cluster) {
			w.Records = append(w.Records, *w.Records[0].DeepCopy())
			w.Records[2].Spec.Service, w.Records[2].Spec.Inactive = "other", true
		}, []string{"published a"}},
		"an inactive record of an export without Service": {func(w *World, c *Cluster) {
			c.Exports = append(c.Exports, good().Clusters[0].Exports[0])
			c.Exports[0].Status.Conditions = []metav1.Condition{
				{Type: "Conflict", Status: "False", Reason: "NoConflicts"},
				{Type: "Ready", Status: "False", Reason: "Pending"},
				{Type: "Valid", Status: "False", Reason: "NoService"},
			}
			w.Records = append(w.Records, *w.Records[0].DeepCopy())
			w.Records[2].Namespace, w.Records[2].Spec.Inactive = "member-c", true
		}, nil},
		"a withdrawn export that is still there": {
			func(w *World, _ *Cluster) { w.Clusters[0].Exports = nil },
			[]string{"endpoints a", "endpoints b", "endpoints c", "imported a", "published a", "conditions b", "derived a", "derived b", "derived c", "imported b", "imported c"},
		},
		"the younger export wins by a claim": {
			func(w *World, _ *Cluster) {
				w.Clusters[1].Exports[0].CreationTimestamp = metav1.NewTime(start.Add(-time.Hour))
			}, nil,
		},
		"a younger export, if its claim is trusted": {
			func(w *World, _ *Cluster) {
				w.Members[1].Spec.ClaimedAges = "Trusted"
				w.Clusters[1].Exports[0].CreationTimestamp = metav1.NewTime(start.Add(-time.Hour))
			},
			[]string{"derived a", "derived b", "derived c", "endpoints a", "endpoints b", "endpoints c", "imported a", "imported b", "imported c"},
		},
		"a silent member whose endpoints stay, for want of others": {func(w *World, _ *Cluster) { w.Clusters[0].Silent = true }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := good()
			tc.spoil(&w, &w.Clusters[2])
			found := w.Compare()
			var got []string
			for _, f := range found {
				got = append(got, string(f.Rule)+" "+f.Cluster)
			}
			slices.Sort(got)
			slices.Sort(tc.want)
			if got = slices.Compact(got); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q: %v", got, tc.want, found)
			}
		})
	}
}

// addDerived adds a second derived Service of the same service.
func addDerived(c *Cluster) {
	second := derived("10.3.0.98")
	_, second.Name = names(web.Name)
	c.Services = append(c.Services, second)
}

// TestSilent: where living members serve the same port, a silent one does not; its endpoints of headless services stay.
//
// spec: D9
func TestSilent(t *testing.T) {
	t.Parallel()
	w := good()
	w.Clusters[1].Services[0].Spec.Ports = w.Clusters[0].Services[0].Spec.Ports
	w.Clusters[0].Silent = true
	sources := func() (sources []string) {
		for _, s := range w.serving(w.Clusters[2], web, w.exports(web), []corev1.IPFamily{corev1.IPv4Protocol}) {
			sources = append(sources, s.source)
		}
		return sources
	}
	if got := sources(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("endpoints of %v serve", got)
	}
	for i := range 2 {
		w.Clusters[i].Services[0].Spec.ClusterIP = corev1.ClusterIPNone
	}
	if got := sources(); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("headless: endpoints of %v serve", got)
	}
}

// TestJudge: what a ServiceExport says that exports nothing.
//
// spec: E5, E6, E9
func TestJudge(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		service *corev1.Service
		want    verdict
	}{
		"none":         {nil, verdict{"False", "NoService"}},
		"ExternalName": {&corev1.Service{Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName}}, verdict{"False", "InvalidServiceType"}},
		"derived": {
			&corev1.Service{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{labelManagedBy: ours}}}, verdict{"False", "InvalidServiceType"},
		},
		"any other": {&corev1.Service{}, verdict{"True", "Valid"}},
	} {
		c := Cluster{Exports: []mcsv1beta1.ServiceExport{{}}}
		if tc.service != nil {
			c.Services = []corev1.Service{*tc.service}
		}
		if got := c.judge(Key{}); got != tc.want {
			t.Errorf("%s: got %v, want %v", name, got, tc.want)
		}
	}
}
