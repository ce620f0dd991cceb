// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import "github.com/tombolo-mcs/tombolo/pkg/breaker"

// remembered is how many of a member's last withdrawals are remembered at least: many times what its quota lets it have. A member
// that publishes and deletes without end fills no memory by that. What is forgotten before it has taken effect is held at worst, if
// the hub is listed just then.
const remembered = 10_000

// withdrawals are the last deletions of one member's records. None is nil.
type withdrawals struct{ recent, older map[breaker.Record]struct{} }

func (w *withdrawals) add(r breaker.Record) {
	if len(w.recent) >= remembered {
		w.recent, w.older = map[breaker.Record]struct{}{}, w.recent
	}
	w.recent[r] = struct{}{}
}

func (w *withdrawals) has(r breaker.Record) bool {
	if w == nil {
		return false
	}
	_, recent := w.recent[r]
	_, older := w.older[r]
	return recent || older
}

func (w *withdrawals) remove(r breaker.Record) {
	if w == nil {
		return
	}
	delete(w.recent, r)
	delete(w.older, r)
}
