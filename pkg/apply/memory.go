// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"reflect"

	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// remembered bounds a memory. A watch brings a write back within milliseconds, so only the latest matter; what is
// forgotten costs a request that the API server refuses, no more.
const remembered = 4096

// memory knows what our own last writes made of objects.
type memory struct{ written *lru.Cache }

// identity names an object of a cluster.
type identity struct {
	kind reflect.Type
	key  client.ObjectKey
}

// write is our own last write of an object.
type write struct {
	outcome outcome
	// version is the one that it gave to the object, or that it deleted.
	version string
}

type outcome string

const (
	stands  outcome = "stands"
	deleted outcome = "deleted"
)

func newMemory() memory { return memory{lru.New(remembered)} }

// note remembers a write; the object is as the API server answered it, or as it was when it was deleted.
func (m memory) note(object client.Object, o outcome) {
	m.written.Add(identityOf(object), write{o, object.GetResourceVersion()})
}

// unseen returns our own last write of an object if it is not in what was observed, a version, or empty where there was
// no object; else it returns the zero write.
func (m memory) unseen(object client.Object, observed string) write {
	found, ok := m.written.Get(identityOf(object))
	if !ok {
		return write{}
	}
	last := found.(write)
	if last.outcome == deleted && observed == last.version || last.outcome == stands && older(observed, last.version) {
		return last
	}
	return write{}
}

// older reports whether a version comes before another, as no version at all does. Versions of one kind of objects can be
// compared (KEP-5504); those that cannot are not from a Kubernetes API server.
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
