// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/tombolo-mcs/tombolo/internal/check"
	gatewayv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/gateway/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const (
	one, oneSix = "10.9.0.1", "fd00::1"
	two         = "10.9.0.2"
)

// gateways are one, with two addresses, and two, of which some are not ready.
func gateways(unready ...string) []clusterset.Slice {
	endpoint := func(address string) clusterset.Endpoint {
		ready := clusterset.True
		for _, other := range unready {
			if other == address {
				ready = clusterset.False
			}
		}
		return clusterset.Endpoint{Addresses: []string{address}, Ready: ready}
	}
	return []clusterset.Slice{
		{AddressType: "IPv4", Endpoints: []clusterset.Endpoint{endpoint(one), endpoint(two)}},
		{AddressType: "IPv6", Endpoints: []clusterset.Endpoint{endpoint(oneSix)}},
	}
}

func report(reachable bool, addresses ...string) *gatewayv1alpha1.GatewayReport {
	return &gatewayv1alpha1.GatewayReport{
		Addresses: addresses,
		Clusters:  []gatewayv1alpha1.ClusterReachability{{Cluster: "b", Reachable: reachable}, {Cluster: "c", Reachable: true}},
	}
}

// A slice lists only gateways that answer and reach its source. spec: G8
func TestUsable(t *testing.T) {
	for name, test := range map[string]struct {
		reports     map[string]*gatewayv1alpha1.GatewayReport
		unanswering []string
		unready     []string
		want        []string
		reached     bool
	}{
		"nothing is known":        {want: []string{one, two, oneSix}, reached: true},
		"all reach it":            {reports: map[string]*gatewayv1alpha1.GatewayReport{"1": report(true, one, oneSix), "2": report(true, two)}, want: []string{one, two, oneSix}, reached: true},
		"one does not":            {reports: map[string]*gatewayv1alpha1.GatewayReport{"1": report(false, one, oneSix), "2": report(true, two)}, want: []string{two}, reached: true},
		"one does not, no report": {reports: map[string]*gatewayv1alpha1.GatewayReport{"1": report(false, one, oneSix)}, want: []string{two}, reached: true},
		"none does":               {reports: map[string]*gatewayv1alpha1.GatewayReport{"1": report(false, one, oneSix), "2": report(false, two)}, want: []string{one, two, oneSix}},
		"the other is not ready":  {reports: map[string]*gatewayv1alpha1.GatewayReport{"1": report(false, one, oneSix), "2": report(true, two)}, unready: []string{two}, want: []string{one, two, oneSix}},
		"one answers not":         {unanswering: []string{one, oneSix}, want: []string{two, oneSix}, reached: true},
		"none of a family does":   {unanswering: []string{oneSix}, want: []string{one, two, oneSix}, reached: true},
		"none answers":            {unanswering: []string{one, oneSix, two}, want: []string{one, two, oneSix}, reached: true},
		"neither":                 {reports: map[string]*gatewayv1alpha1.GatewayReport{"2": report(false, two)}, unanswering: []string{one}, unready: []string{oneSix}, want: []string{two, oneSix}},
		"none is ready":           {unready: []string{one, oneSix, two}, want: []string{one, two, oneSix}, reached: true},
		"a status without a pod":  {reports: map[string]*gatewayv1alpha1.GatewayReport{"0": report(false, "10.9.0.9")}, want: []string{one, two, oneSix}, reached: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Reach{}
			for pod, report := range test.reports {
				r.Report(pod, report)
			}
			r.Observe(nil, sets.New(test.unanswering...))
			usable, reached := r.Seen().Usable(gateways(test.unready...), "b")
			var got []string
			for _, slice := range usable {
				for _, endpoint := range slice.Endpoints {
					got = append(got, endpoint.Addresses...)
				}
			}
			check.Equal(t, "gateways", test.want, got)
			check.Equal(t, "reached", test.reached, reached)
		})
	}
}

// Only changes that matter are reported, with the cluster that they are about. spec: G8
func TestSubscribe(t *testing.T) {
	r := &Reach{}
	var got []clusterset.ClusterID
	r.Subscribe(func(id clusterset.ClusterID) { got = append(got, id) })
	expect := func(what string, want ...clusterset.ClusterID) {
		t.Helper()
		check.Equal(t, what, want, got)
		got = nil
	}
	r.Report("1", report(true, one))
	expect("the first report, of clusters that are reached")
	r.Report("1", report(false, one))
	expect("b is not reached", "b")
	r.Report("1", report(false, one))
	expect("the same report")
	r.Report("1", nil)
	expect("the pod is gone", "b")
	r.Observe(nil, sets.New(one))
	expect("a gateway answers no more", EveryCluster)
	r.Observe(nil, sets.New(one))
	expect("the same gateway")
}
