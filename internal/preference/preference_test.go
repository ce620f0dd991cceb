// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package preference_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/preference"
	policyv1alpha1 "github.com/tombolo-mcs/tombolo/pkg/api/policy/v1alpha1"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// spec: P1
func TestSelect(t *testing.T) {
	t.Parallel()
	policy := func(name string, age int64, imports ...policyv1alpha1.ObjectName) *policyv1alpha1.ServiceImportRoutingPolicy {
		return &policyv1alpha1.ServiceImportRoutingPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.Unix(1000-age, 0)},
			Spec:       policyv1alpha1.ServiceImportRoutingPolicySpec{Imports: imports},
		}
	}
	for name, test := range map[string]struct {
		policies []*policyv1alpha1.ServiceImportRoutingPolicy
		want     string
	}{
		"none":                     {nil, ""},
		"of all imports":           {[]*policyv1alpha1.ServiceImportRoutingPolicy{policy("a", 1)}, "a"},
		"by name":                  {[]*policyv1alpha1.ServiceImportRoutingPolicy{policy("a", 1, "db", "web")}, "a"},
		"of another import":        {[]*policyv1alpha1.ServiceImportRoutingPolicy{policy("a", 1, "db")}, ""},
		"the older":                {[]*policyv1alpha1.ServiceImportRoutingPolicy{policy("a", 1), policy("b", 2)}, "b"},
		"the older, by name":       {[]*policyv1alpha1.ServiceImportRoutingPolicy{policy("a", 1, "web"), policy("b", 2)}, "b"},
		"the older does not match": {[]*policyv1alpha1.ServiceImportRoutingPolicy{policy("a", 1), policy("b", 2, "db")}, "a"},
		"of the same age":          {[]*policyv1alpha1.ServiceImportRoutingPolicy{policy("b", 1), policy("a", 1)}, "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if p := preference.Select(test.policies, "web"); p != nil {
				got = p.Name
			}
			if got != test.want {
				t.Errorf("policy %q, want %q", got, test.want)
			}
		})
	}
}

var (
	own    = policyv1alpha1.Source{SameCluster: true}
	region = policyv1alpha1.Source{SameProperty: "region"}
	gold   = policyv1alpha1.Source{PropertySelector: &policyv1alpha1.PropertySelector{MatchProperties: map[string]policyv1alpha1.PropertyValue{"tier": "gold", "region": "eu"}}}
	eu     = policyv1alpha1.Source{PropertySelector: &policyv1alpha1.PropertySelector{MatchProperties: map[string]policyv1alpha1.PropertyValue{"region": "eu"}}}
	named  = policyv1alpha1.Source{Clusters: []policyv1alpha1.ClusterID{"b", "x"}}
	anyone = policyv1alpha1.Source{Any: true}
)

// spec: P1
func TestLevel(t *testing.T) {
	t.Parallel()
	type properties = map[clusterset.ClusterID]map[string]string
	known := properties{"a": {"region": "eu"}, "b": {"region": "eu", "tier": "gold"}, "c": {"region": "us", "tier": "gold"}, "d": {}}
	for name, test := range map[string]struct {
		sources    []policyv1alpha1.Source
		properties properties
		serving    []clusterset.ClusterID
		want       string // the levels of a (the local cluster), b, c, d and of x, which is not known; "-" for none
	}{
		"the own cluster":                       {[]policyv1alpha1.Source{own}, known, nil, "0----"},
		"the same property":                     {[]policyv1alpha1.Source{region}, known, nil, "00---"},
		"named clusters":                        {[]policyv1alpha1.Source{named}, known, nil, "-0--0"},
		"a selector, all of its properties":     {[]policyv1alpha1.Source{gold}, known, nil, "-0---"},
		"a selector of the own cluster":         {[]policyv1alpha1.Source{eu}, known, nil, "00---"},
		"any":                                   {[]policyv1alpha1.Source{anyone}, known, nil, "00000"},
		"in order":                              {[]policyv1alpha1.Source{own, region, anyone}, known, nil, "01222"},
		"the first that matches":                {[]policyv1alpha1.Source{named, region, own}, known, nil, "10--0"},
		"a source that is not known":            {[]policyv1alpha1.Source{{}, own}, known, nil, "1----"},
		"a property that no cluster has":        {[]policyv1alpha1.Source{{SameProperty: "zone"}}, known, nil, "-----"},
		"an unknown cluster that serves":        {[]policyv1alpha1.Source{own, region, anyone}, known, []clusterset.ClusterID{"x"}, "01221"},
		"an unknown cluster that does not":      {[]policyv1alpha1.Source{own, region}, known, nil, "01---"},
		"nothing is known, b serves":            {[]policyv1alpha1.Source{own, region, anyone}, nil, []clusterset.ClusterID{"b"}, "01222"},
		"nothing is known, by selector":         {[]policyv1alpha1.Source{gold}, nil, []clusterset.ClusterID{"b"}, "-0---"},
		"nothing is known, the same property":   {[]policyv1alpha1.Source{region}, nil, nil, "-----"},
		"nothing is known, the own serves":      {[]policyv1alpha1.Source{region}, nil, []clusterset.ClusterID{"a"}, "0----"},
		"only the own is not known, c serves":   {[]policyv1alpha1.Source{region}, properties{"b": {"region": "eu"}, "c": {"region": "eu"}}, []clusterset.ClusterID{"c"}, "--0--"},
		"the own is not known, and no property": {[]policyv1alpha1.Source{named, anyone}, nil, nil, "10110"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clusters := preference.Clusters{Local: "a", Properties: test.properties, Serving: map[clusterset.ClusterID]bool{}}
			for _, id := range test.serving {
				clusters.Serving[id] = true
			}
			got := ""
			for _, id := range []clusterset.ClusterID{"a", "b", "c", "d", "x"} {
				if level, ok := clusters.Level(test.sources, id); ok {
					got += fmt.Sprint(level)
				} else {
					got += "-"
				}
			}
			if got != test.want {
				t.Errorf("levels %s, want %s", got, test.want)
			}
		})
	}
}

var http = preference.Port{Name: "http", Family: "IPv4"}

func offer(level int, availability preference.Availability) preference.Offer {
	return preference.Offer{Port: http, Level: level, Availability: availability}
}

// spec: P1
func TestChoose(t *testing.T) {
	t.Parallel()
	const none, terminating, ready = preference.Unavailable, preference.Terminating, preference.Ready
	type offers = []preference.Offer
	type since = map[int]time.Duration
	for name, test := range map[string]struct {
		offers  offers
		inUse   int // -1: none
		since   since
		want    int
		waiting []int
		wait    time.Duration
	}{
		"the first with a ready endpoint":               {offers{offer(0, none), offer(1, ready), offer(2, ready)}, -1, nil, 1, nil, 0},
		"in any order":                                  {offers{offer(2, ready), offer(1, ready), offer(0, none)}, -1, nil, 1, nil, 0},
		"several sources of one level":                  {offers{offer(0, none), offer(0, ready), offer(0, none), offer(1, ready)}, -1, nil, 0, nil, 0},
		"it fails over at once":                         {offers{offer(0, none), offer(1, ready)}, 0, nil, 1, nil, 0},
		"terminating endpoints are worse than ready":    {offers{offer(0, terminating), offer(1, ready)}, 0, nil, 1, nil, 0},
		"terminating endpoints are better than none":    {offers{offer(0, none), offer(1, terminating)}, 0, nil, 1, nil, 0},
		"the level in use is gone":                      {offers{offer(1, ready)}, 0, nil, 1, nil, 0},
		"none is available: the one in use":             {offers{offer(0, none), offer(1, none)}, 1, nil, 1, nil, 0},
		"none is available, the one in use is gone":     {offers{offer(0, none), offer(1, none)}, 2, nil, 0, nil, 0},
		"none is available, and none is in use":         {offers{offer(1, none), offer(0, none)}, -1, nil, 0, nil, 0},
		"a single one, which is not available":          {offers{offer(2, none)}, -1, nil, 2, nil, 0},
		"a better one has just become available":        {offers{offer(0, ready), offer(1, ready)}, 1, nil, 1, []int{0}, 10 * time.Second},
		"a better one is available for 4 s":             {offers{offer(0, ready), offer(1, ready)}, 1, since{0: 4 * time.Second}, 1, []int{0}, 6 * time.Second},
		"a better one is available for 10 s":            {offers{offer(0, ready), offer(1, ready)}, 1, since{0: 10 * time.Second}, 0, nil, 0},
		"a better one was available for 10 s":           {offers{offer(0, none), offer(1, ready)}, 1, since{0: 10 * time.Second}, 1, nil, 0},
		"a better one terminates":                       {offers{offer(0, terminating), offer(1, ready)}, 1, since{0: 10 * time.Second}, 1, nil, 0},
		"the one in use fails while a better one waits": {offers{offer(0, ready), offer(1, none), offer(2, ready)}, 1, since{0: time.Second}, 0, nil, 0},
		"the second best waits less":                    {offers{offer(0, ready), offer(1, ready), offer(2, ready)}, 2, since{0: time.Second, 1: 3 * time.Second}, 2, []int{0, 1}, 7 * time.Second},
		"the second best returns, the best waits":       {offers{offer(0, ready), offer(1, ready), offer(2, ready)}, 2, since{0: time.Second, 1: 11 * time.Second}, 1, []int{0}, 9 * time.Second},
		"both have waited":                              {offers{offer(0, ready), offer(1, ready), offer(2, ready)}, 2, since{0: 10 * time.Second, 1: 11 * time.Second}, 0, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inUse, available := map[preference.Port]int{}, map[preference.Return]time.Duration{}
			if test.inUse >= 0 {
				inUse[http] = test.inUse
			}
			for level, d := range test.since {
				available[preference.Return{Port: http, Level: level}] = d
			}
			got := preference.Choose(test.offers, inUse, available)
			var waiting []int
			for _, r := range got.Waiting {
				waiting = append(waiting, r.Level)
			}
			if got.Ports[http].Level != test.want || !slices.Equal(waiting, test.waiting) || got.Wait != test.wait {
				t.Errorf("level %d, waiting %v for %s; want %d, %v for %s", got.Ports[http].Level, waiting, got.Wait, test.want, test.waiting, test.wait)
			}
		})
	}
}

// Ports and families are independent of each other.
//
// spec: P1
func TestChooseByPort(t *testing.T) {
	t.Parallel()
	metrics, ipv6 := preference.Port{Name: "metrics", Family: "IPv4"}, preference.Port{Name: "http", Family: "IPv6"}
	got := preference.Choose([]preference.Offer{
		offer(0, preference.Ready), offer(1, preference.Ready),
		{Port: metrics, Level: 1, Availability: preference.Ready},
		{Port: ipv6, Level: 0, Availability: preference.Unavailable},
		{Port: ipv6, Level: 2, Availability: preference.Ready},
	}, nil, nil)
	want := map[preference.Port]preference.Chosen{http: {Level: 0, Availability: preference.Ready}, metrics: {Level: 1, Availability: preference.Ready}, ipv6: {Level: 2, Availability: preference.Ready}}
	check.Equal(t, "ports", want, got.Ports)
	if !got.Serves(http, 0) || got.Serves(http, 1) || got.Serves(preference.Port{Name: "other", Family: "IPv4"}, 0) {
		t.Error("other levels serve than those that are chosen")
	}
}

// spec: P1
func TestWithPorts(t *testing.T) {
	t.Parallel()
	slice := clusterset.Slice{Ports: []clusterset.EndpointPort{{Name: "a", Port: 1}, {Name: "b", Port: 2}, {Name: "c", Port: 3}}}
	got := preference.WithPorts(slice, map[string]string{"a": "http", "b": "dns"}, func(merged string) bool { return merged != "dns" })
	check.Equal(t, "ports that are kept, by their merged names", slice.Ports[:1], got.Ports)
	check.Equal(t, "ports of the argument", 3, len(slice.Ports))
}

// spec: P1
func TestAvailabilityOf(t *testing.T) {
	t.Parallel()
	ready, not := clusterset.Endpoint{Ready: clusterset.True}, clusterset.Endpoint{Ready: clusterset.False}
	terminating := clusterset.Endpoint{Ready: clusterset.False, Serving: clusterset.True, Terminating: clusterset.True}
	ended := clusterset.Endpoint{Ready: clusterset.False, Serving: clusterset.False, Terminating: clusterset.True}
	for name, test := range map[string]struct {
		endpoints []clusterset.Endpoint
		want      preference.Availability
	}{
		"none":              {nil, preference.Unavailable},
		"unset means ready": {[]clusterset.Endpoint{{}}, preference.Ready},
		"one is ready":      {[]clusterset.Endpoint{not, terminating, ready, ended}, preference.Ready},
		"none is ready":     {[]clusterset.Endpoint{not, ended}, preference.Unavailable},
		"one still serves":  {[]clusterset.Endpoint{not, terminating, ended}, preference.Terminating},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check.Equal(t, "availability", test.want, preference.AvailabilityOf(test.endpoints))
		})
	}
}

// A port with a ready endpoint at some level is served by exactly one level, with a ready endpoint; no worse level than the one in use
// replaces it while that is ready; a better one only after the delay; and the order of the offers does not matter.
//
// spec: P1
func TestChooseProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		port := rapid.Custom(func(t *rapid.T) preference.Port {
			return preference.Port{Name: rapid.SampledFrom([]string{"", "http", "metrics"}).Draw(t, "name"), Family: "IPv4"}
		})
		level := rapid.IntRange(0, 3)
		offers := rapid.SliceOf(rapid.Custom(func(t *rapid.T) preference.Offer {
			return preference.Offer{Port: port.Draw(t, "port"), Level: level.Draw(t, "level"), Availability: preference.Availability(rapid.IntRange(0, 2).Draw(t, "availability"))}
		})).Draw(t, "offers")
		inUse := rapid.MapOf(port, level).Draw(t, "inUse")
		available := map[preference.Return]time.Duration{}
		for _, o := range offers {
			available[preference.Return{Port: o.Port, Level: o.Level}] = time.Duration(rapid.IntRange(0, 12).Draw(t, "since")) * time.Second
		}
		got := preference.Choose(offers, inUse, available)
		ready := map[preference.Return]bool{}
		for _, o := range offers {
			ready[preference.Return{Port: o.Port, Level: o.Level}] = ready[preference.Return{Port: o.Port, Level: o.Level}] || o.Availability == preference.Ready
			if _, ok := got.Ports[o.Port]; !ok {
				t.Fatalf("port %v is not served", o.Port)
			}
		}
		for r, isReady := range ready {
			chosen, used := got.Ports[r.Port].Level, preference.Return{Port: r.Port, Level: inUse[r.Port]}
			_, isUsed := inUse[r.Port]
			chosenReady := ready[preference.Return{Port: r.Port, Level: chosen}]
			switch {
			case isReady && !chosenReady:
				t.Fatalf("level %d serves %v without a ready endpoint, and level %d has one", chosen, r.Port, r.Level)
			case isUsed && ready[used] && chosen > used.Level:
				t.Fatalf("level %d replaces the better level %d", chosen, used.Level)
			case isUsed && ready[used] && chosen < used.Level && available[preference.Return{Port: r.Port, Level: chosen}] < preference.ReturnDelay:
				t.Fatalf("level %d serves %v too early", chosen, r.Port)
			case isReady && r.Level < chosen && (!isUsed || available[r] >= preference.ReturnDelay):
				t.Fatalf("level %d serves %v, and level %d should", chosen, r.Port, r.Level)
			case isReady && r.Level < chosen && !slices.Contains(got.Waiting, r):
				t.Fatalf("%v does not wait", r)
			}
		}
		if (got.Wait > 0) != (len(got.Waiting) > 0) {
			t.Fatalf("%v wait for %s", got.Waiting, got.Wait)
		}
		slices.Reverse(offers)
		if diff := cmp.Diff(got, preference.Choose(offers, inUse, available)); diff != "" {
			t.Fatalf("the order of the offers matters (-first +second):\n%s", diff)
		}
	})
}

// spec: P2
func TestParseSources(t *testing.T) {
	t.Parallel()
	got, err := preference.ParseSources([]string{"SameCluster", "SameProperty=region", "Any"})
	if diff := cmp.Diff([]policyv1alpha1.Source{own, region, anyone}, got); diff != "" || err != nil {
		t.Errorf("error %v, sources (-want +got):\n%s", err, diff)
	}
	if got, err := preference.ParseSources(nil); got != nil || err != nil {
		t.Errorf("no sources: %v, %v", got, err)
	}
	for _, texts := range [][]string{{"any"}, {"Any", "SameCluster"}, {"SameProperty"}, {"SameProperty="}, {"SameProperty=A"}, {""}, {"SameCluster=x"}} {
		if got, err := preference.ParseSources(texts); err == nil || got != nil {
			t.Errorf("%q: %v", texts, got)
		}
	}
}
