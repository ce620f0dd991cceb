// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// metricsInterval is how often an agent is asked how far it has come.
const metricsInterval = 100 * time.Millisecond

// scrape returns all of the agent's metrics, in Prometheus' text format. The agent counts its imports for that, so one scrape answers
// all questions of a moment.
func (a *agentProcess) scrape(ctx context.Context) ([]byte, error) {
	body, err := fetch(ctx, "http://"+a.metrics+"/metrics")
	if err != nil {
		return nil, fmt.Errorf("metrics of the agent of %s: %w", a.id, err)
	}
	defer body.Close()
	return io.ReadAll(body)
}

// samples returns the agent's metrics of a name, added up over the label sets that contain all of some texts.
func (a *agentProcess) samples(ctx context.Context, name string, having ...string) (float64, error) {
	exposition, err := a.scrape(ctx)
	if err != nil {
		return 0, err
	}
	return addUp(bytes.NewReader(exposition), name, having...)
}

// addUp returns the sum of the samples of a metric, in Prometheus' text format, whose labels contain all of some texts; 0
// where there are none.
func addUp(exposition io.Reader, name string, having ...string) (float64, error) {
	sum := 0.0
	lines := bufio.NewScanner(exposition)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		rest, ok := strings.CutPrefix(lines.Text(), name)
		if !ok || !strings.HasPrefix(rest, "{") && !strings.HasPrefix(rest, " ") || !containsAll(rest, having) {
			continue
		}
		value, err := strconv.ParseFloat(rest[strings.LastIndex(rest, " ")+1:], 64)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", name, err)
		}
		sum += value
	}
	return sum, lines.Err()
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// awaitWorkedOff returns when the agent has looked at so many imports and nothing waits or is being worked on.
func (a *agentProcess) awaitWorkedOff(ctx context.Context, imports int) (time.Time, error) {
	last := ""
	err := wait.PollUntilContextTimeout(ctx, metricsInterval, roundTimeout, true, func(ctx context.Context) (bool, error) {
		exposition, err := a.scrape(ctx)
		if err != nil {
			return false, a.ended() // it does not listen yet
		}
		looked, err := addUp(bytes.NewReader(exposition), "controller_runtime_reconcile_total", `controller="imports"`)
		if err != nil {
			return false, err
		}
		waiting, err := addUp(bytes.NewReader(exposition), "workqueue_depth")
		if err != nil {
			return false, err
		}
		busy, err := addUp(bytes.NewReader(exposition), "controller_runtime_active_workers")
		last = fmt.Sprintf("%.0f of %d imports looked at, %.0f wait", looked, imports, waiting)
		return looked >= float64(imports) && waiting+busy == 0, err
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("the agent of %s is not in sync (%s): %w\nIts log ends:\n%s", a.id, last, err, a.logTail())
	}
	return time.Now(), nil
}

// awaitHeard returns when the agent has heard of so many other members, and has looked at what they export.
func (a *agentProcess) awaitHeard(ctx context.Context, members, imports int) error {
	err := wait.PollUntilContextTimeout(ctx, metricsInterval, roundTimeout, true, func(ctx context.Context) (bool, error) {
		exposition, err := a.scrape(ctx)
		if err != nil {
			return false, err
		}
		live, err := addUp(bytes.NewReader(exposition), "tombolo_member_live")
		return live >= float64(members), err
	})
	if err != nil {
		return fmt.Errorf("the agent of %s does not hear of %d members: %w\nIts log ends:\n%s", a.id, members, err, a.logTail())
	}
	_, err = a.awaitWorkedOff(ctx, imports)
	return err
}

// cachesSynced returns when, by its own log, the agent began to work on imports and had read from the hub: the later of
// the two.
func (a *agentProcess) cachesSynced() (time.Time, error) {
	file, err := os.Open(a.log)
	if err != nil {
		return time.Time{}, err
	}
	defer file.Close()
	var workers, connected time.Time
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var line struct {
			Time            time.Time `json:"time"`
			Msg, Controller string
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			continue // a line of a library's
		}
		switch {
		case line.Msg == "Starting workers" && line.Controller == "imports":
			workers = line.Time
		case line.Msg == "connected to the hub":
			connected = line.Time
		}
	}
	if workers.IsZero() || connected.IsZero() {
		return time.Time{}, fmt.Errorf("the agent of %s does not say when its caches were in sync; its log ends:\n%s", a.id, a.logTail())
	}
	if connected.After(workers) {
		return connected, lines.Err()
	}
	return workers, lines.Err()
}
