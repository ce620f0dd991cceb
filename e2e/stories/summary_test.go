// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/tombolo-mcs/tombolo/e2e/complete"
)

// summary is the table at the end: which story was told where, and how long it took.
type summary struct{ rows []row }

type row struct {
	story    string
	clusters int
	dns      complete.DNS
	took     time.Duration
	verdict  string
}

// time returns what is to be called when a story has ended.
func (s *summary) time(t *testing.T, v complete.Variant, st *stage) func() {
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
		s.rows = append(s.rows, row{name, len(st.Clusters()), v.DNS, time.Since(begin), verdict})
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
