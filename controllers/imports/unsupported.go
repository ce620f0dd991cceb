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

// add adds the settings that are not stored. If there are too many, it removes the earlier ones, which are then tried again.
func (u *UnsupportedSettings) add(settings map[clusterset.Setting]bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	added := map[clusterset.Setting]bool{}
	for setting := range settings {
		if !u.all[setting] {
			added[setting] = true
		}
	}
	if len(added) == 0 {
		return
	}
	if len(u.all)+len(added) <= maxUnsupported {
		maps.Copy(added, u.all)
	}
	u.all = added
}
