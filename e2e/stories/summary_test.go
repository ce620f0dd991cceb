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

	"github.com/tombolo-mcs/tombolo/e2e/framework/complete"
)

// summary is the table at the end: which story was told where, and how long it took.
type summary struct {
	mu   sync.Mutex
	rows []row
}

type row struct {
	story    string
	clusters int
	dns      complete.DNS
	took     time.Duration
	verdict  string
}

// tell tells a story and notes it.
func (s *summary) tell(t *testing.T, st *stage, told story) {
	defer s.time(t, st)()
	told.tell(newScene(t, st))
}

// time returns what is to be called when a story has ended.
func (s *summary) time(t *testing.T, st *stage) func() {
	begin := time.Now()
	return func() {
		verdict := "ok"
		switch {
		case t.Failed():
			verdict = "FAILED"
		case t.Skipped():
			verdict = "skipped"
		}
		name := strings.ReplaceAll(path.Base(t.Name()), "_", " ")
		s.mu.Lock()
		defer s.mu.Unlock()
		s.rows = append(s.rows, row{name, len(st.Clusters()), st.Options.DNS, time.Since(begin), verdict})
	}
}

func (s *summary) print(t *testing.T) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%-70s %8s %-10s %7s  %s\n", "story", "clusters", "DNS", "seconds", "verdict")
	for _, r := range s.rows {
		fmt.Fprintf(&b, "%-70s %8d %-10s %7.1f  %s\n", r.story, r.clusters, r.dns, r.took.Seconds(), r.verdict)
	}
	t.Log(b.String())
}
