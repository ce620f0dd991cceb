// Copyright The Tombolo Authors.
// SPDX-License-Identifier: Apache-2.0

package world

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tombolo-mcs/tombolo/e2e/framework/lab"
)

// KeepScrape writes the metrics of a program into the folder SCRAPES, if that is set, for tools/monitoring.
func KeepScrape(t *testing.T, name string, text []byte) {
	t.Helper()
	folder := os.Getenv("SCRAPES")
	if folder == "" {
		return
	}
	lab.Must(t, os.MkdirAll(folder, 0o755))
	lab.Must(t, os.WriteFile(filepath.Join(folder, name), text, 0o600))
}
