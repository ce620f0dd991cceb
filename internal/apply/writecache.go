// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/internal/plan"
)

// maxWrites is the size of a writeCache. The watch returns a write within milliseconds, so only the latest writes are needed. A
// missing entry costs one request that the API server refuses.
const maxWrites = 4096

// writeCache contains the last write of this agent to each object.
type writeCache struct {
	cache *lru.Cache
	// adds is set after the API server has added metadata to an object once: most clusters have no such policy.
	adds *atomic.Bool
}

// identity identifies an object of a cluster.
type identity struct {
	kind reflect.Type
	key  client.ObjectKey
}

// write is the last write to an object.
type write struct {
	outcome outcome
	// version is the resource version that the write created, or that it deleted.
	version string
	// added is what the API server has added to the metadata of the object; nil if it has added nothing.
	added *plan.Metadata
}

type outcome string

const (
	outcomeWritten outcome = "written"
	outcomeDeleted outcome = "deleted"
)

func newWriteCache() writeCache { return writeCache{lru.New(maxWrites), &atomic.Bool{}} }

// record stores a write. object is the response of the API server, or the deleted object.
func (m writeCache) record(object client.Object, o outcome, added plan.Metadata) {
	last := write{outcome: o, version: object.GetResourceVersion()}
	if !added.IsEmpty() {
		last.added = &added
		m.adds.Store(true)
	}
	m.cache.Add(identityOf(object), last)
}

// Added returns what the API server has added to the metadata of an object in the last write of this agent, because of an admission policy. It
// returns nothing if another writer has changed the object since.
func (w Writer) Added(object client.Object) plan.Metadata {
	if !w.lastWrites.adds.Load() {
		return plan.Metadata{}
	}
	found, ok := w.lastWrites.cache.Get(identityOf(object))
	if !ok {
		return plan.Metadata{}
	}
	last := found.(write)
	if last.added == nil || last.outcome != outcomeWritten || last.version != object.GetResourceVersion() {
		return plan.Metadata{}
	}
	return *last.added
}

// missingFrom returns the last write to an object if the cached version of the object does not include it, otherwise the zero write.
// version is empty if the cache does not have the object.
func (m writeCache) missingFrom(object client.Object, version string) write {
	found, ok := m.cache.Get(identityOf(object))
	if !ok {
		return write{}
	}
	last := found.(write)
	if last.outcome == outcomeDeleted && version == last.version || last.outcome == outcomeWritten && older(version, last.version) {
		return last
	}
	return write{}
}

// isReverted reports whether the cached version of an object is the work of another writer, after the last write of this agent to the object.
// version is empty if the cache does not have the object, which may also be because the cache is stale.
func (m writeCache) isReverted(object client.Object, version string) bool {
	found, ok := m.cache.Get(identityOf(object))
	if !ok {
		return false
	}
	last := found.(write)
	if version == "" {
		return last.outcome == outcomeWritten
	}
	return older(last.version, version)
}

// Reverts reports whether changes undo what another writer has done since the last write of this agent to the same objects.
func Reverts[T client.Object](w Writer, changes []plan.Change[T]) bool {
	return slices.ContainsFunc(changes, func(change plan.Change[T]) bool {
		version := ""
		if change.Verb != plan.Create {
			version = change.Existing.GetResourceVersion()
		}
		return w.lastWrites.isReverted(change.Object, version)
	})
}

// older reports whether a version is older than another. An empty version is older than any. Versions of one kind can be compared
// (KEP-5504); if they cannot, they are not from a Kubernetes API server.
func older(version, other string) bool {
	if version == "" {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(version, other)
	return err == nil && order < 0
}

func identityOf(object client.Object) identity {
	return identity{reflect.TypeOf(object), client.ObjectKeyFromObject(object)}
}
