// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"

	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/assess"
	"github.com/tombolo-mcs/tombolo/cmd/kubectl-clusterset/survey/watch"
)

// update is what a browser gets: a whole page, or the difference from the page before.
type update struct {
	// Whole is true if the update replaces all that was shown.
	Whole bool `json:"whole"`
	page
	// Services are all, or those that are new or changed. Gone are the keys of those that no longer exist.
	Services []json.RawMessage `json:"services"`
	Gone     []string          `json:"gone"`
	// Changes are all, or the new ones, oldest first.
	Changes []change `json:"changes"`
}

// feed has the current page, encoded for browsers.
type feed struct {
	mu       sync.Mutex
	revision int
	whole    []byte
	// step is the difference from the revision before; nil if there is none.
	step []byte
	// next is closed when there is another revision.
	next chan struct{}

	// What the next page is compared with.
	status  assess.Status
	page    page
	rows    map[string][]byte
	changes []change
}

func newFeed() *feed { return &feed{next: make(chan struct{})} }

// publish makes an observation the current page.
func (f *feed) publish(o watch.Observation) error {
	shown := pageOf(o)
	rows, encoded := map[string][]byte{}, make([]json.RawMessage, len(shown.services))
	for i, r := range shown.services {
		content, err := json.Marshal(r)
		if err != nil {
			return err
		}
		rows[r.Namespace+"/"+r.Name], encoded[i] = content, content
	}
	var added []change
	if f.rows != nil {
		added = changesOf(assess.ChangesBetween(f.status, o.Status))
	}
	changes := slices.Concat(f.changes, added)
	changes = changes[max(0, len(changes)-maxChanges):]
	whole, err := json.Marshal(update{Whole: true, page: shown, Services: encoded, Gone: []string{}, Changes: append([]change{}, changes...)})
	if err != nil {
		return err
	}
	var step []byte
	if f.rows != nil && sameColumns(f.page.Members, shown.Members) {
		services, gone := f.difference(shown.services, rows)
		if step, err = json.Marshal(update{page: shown, Services: services, Gone: gone, Changes: append([]change{}, added...)}); err != nil {
			return err
		}
	}
	f.status, f.page, f.rows, f.changes = o.Status, shown, rows, changes
	f.mu.Lock()
	defer f.mu.Unlock()
	f.revision, f.whole, f.step = f.revision+1, whole, step
	close(f.next)
	f.next = make(chan struct{})
	return nil
}

// sameColumns reports whether the letters of rows are those of the same members.
func sameColumns(before, after []member) bool {
	return slices.EqualFunc(before, after, func(a, b member) bool { return a.ID == b.ID })
}

// difference returns the services that are new or changed, and the keys of those that no longer exist, sorted.
func (f *feed) difference(services []row, rows map[string][]byte) (changed []json.RawMessage, gone []string) {
	changed, gone = []json.RawMessage{}, []string{}
	for _, r := range services {
		key := r.Namespace + "/" + r.Name
		if !bytes.Equal(rows[key], f.rows[key]) {
			changed = append(changed, rows[key])
		}
	}
	for key := range f.rows {
		if rows[key] == nil {
			gone = append(gone, key)
		}
	}
	slices.Sort(gone)
	return changed, gone
}

// since returns what a browser that has a revision needs, the current revision, and a channel that is closed when there is another one. It
// returns nil if the browser has the current revision.
func (f *feed) since(revision int) (content []byte, current int, next <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case revision == f.revision:
		return nil, f.revision, f.next
	case revision == f.revision-1 && f.step != nil:
		return f.step, f.revision, f.next
	}
	return f.whole, f.revision, f.next
}
