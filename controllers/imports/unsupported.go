// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package imports

import (
	"maps"
	"sync"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// maxUnsupported is the maximum number of stored settings, because members can write any number of them.
const maxUnsupported = 1000

// UnsupportedSettings stores the settings that this cluster's API server does not support, so that the agent tries each only once.
// After an upgrade of the API server, they are tried again when the agent is restarted.
type UnsupportedSettings struct {
	mu sync.Mutex
	// all is replaced, never changed, because views share it.
	all map[clusterset.Setting]bool
}

// NewUnsupportedSettings returns an empty UnsupportedSettings.
func NewUnsupportedSettings() *UnsupportedSettings { return &UnsupportedSettings{} }

// settings returns the settings that the API server does not support.
func (u *UnsupportedSettings) settings() map[clusterset.Setting]bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.all
}

// add adds settings. If there are too many, it removes the earlier ones, which are then tried again.
func (u *UnsupportedSettings) add(settings []clusterset.Setting) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.all)+len(settings) > maxUnsupported {
		u.all = nil
	}
	u.all = with(u.all, settings)
}

// with returns a copy of a set of settings with some more.
func with(set map[clusterset.Setting]bool, more []clusterset.Setting) map[clusterset.Setting]bool {
	result := map[clusterset.Setting]bool{}
	maps.Copy(result, set)
	for _, setting := range more {
		result[setting] = true
	}
	return result
}
