// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package importing

import (
	"slices"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/tombolo-mcs/tombolo/internal/check"
	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/internal/reach"
	"github.com/tombolo-mcs/tombolo/internal/sources"
	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

const firstGateway, secondGateway = "10.9.0.1", "10.9.0.2"

// probed is a cluster with two gateways, and what its agent knows of them.
type probed struct {
	view
	known     *reach.Reach
	passed    *testingclock.FakeClock
	allocated *ports.Allocator
}

// newProbed returns behindGateway with a second gateway.
func newProbed() *probed {
	passed := testingclock.NewFakeClock(time.Unix(0, 0))
	p := &probed{
		view: behindGateway(), known: &reach.Reach{}, passed: passed,
		allocated: ports.New(ports.Unused(), passed.Now()),
	}
	gateway := p.Sources.Gateways.Slices[0].Endpoints[0]
	gateway.Addresses = []string{secondGateway}
	p.Sources.Gateways.Slices[0].Endpoints = append(p.Sources.Gateways.Slices[0].Endpoints, gateway)
	return p
}

// gather does what gather does when it has read the sources.
func (p *probed) gather(t *testing.T) *probed {
	t.Helper()
	p.choosePaths()
	_, err := p.allocated.Assign(key, p.wantedPorts(), p.passed.Now(), func(ports.State) error { return nil })
	check.Must(t, err)
	p.Numbers.Ports, p.Numbers.Since = p.allocated.Of(key)
	p.portsAfter, p.Now, p.Reach = 0, p.passed.Now(), p.known.Seen()
	p.chooseGateways()
	p.readOpenPorts()
	return p
}

// opens says which Service ports of b each gateway has opened. A gateway that is not named has not answered.
func (p *probed) opens(opened map[string][]int32) *probed {
	open := map[string]ports.Open{}
	for gateway, services := range opened {
		open[gateway] = ports.Open{}
		for _, port := range services {
			owner := ports.Owner{Service: key, Cluster: "b", Port: port}
			open[gateway][p.Numbers.Ports[owner]] = ports.DigestOf(owner)
		}
	}
	p.known.Observe(open, nil)
	return p
}

// reconcile stores the desired slices.
func (p *probed) reconcile(t *testing.T) map[string][]string {
	t.Helper()
	p.gather(t).Mirrored = desiredSlices(decide(p.view))
	return served(p.Mirrored)
}

// onlyB removes exporter a.
func (p *probed) onlyB() *probed {
	p.Sources.Hub.Exports, p.Sources.Hub.Slices = p.Sources.Hub.Exports[1:], nil
	return p
}

// A new slice records its listening ports before it lists gateways. It lists each gateway when the gateway has opened all of its ports, and
// no other; also if nothing else serves meanwhile, and whatever happens to the gateways later. spec: G2, G8
func TestSlicesListGatewaysThatListen(t *testing.T) {
	t.Parallel()
	p := newProbed().onlyB()
	none := map[string][]int32{firstGateway: {}, secondGateway: {}}
	p.opens(none)
	waiting := map[string][]string{"b": {"80=10000"}}
	check.Equal(t, "a new slice", waiting, p.reconcile(t))
	check.Equal(t, "wait", openingTime, p.portsAfter)
	check.Equal(t, "left out", []string{"port 53/UDP of cluster b is left out: gateways support only TCP"}, check.Messages(unusable(p.view, decide(p.view))))
	p.opens(map[string][]int32{firstGateway: {80}, secondGateway: {}})
	check.Equal(t, "one gateway listens", map[string][]string{"b": {"http", firstGateway, "80=10000"}}, p.reconcile(t))
	check.Equal(t, "wait", time.Duration(0), p.portsAfter)
	both := map[string][]int32{firstGateway: {80}, secondGateway: {80}}
	listening := map[string][]string{"b": {"http", firstGateway, secondGateway, "80=10000"}}
	check.Equal(t, "both listen", listening, p.opens(both).reconcile(t))

	https := clusterset.Port{Name: "https", Protocol: "TCP", Port: 443}
	p.Sources.Hub.Exports[0].Ports = append(slices.Clone(p.Sources.Hub.Exports[0].Ports), https)
	p.Sources.Hub.Exports[0].Available[https.ID()] = 2
	const recorded = "80=10000,443=10001"
	check.Equal(t, "a port was added", map[string][]string{"b": {"http", firstGateway, secondGateway, recorded}}, p.reconcile(t))
	stale := map[string][]int32{firstGateway: {80, 443}, secondGateway: {80}}
	check.Equal(t, "one gateway reads no changes", map[string][]string{"b": {"http", "https", firstGateway, recorded}}, p.opens(stale).reconcile(t))
	p.known = &reach.Reach{} // the agent is restarted, and probes before it reconciles
	p.opens(stale)
	check.Equal(t, "after a restart of the agent", map[string][]string{"b": {"http", "https", firstGateway, recorded}}, p.reconcile(t))
	p.opens(map[string][]int32{secondGateway: {80}})
	p.Sources.Gateways.Slices[0].Endpoints = p.Sources.Gateways.Slices[0].Endpoints[1:]
	check.Equal(t, "only the gateway that reads no changes is left", map[string][]string{"b": {"http", secondGateway, recorded}}, p.reconcile(t))
	check.Equal(t, "left out", "port 443/TCP of cluster b is left out: no gateway of this cluster listens for it. Check in the logs of the gateways whether they reach their API server and can open the port",
		check.Messages(unusable(p.passes(openingTime).gather(t).view, decide(p.view)))[1])
}

// passes lets time pass.
func (p *probed) passes(d time.Duration) *probed {
	p.passed.Step(d)
	return p
}

// If all gateways lose their API server, they are used for the ports that they have open, and for no new one; the import says so.
// spec: G8
func TestAllGatewaysAreStale(t *testing.T) {
	t.Parallel()
	p := newProbed().onlyB()
	p.gather(t).opens(map[string][]int32{firstGateway: {80}, secondGateway: {80}})
	p.reconcile(t)
	https := clusterset.Port{Name: "https", Protocol: "TCP", Port: 443}
	p.Sources.Hub.Exports[0].Ports = append(slices.Clone(p.Sources.Hub.Exports[0].Ports), https)
	p.Sources.Hub.Exports[0].Available[https.ID()] = 2
	want := map[string][]string{"b": {"http", firstGateway, secondGateway, "80=10000,443=10001"}}
	check.Equal(t, "slices", want, p.reconcile(t))
	p.passes(time.Hour)
	check.Equal(t, "slices an hour later", want, p.reconcile(t))
	check.Equal(t, "ports left out", 2, len(leftOutPorts(p.view, decide(p.view).merged)))
}

// Older gateways do not report their ports: they count as listening a second after a port was allocated. The same applies if no gateway
// answers the agent. spec: G8
func TestOlderGateways(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]map[string]ports.Open{"older": {firstGateway: nil, secondGateway: nil}, "no answer": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProbed().onlyB()
			p.known.Observe(open, nil)
			check.Equal(t, "a new slice", map[string][]string{"b": {"80=10000"}}, p.reconcile(t))
			check.Equal(t, "wait", listenLag, p.portsAfter)
			p.passes(listenLag)
			check.Equal(t, "a second later", map[string][]string{"b": {"http", firstGateway, secondGateway, "80=10000"}}, p.reconcile(t))
		})
	}
}

// The addresses of a source that moves to another network stay until a gateway listens, at most for some seconds.
// spec: G2, G8, W3, R2
func TestSourceThatMovesToAnotherNetwork(t *testing.T) {
	t.Parallel()
	p := newProbed()
	moved := p.Sources.Hub
	p.Sources.Hub.Exporters = map[clusterset.ClusterID]reach.Cluster{"a": {}, "b": {}}
	p.Sources.Hub.Slices = append(slices.Clone(moved.Slices), clusterset.Slice{
		Cluster: "b", ID: "0", AddressType: "IPv4", Ports: []clusterset.EndpointPort{{Name: "http", Protocol: "TCP", Port: 8080}},
		Endpoints: []clusterset.Endpoint{{Addresses: []string{"10.2.0.1"}}},
	})
	p.opens(map[string][]int32{firstGateway: {}, secondGateway: {}})
	direct := []string{"http", "10.1.0.1", ""}
	check.Equal(t, "in one network", map[string][]string{"a": direct, "b": {"http", "10.2.0.1", ""}}, p.reconcile(t))
	leaving := *p // its records are deleted, and the change of its Member has not arrived
	p.Sources.Hub = moved
	waiting := map[string][]string{"a": direct, "b": {"80=10000", "http", "10.2.0.1", ""}}
	check.Equal(t, "before a gateway listens", waiting, p.reconcile(t))
	leaving.Mirrored = p.Mirrored
	leaving.Sources.Hub = moved
	leaving.Sources.Hub.Exporters = map[clusterset.ClusterID]reach.Cluster{"a": {}, "b": {Gateway: true}}
	check.Equal(t, "before the member is known to move", waiting, leaving.reconcile(t))
	late := *p
	late.Mirrored = slices.Clone(p.Mirrored)
	p.opens(map[string][]int32{firstGateway: {80}, secondGateway: {}})
	check.Equal(t, "when one listens, and the gateways of b may not know it yet", waiting, p.reconcile(t))
	check.Equal(t, "wait", listenLag, p.portsAfter)
	p.passes(listenLag)
	check.Equal(t, "when one listens", map[string][]string{"a": direct, "b": {"http", firstGateway, "80=10000"}}, p.reconcile(t))
	p.opens(map[string][]int32{firstGateway: {}, secondGateway: {}})
	late.passes(openingTime)
	check.Equal(t, "if none listens", map[string][]string{"a": direct, "b": {"80=10000"}}, late.reconcile(t))
}

// What the hub has lost stays, with the gateways that listen. spec: G2, G8
func TestKeptPortsOfGateways(t *testing.T) {
	t.Parallel()
	p := newProbed()
	p.gather(t).opens(map[string][]int32{firstGateway: {80}, secondGateway: {80}})
	p.reconcile(t)
	p.ServiceImport = importOf(held80, "a", "b")
	p.Sources.Hub.Exports, p.Sources.Hub.Slices, p.Sources.Hub.Exporters = nil, nil, nil
	p.missing = map[clusterset.ClusterID]sources.Missing{"a": {Export: true, Slices: []string{"0"}}, "b": {Export: true}}
	p.opens(map[string][]int32{firstGateway: {}, secondGateway: {80}})
	check.Equal(t, "slices of b", []string{"http", secondGateway, "80=10000"}, p.reconcile(t)["b"])
}

// A virtual IP is listed when a gateway listens for its hostname. spec: G8, G9
func TestVirtualIPsWaitForGateways(t *testing.T) {
	t.Parallel()
	c := newCluster(headlessBehindGateway(clusterset.Hostnames{"db-0": {80: 8080}}))
	c.reconcile(t)
	owner := ports.Owner{Service: key, Cluster: "b", Hostname: "db-0", Port: 80}
	number := c.view.Numbers.Ports[owner]
	if number == 0 {
		t.Fatalf("no port of db-0 in %v", c.view.Numbers.Ports)
	}
	endpoints := func() (virtual, gateways int) {
		d := decide(c.view)
		for _, slice := range desiredSlices(d) {
			if SourceOf(slice) == "b" {
				virtual += len(slice.Endpoints)
			}
		}
		for _, slice := range d.virtual.slices {
			gateways += len(slice.Endpoints)
		}
		return virtual, gateways
	}
	gateway := c.view.Sources.Gateways.Slices[0].Endpoints[0].Addresses[0]
	for _, step := range []struct {
		name string
		open ports.Open
		want bool
	}{
		{"before it listens", ports.Open{}, false},
		{"when it listens", ports.Open{number: ports.DigestOf(owner)}, true},
		{"while it has the port of another hostname", ports.Open{number: ports.DigestOf(ports.Owner{Hostname: "db-1"})}, false},
	} {
		known := &reach.Reach{}
		known.Observe(map[string]ports.Open{gateway: step.open}, nil)
		c.view.Reach = known.Seen()
		c.view.readOpenPorts()
		virtual, gateways := endpoints()
		if virtual > 0 != step.want || gateways > 0 != step.want {
			t.Errorf("%s: %d virtual IPs and %d gateways are listed", step.name, virtual, gateways)
		}
	}
}
