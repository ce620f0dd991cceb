// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/tombolo-mcs/tombolo/e2e/bench/agent/world"
)

// membersRow is what is measured with a number of members. CPU is in percent of one core.
type membersRow struct {
	members, services               int
	rate                            float64
	apiServer, etcd, harness        float64 // CPU
	apiServerMB, etcdMB             float64
	heartbeats, events              float64 // watch events per second
	closed                          float64 // watches that the API server closed per second, because they did not keep up
	p50, p99                        float64 // lag in milliseconds
	slowP50, slowP99, recovered     float64 // the same while etcd is slow, and the seconds until all changes have arrived
	connected, reconnected, rejects float64
}

func (b *bench) addMembers(row membersRow) {
	name := fmt.Sprintf("Members/members=%d", row.members)
	for program, values := range map[string]map[string]float64{
		"kube-apiserver": {
			"cpu-percent": row.apiServer, "resident-MB": row.apiServerMB, "heartbeat-events/s": row.heartbeats, "watch-events/s": row.events,
			"rejected-requests": row.rejects, "closed-watches/s": row.closed,
		},
		"etcd":        {"cpu-percent": row.etcd, "resident-MB": row.etcdMB},
		world.Harness: {"cpu-percent": row.harness},
		agent: {
			"changes/s": row.rate, "p50-ms": row.p50, "p99-ms": row.p99, "connected-s": row.connected, "reconnected-s": row.reconnected,
			"slow-etcd-p50-ms": row.slowP50, "slow-etcd-p99-ms": row.slowP99, "after-slow-etcd-s": row.recovered,
		},
	} {
		for unit, value := range values {
			b.Add(name, program, unit, value)
		}
	}
}

// printMembers prints a line for each number of members.
func printMembers(rows []membersRow) error {
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "members\tservices\tchanges/s\tCPU % API server\tetcd\tharness\tMB API server\tetcd\theartbeat events/s\tall events/s\tclosed watches/s\tlag p50 ms\tp99\tslow etcd p50\tp99\trecovered s\tconnected s\treconnected s\trejected\t")
	for _, r := range rows {
		fmt.Fprintf(table, "%d\t%d\t%.1f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.1f\t%.1f\t%.1f\t%.0f\t%.0f\t%.1f\t%.1f\t%.1f\t%.0f\t\n", r.members, r.services, r.rate,
			r.apiServer, r.etcd, r.harness, r.apiServerMB, r.etcdMB, r.heartbeats, r.events, r.closed, r.p50, r.p99,
			r.slowP50, r.slowP99, r.recovered, r.connected, r.reconnected, r.rejects)
	}
	return table.Flush()
}
