// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

// Package client stands in for controller-runtime's client.
package client

// Object is any object.
type Object interface{ GetName() string }

// CreateOption tunes a Create.
type CreateOption interface{ ApplyToCreate() }

// Writer writes.
type Writer interface {
	Create(obj Object, opts ...CreateOption) error
	Patch(obj Object) error
}

// SubResourceWriter writes a subresource.
type SubResourceWriter interface {
	Update(obj Object) error
}

// Client reads and writes.
type Client interface {
	Writer
	Get(name string, obj Object) error
	Status() SubResourceWriter
}
