// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/tombolo-mcs/tombolo/controllers/gather"
	"github.com/tombolo-mcs/tombolo/internal/gateway/ports"
	"github.com/tombolo-mcs/tombolo/internal/reach"
)

const (
	// probeInterval is the time between two probes of a gateway, and the timeout of one.
	probeInterval = time.Second
	// awaitedInterval is the time until the next probe if a slice waits for a port that gateways open now.
	awaitedInterval = 100 * time.Millisecond
	// probeFailures is after how many failures in a row a gateway is not used.
	probeFailures = 3
	probePort     = 8081
)

// probeClient uses no proxy, which the environment of the agent may name.
var probeClient = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Prober probes the gateways of this cluster each second, because the kubelet of a node without power does not report that its pods
// are not ready, and because slices list a gateway only for the ports that it has open (G8).
type Prober struct {
	Sources gather.Reader
	Reach   *reach.Reach
	// Port is that of the readiness check of gateways; 0 means 8081.
	Port int

	known map[string]gatewayState // by address
}

// gatewayState is what is known of a gateway from its probes.
type gatewayState struct {
	failures int // in a row
	// last is its last answer, until it counts as unanswering; nil if there was none.
	last *answer
}

// answer is the answer of a gateway that is ready.
type answer struct {
	// tag identifies the open ports; empty for an older gateway, which does not report them.
	tag  string
	open ports.Open
}

// NeedLeaderElection returns true: only the leader writes slices.
func (p *Prober) NeedLeaderElection() bool { return true }

// Start probes until ctx ends.
func (p *Prober) Start(ctx context.Context) error {
	for {
		p.probe(ctx)
		regular := time.NewTimer(probeInterval)
		select {
		case <-ctx.Done():
			return nil
		case <-regular.C:
		case <-p.Reach.Awaited():
			regular.Stop()
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(awaitedInterval):
			}
		}
	}
}

// probe probes each ready gateway once.
func (p *Prober) probe(ctx context.Context) {
	gateways, err := p.Sources.LocalSlices(ctx, p.Sources.GatewayService())
	if err != nil {
		log.FromContext(ctx).Error(err, "cannot probe the gateways")
		return
	}
	addresses := sets.New[string]()
	for _, slice := range gateways {
		for _, endpoint := range slice.Endpoints {
			if endpoint.IsReady() {
				addresses.Insert(endpoint.Addresses...)
			}
		}
	}
	p.count(addresses, p.answers(ctx, sets.List(addresses)))
}

// count counts the failures, and reports which gateways do not answer, and which ports the others have open. answers lacks those that have
// not answered now.
func (p *Prober) count(probed sets.Set[string], answers map[string]answer) {
	before := p.known
	p.known = map[string]gatewayState{}
	unanswering, open := sets.New[string](), map[string]ports.Open{}
	for address := range probed {
		state := before[address]
		if now, ok := answers[address]; ok {
			state = gatewayState{last: &now}
		} else {
			state.failures++
		}
		if state.failures >= probeFailures {
			state.last = nil
			unanswering.Insert(address)
		}
		if state.last != nil {
			open[address] = state.last.open
		}
		p.known[address] = state
	}
	p.Reach.Observe(open, unanswering)
}

// answers returns the answers of the gateways that answer in time.
func (p *Prober) answers(ctx context.Context, addresses []string) map[string]answer {
	ctx, cancel := context.WithTimeout(ctx, probeInterval)
	defer cancel()
	errs, all := make([]error, len(addresses)), make([]answer, len(addresses))
	var running sync.WaitGroup
	for i, address := range addresses {
		running.Go(func() { all[i], errs[i] = p.ask(ctx, address) })
	}
	running.Wait()
	result := map[string]answer{}
	for i, err := range errs {
		if err == nil {
			result[addresses[i]] = all[i]
		}
	}
	return result
}

// ask returns the answer of a gateway that says that it is ready, and its open ports: the last ones if they are the same.
func (p *Prober) ask(ctx context.Context, address string) (answer, error) {
	port := p.Port
	if port == 0 {
		port = probePort
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(address, strconv.Itoa(port))+"/readyz", http.NoBody)
	if err != nil {
		return answer{}, err
	}
	var last answer
	if known := p.known[address].last; known != nil {
		last = *known
	}
	request.Header.Set("If-None-Match", cmp.Or(last.tag, `""`)) // an empty tag is none of a gateway, and asks for the ports
	response, err := probeClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	tag := response.Header.Get("ETag")
	switch {
	case response.StatusCode == http.StatusNotModified && tag == last.tag && tag != "":
		return last, nil
	case response.StatusCode != http.StatusOK:
		return answer{}, fmt.Errorf("status %s", response.Status)
	case tag == "":
		return answer{}, nil
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, int64(ports.MaxOpenText)+1))
	if err != nil {
		return answer{}, err
	}
	open, err := ports.DecodeOpen(text)
	return answer{tag: tag, open: open}, err
}
