// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"fmt"
	"time"

	"github.com/tombolo-mcs/tombolo/pkg/clusterset"
)

// life is what the hub has heard of a member's agent.
type life struct {
	silence time.Duration
	// known is false where the hub has never heard of it.
	known bool
}

func (h *Hub) lifeOf(id clusterset.ClusterID) life {
	silence, known := h.Silence(id)
	return life{silence, known}
}

// state returns whether the hub hears of the member, which may be silent for the grace period given.
func (l life) state(grace time.Duration) State {
	switch {
	case !l.known:
		return StateNeverHeard
	case l.silence > grace:
		return StateSilent
	}
	return StateConnected
}

// String says when it was last heard of.
func (l life) String() string {
	if !l.known {
		return "its agent has never been heard of"
	}
	return fmt.Sprintf("the hub last heard of its agent %s ago", l.silence.Round(time.Second))
}
