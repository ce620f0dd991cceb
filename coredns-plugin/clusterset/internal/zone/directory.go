// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package zone

import (
	"hash/maphash"
	"iter"
	"maps"
	"strings"
	"sync/atomic"
)

// shardCount limits the size of the map that a change copies: 10,000 services are 40 entries per shard.
const shardCount = 256

// directory has the nodes of a zone. Readers need no lock: each shard is an atomic pointer to an immutable map. There is one writer.
type directory struct {
	seed       maphash.Seed
	shards     [shardCount]atomic.Pointer[map[ServiceKey]*node]
	namespaces atomic.Pointer[map[string]int] // with the number of services
}

func newDirectory() *directory {
	d := &directory{seed: maphash.MakeSeed()}
	for i := range d.shards {
		d.shards[i].Store(&map[ServiceKey]*node{})
	}
	d.namespaces.Store(&map[string]int{})
	return d
}

func (d *directory) shard(key ServiceKey) int {
	return int(maphash.String(d.seed, string(key)) % shardCount)
}

// node returns the node of a service, nil if there is none.
func (d *directory) node(key ServiceKey) *node { return (*d.shards[d.shard(key)].Load())[key] }

// hasNamespace reports whether a service of this namespace is served.
func (d *directory) hasNamespace(namespace string) bool { return (*d.namespaces.Load())[namespace] > 0 }

// all yields the nodes, in no order.
func (d *directory) all() iter.Seq[*node] {
	return func(yield func(*node) bool) {
		for i := range d.shards {
			for _, n := range *d.shards[i].Load() {
				if !yield(n) {
					return
				}
			}
		}
	}
}

// publish replaces the nodes of services; nil removes a service. A namespace is added before its first service and removed after
// its last, so that no ancestor of an existing name is ever denied (spec N6).
func (d *directory) publish(changes map[ServiceKey]*node) {
	shards := map[int]map[ServiceKey]*node{}
	var added, removed []string // the namespaces of services
	for key, n := range changes {
		i := d.shard(key)
		if shards[i] == nil {
			shards[i] = maps.Clone(*d.shards[i].Load())
		}
		_, namespace, _ := strings.Cut(string(key), ".")
		was := shards[i][key] != nil
		if n == nil {
			delete(shards[i], key)
			if was {
				removed = append(removed, namespace)
			}
			continue
		}
		shards[i][key] = n
		if !was {
			added = append(added, namespace)
		}
	}
	d.count(added, +1)
	for i, nodes := range shards {
		d.shards[i].Store(&nodes)
	}
	d.count(removed, -1)
}

// count adds to the number of services in namespaces.
func (d *directory) count(namespaces []string, by int) {
	if len(namespaces) == 0 {
		return
	}
	counts := maps.Clone(*d.namespaces.Load())
	for _, namespace := range namespaces {
		counts[namespace] += by
		if counts[namespace] == 0 {
			delete(counts, namespace)
		}
	}
	d.namespaces.Store(&counts)
}
