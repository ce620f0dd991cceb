// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"path"
	"strings"
	"sync"
	"testing"
	"time"
)

// summary is the table at the end: which story ran where, and how long it took.
type summary struct {
	mu   sync.Mutex
	rows []row
}

type row struct {
	story    string
	clusters int
	took     time.Duration
	result   string
}

// run runs a story and records it.
func (s *summary) run(t *testing.T, st *stage, story story) {
	defer s.time(t, st)()
	story.run(newScene(t, st))
}

// time returns what is to be called when a story has ended.
func (s *summary) time(t *testing.T, st *stage) func() {
	begin := time.Now()
	return func() {
		result := "ok"
		switch {
		case t.Failed():
			result = "FAILED"
		case t.Skipped():
			result = "skipped"
		}
		name := strings.ReplaceAll(path.Base(t.Name()), "_", " ")
		s.mu.Lock()
		defer s.mu.Unlock()
		s.rows = append(s.rows, row{name, len(st.Clusters()), time.Since(begin), result})
	}
}

func (s *summary) print(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-70s %8s %7s  %s\n", "story", "clusters", "seconds", "result")
	for _, r := range s.rows {
		fmt.Fprintf(&b, "%-70s %8d %7.1f  %s\n", r.story, r.clusters, r.took.Seconds(), r.result)
	}
	t.Log(b.String())
}
