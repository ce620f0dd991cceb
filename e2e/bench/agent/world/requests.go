// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// Requests are the numbers of requests that API servers have answered, without watches, about the kinds of an export and
// an import.
type Requests map[Request]int

// Request is a sort of requests.
type Request struct{ Cluster, Verb, Resource string }

func (q Request) isRead() bool { return q.Verb == "GET" || q.Verb == "LIST" }

var countedResources = []string{
	"services", "services/status", "endpointslices", "serviceimports", "serviceimports/status", "serviceexports", "serviceexports/status",
	"publishedservices", "publishedendpoints",
}

func (r Requests) add(cluster string, all []lab.Requests) {
	for _, a := range all {
		if slices.Contains(countedResources, a.Resource) && a.Verb != "WATCH" {
			r[Request{cluster, a.Verb, a.Resource}] += a.Count
		}
	}
}

// Since returns the requests that are not in earlier ones.
func (r Requests) Since(earlier Requests) Requests {
	result := Requests{}
	for what, n := range r {
		if d := n - earlier[what]; d > 0 {
			result[what] = d
		}
	}
	return result
}

func (r Requests) count(counted func(Request) bool) int {
	n := 0
	for what, m := range r {
		if counted(what) {
			n += m
		}
	}
	return n
}

// Total returns the number of requests.
func (r Requests) Total() int { return r.count(func(Request) bool { return true }) }

// In returns how many requests a cluster has answered.
func (r Requests) In(cluster string) int {
	return r.count(func(q Request) bool { return q.Cluster == cluster })
}

// Reads returns how many requests were reads.
func (r Requests) Reads() int { return r.count(Request.isRead) }

// Writes returns how many requests to a cluster were no reads.
func (r Requests) Writes(cluster string) int {
	return r.count(func(q Request) bool { return q.Cluster == cluster && !q.isRead() })
}

func (r Requests) String() string {
	var parts []string
	for what, n := range r {
		parts = append(parts, fmt.Sprintf("%s %s %s %d", what.Cluster, what.Verb, what.Resource, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// settleInterval is how long there must be no requests until a change counts as processed.
const settleInterval = 1500 * time.Millisecond

// SettledRequests returns the requests to the hub and to the members once there are no more.
func SettledRequests(ctx context.Context, w *World) (Requests, error) {
	clusters := []*lab.Cluster{w.Hub}
	for _, m := range w.Members {
		clusters = append(clusters, m.Cluster)
	}
	var last Requests
	err := lab.Await(ctx, settleInterval, RoundTimeout, func(ctx context.Context) error {
		before, now := last, Requests{}
		for _, c := range clusters {
			all, err := c.Requests(ctx)
			if err != nil {
				return err
			}
			now.add(c.Name, all)
		}
		if last = now; !maps.Equal(before, now) {
			return errors.New("there are still requests")
		}
		return nil
	})
	return last, err
}
