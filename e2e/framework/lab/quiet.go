// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Quiet turns off the logs that controller-runtime and client-go write for all programs of a process.
func Quiet() {
	ctrl.SetLogger(logr.Discard())
	klog.SetLogger(logr.Discard())
}

// Buffer is output that may be read while it is written.
type Buffer struct {
	mu      sync.Mutex
	content bytes.Buffer
}

func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.Write(p)
}

// String returns what has been written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.content.String()
}
