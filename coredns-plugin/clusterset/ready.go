// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterset

// Ready reports whether all objects have been read, or the API server does not serve ServiceImports. (Then the zone answers SERVFAIL
// until the CustomResourceDefinition is installed, but the server's other zones must be available.) It implements ready.Readiness.
func (c *Clusterset) Ready() bool { return c.publisher.synced.Load() || c.crdAbsent.Load() }
