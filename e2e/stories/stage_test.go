// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"os"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tombolo-mcs/tombolo/e2e/framework/complete"
	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
	"github.com/tombolo-mcs/tombolo/e2e/framework/membership"
)

// stage is a clusterset on which stories run.
type stage struct {
	*complete.Clusterset
	// clients by the names of clusters. They have an administrator's rights and no cache.
	clients map[string]client.WithWatch
}

// newStage starts a clusterset: members a and b, and c, which has not joined and runs the oldest Kubernetes supported. They have both DNS
// plugins, and each installer but the command, which the documents and the clusters across networks use.
func newStage(t *testing.T) *stage {
	t.Helper()
	oldest := "c"
	if os.Getenv("OLDEST") == "no" {
		oldest = ""
	}
	return startStage(t, complete.Options{
		Members: []string{"a", "b"}, Late: []string{"c"}, Oldest: oldest,
		Installations: map[string]complete.Installation{
			complete.HubName: {Installer: complete.ByHelm},
			"a":              {Installer: complete.ByHelm, DNS: complete.OurPlugin},
			"b":              {Installer: complete.ByKustomize, DNS: complete.CoreDNSPlugin},
			"c":              {Installer: complete.ByInvitation, DNS: complete.CoreDNSPlugin},
		},
	})
}

// newNetworks starts a clusterset across networks, with our DNS plugin in a and c and CoreDNS' own in b. c takes part in the stories that open it.
// If GATEWAYS_FROM is the folder of an earlier version, the gateways of b are of that version ("make gateway-versions-check").
func newNetworks(t *testing.T) *stage {
	t.Helper()
	o := complete.Options{
		Members: []string{"a", "b", "c"}, Networks: separateNetworks, IPv4Only: "c",
		Installations: map[string]complete.Installation{"b": {Installer: complete.ByCommand, DNS: complete.CoreDNSPlugin}},
	}
	if from := os.Getenv("GATEWAYS_FROM"); from != "" {
		o.Before, o.EarlierGateways = from, "b"
	}
	st := startStage(t, o)
	st.Options.Members, st.Options.Late = []string{"a", "b"}, []string{"c"}
	lab.Must(t, st.LoadImages(t.Context(), "socat"))
	return st
}

func startStage(t *testing.T, o complete.Options) *stage {
	t.Helper()
	begin := time.Now()
	o.Logs = t.ArtifactDir()
	o.Log = func(format string, args ...any) {
		t.Helper()
		t.Logf("%5.1f s  "+format, append([]any{time.Since(begin).Seconds()}, args...)...)
	}
	set, err := complete.Start(t.Context(), o)
	lab.Must(t, err)
	t.Cleanup(func() { lab.Must(t, set.Close()) })
	s := &stage{Clusterset: set, clients: map[string]client.WithWatch{}}
	for _, c := range set.Clusters() {
		s.clients[c.Name] = membership.Client(t, c)
	}
	return s
}

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

func (s *summary) run(t *testing.T, st *stage, story story) {
	ended := s.time(t, st)
	on := newScene(t, st)
	defer func() { ended(on.failure) }()
	on.openMembers()
	story.run(on)
}

// time returns what is to be called when a story has ended, with its failure if that is known.
func (s *summary) time(t *testing.T, st *stage) func(failure string) {
	begin := time.Now()
	return func(failure string) {
		result := "ok"
		switch {
		case t.Failed():
			result = strings.TrimSpace("FAILED " + failure)
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
