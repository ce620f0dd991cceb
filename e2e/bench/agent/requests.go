// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// requests are how many there have been, by cluster, verb and resource, as the API servers count them. The watches are
// not among them, nor what is not about services.
type requests map[request]int

type request struct{ cluster, verb, resource string }

// concerning are the resources that a service's export and import consist of.
var concerning = []string{
	"services", "services/status", "endpointslices", "serviceimports", "serviceimports/status", "serviceexports", "serviceexports/status",
	"publishedservices", "publishedendpoints",
}

// isRead says whether a request changes nothing.
func (r request) isRead() bool { return r.verb == "GET" || r.verb == "LIST" }

// countRequests asks the API servers of the hub and of the members.
func countRequests(ctx context.Context, w *world) (requests, error) {
	result := requests{}
	for _, cluster := range append([]*lab.Cluster{w.hub}, clustersOf(w)...) {
		if err := result.add(ctx, cluster); err != nil {
			return nil, fmt.Errorf("count the requests to %s: %w", cluster.Name, err)
		}
	}
	return result, nil
}

func clustersOf(w *world) []*lab.Cluster {
	var result []*lab.Cluster
	for _, m := range w.members {
		result = append(result, m.cluster)
	}
	return result
}

// since returns those that have come since others were counted, in a cluster or, where that is empty, in all.
func (r requests) since(earlier requests, cluster string) requests {
	result := requests{}
	for what, n := range r {
		if d := n - earlier[what]; d > 0 && (cluster == "" || cluster == what.cluster) {
			result[what] = d
		}
	}
	return result
}

// total returns the number of those that are meant.
func (r requests) total(meant func(request) bool) int {
	n := 0
	for what, m := range r {
		if meant(what) {
			n += m
		}
	}
	return n
}

func (r requests) String() string {
	var parts []string
	for what, n := range r {
		parts = append(parts, fmt.Sprintf("%s %s %s %d", what.cluster, what.verb, what.resource, n))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

func (r requests) add(ctx context.Context, cluster *lab.Cluster) error {
	all, err := cluster.Requests(ctx)
	r.note(cluster.Name, all)
	return err
}

// note adds those that concern services.
func (r requests) note(cluster string, all []lab.Requests) {
	for _, a := range all {
		if slices.Contains(concerning, a.Resource) && a.Verb != "WATCH" {
			r[request{cluster, a.Verb, a.Resource}] += a.Count
		}
	}
}

// quietFor is how long nothing may be asked until a change counts as dealt with.
const quietFor = 1500 * time.Millisecond

// settled waits until nothing is asked any more, and returns the count. It is an error if that does not come.
func settled(ctx context.Context, w *world) (requests, error) {
	var last requests
	err := wait.PollUntilContextTimeout(ctx, quietFor, roundTimeout, true, func(ctx context.Context) (bool, error) {
		now, err := countRequests(ctx, w)
		if err != nil {
			return false, err
		}
		same := maps.Equal(last, now)
		last = now
		return same, nil
	})
	if err != nil {
		return nil, fmt.Errorf("wait until the API servers are asked for nothing any more: %w", err)
	}
	return last, nil
}
