// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"path/filepath"
	"testing"
)

// Start starts a lab for a test and closes it when the test ends. If it cannot, the test fails: also if the binaries are
// missing, with the command that builds them. If the test fails, the logs of all processes are copied to its artifacts
// (kept by "go test -artifacts"), and their last lines are shown.
func Start(t testing.TB, clusters ...ClusterOptions) *Lab {
	t.Helper()
	l, err := prepare(t.Context(), Options{Clusters: clusters, Log: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			l.ShowLogs(t)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := l.start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}

// ShowLogs copies the logs of all processes to the artifacts of a test, and shows their last lines there.
func (l *Lab) ShowLogs(t testing.TB) {
	t.Helper()
	kept := t.ArtifactDir()
	for _, c := range l.clusters {
		for _, p := range c.Processes() {
			t.Logf("The log of %s ends:\n%s", p, p.LogTail())
			if err := copyFile(p.logFile, filepath.Join(kept, c.Name, filepath.Base(p.logFile))); err != nil {
				t.Log(err)
			}
		}
	}
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o644)
}
