// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

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

// requests are the numbers of requests that API servers have answered, without watches, about the kinds of an export and
// an import.
type requests map[request]int

type request struct{ cluster, verb, resource string }

func (q request) isRead() bool { return q.verb == "GET" || q.verb == "LIST" }

var countedResources = []string{
	"services", "services/status", "endpointslices", "serviceimports", "serviceimports/status", "serviceexports", "serviceexports/status",
	"publishedservices", "publishedendpoints",
}

func (r requests) add(cluster string, all []lab.Requests) {
	for _, a := range all {
		if slices.Contains(countedResources, a.Resource) && a.Verb != "WATCH" {
			r[request{cluster, a.Verb, a.Resource}] += a.Count
		}
	}
}

func (r requests) since(earlier requests) requests {
	result := requests{}
	for what, n := range r {
		if d := n - earlier[what]; d > 0 {
			result[what] = d
		}
	}
	return result
}

func (r requests) count(counted func(request) bool) int {
	n := 0
	for what, m := range r {
		if counted(what) {
			n += m
		}
	}
	return n
}

func (r requests) total() int { return r.count(func(request) bool { return true }) }

func (r requests) in(cluster string) int {
	return r.count(func(q request) bool { return q.cluster == cluster })
}

func (r requests) reads() int { return r.count(request.isRead) }

// writes returns how many requests to a cluster were no reads.
func (r requests) writes(cluster string) int {
	return r.count(func(q request) bool { return q.cluster == cluster && !q.isRead() })
}

func (r requests) String() string {
	var parts []string
	for what, n := range r {
		parts = append(parts, fmt.Sprintf("%s %s %s %d", what.cluster, what.verb, what.resource, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// settleInterval is how long there must be no requests until a change counts as processed.
const settleInterval = 1500 * time.Millisecond

// settledRequests returns the requests to the hub and to the members once there are no more.
func settledRequests(ctx context.Context, w *world) (requests, error) {
	clusters := []*lab.Cluster{w.hub}
	for _, m := range w.members {
		clusters = append(clusters, m.cluster)
	}
	var last requests
	err := lab.Await(ctx, settleInterval, roundTimeout, func(ctx context.Context) error {
		before, now := last, requests{}
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
