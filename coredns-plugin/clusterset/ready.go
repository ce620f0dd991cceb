// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

// Ready reports whether the plugin may be asked: once all objects have been read, or the API server has said that it has
// no ServiceImports. In a cluster without the CustomResourceDefinition the zone answers SERVFAIL until that is there, but
// this is no reason to keep the server's other zones out of service. It implements ready.Readiness.
func (c *Clusterset) Ready() bool { return c.publisher.synced.Load() || c.crdAbsent.Load() }
